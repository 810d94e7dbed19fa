// Package credential gets the values of the credentials that a session's policies and its
// person name, and says what of the sandbox follows from them: what trusts the session's
// own certificates, and where the agent gets placeholders.
//
// Values are read on the host, outside of the project, as the person. They are kept in
// memory and are in nothing that this package says.
package credential

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"stepbox/policy"
	"stepbox/policy/git"
	"stepbox/runner/egress/intercept"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/outfit"
)

// Bounds on what gives a value.
const (
	commandTime = 20 * time.Second
	maxOutput   = 64 << 10
)

// Source is where values are looked for.
type Source struct {
	Env     []string // the person's
	Home    string
	Project string // whatever is in it is an agent's, and isn't asked
}

// All are the credentials of a session: those named when it was started, by the names of
// well-known services, and those of policies for other hosts.
func All(named []string, of []policy.Credential) (out []policy.Credential, err error) {
	for _, name := range named {
		found, err := policy.KnownCredential(name)
		if err != nil {
			return nil, err
		}
		of = slices.DeleteFunc(slices.Clone(of), func(c policy.Credential) bool {
			return slices.ContainsFunc(found, func(f policy.Credential) bool { return f.Host == c.Host && f.Port == c.Port })
		})
		out = append(out, found...)
	}
	return append(out, of...), nil
}

// Values gets them all. What one source gives for several hosts is asked for once.
func (s Source) Values(ctx context.Context, all []policy.Credential) (out []intercept.Credential, err error) {
	known := make(map[string]string)
	for _, c := range all {
		if c.File != "" && s.within(c.File) {
			return nil, fmt.Errorf("cannot use credential %q: %s, where it is named, is in the project", c.Name, c.File)
		}
		words, source := From(c), fmt.Sprint(c.From)
		value, ok := known[source]
		if !ok {
			value, err = s.value(ctx, c.From)
			if err == nil {
				err = intercept.CheckValue(value)
			}
			if err != nil {
				return nil, fmt.Errorf("cannot use credential %q, which comes from %s: %w", c.Name, words, err)
			}
			known[source] = value
		}
		placeholder := ""
		if len(c.Variables) > 0 {
			placeholder = c.Placeholder()
		}
		out = append(out, intercept.Credential{
			Name: c.Name, Host: c.Host, Port: uint16(c.Port), Header: c.Header, Bearer: c.Bearer, User: c.User, Query: c.Query,
			Placeholder: placeholder, Value: value, Methods: c.Methods, Paths: c.Paths, WebSocket: c.WebSocket,
		})
	}
	return out, nil
}

// From says where a credential comes from. Of a command it says which program: its
// arguments may be nobody's business.
func From(c policy.Credential) string {
	switch f := c.From; {
	case len(f.Env) > 0:
		return "$" + strings.Join(f.Env, " or $")
	case f.File != "":
		return f.File
	default:
		return "what " + policy.Line(f.Command[:1]) + " prints"
	}
}

func (s Source) value(ctx context.Context, f policy.CredentialSource) (string, error) {
	switch {
	case len(f.Env) > 0:
		for _, name := range f.Env {
			if v := outfit.Variable(s.Env, name); v != "" {
				return v, nil
			}
		}
		return "", errors.New("it isn't set in your environment: export it, or leave this credential out")
	case f.File != "":
		return s.read(f.File)
	default:
		return s.run(ctx, f.Command)
	}
}

// within says whether a path leads into the project, links followed.
func (s Source) within(path string) bool {
	if real, err := filepath.EvalSymlinks(path); err == nil && manifest.Within(real, s.Project) {
		return true
	}
	return manifest.Within(path, s.Project)
}

func (s Source) read(path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = filepath.Join(s.Home, rest)
	}
	if s.within(path) {
		return "", errors.New("it is in the project, which an agent writes")
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	b, err := git.ReadFile(real, maxOutput)
	return strings.TrimSpace(string(b)), err
}

// run is what a program of the host prints, in a folder that is nobody's.
func (s Source) run(ctx context.Context, argv []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	path, err := s.program(argv[0])
	if err != nil {
		return "", err
	}
	out, said := &limited{left: maxOutput}, &limited{left: 200}
	cmd := exec.CommandContext(ctx, path, argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = "/", s.Env, out, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("it took longer than %s: it may wait for somebody to type, which nobody can here", commandTime)
	case err != nil:
		return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// program finds a program in the person's PATH, which isn't this process's.
func (s Source) program(name string) (string, error) {
	candidates := []string{name}
	if !strings.Contains(name, "/") {
		candidates = nil
		for _, dir := range filepath.SplitList(outfit.Variable(s.Env, "PATH")) {
			candidates = append(candidates, filepath.Join(dir, name))
		}
	}
	for _, path := range candidates {
		info, err := os.Stat(path)
		switch {
		case err != nil || info.IsDir() || info.Mode()&0o111 == 0:
		case !filepath.IsAbs(path):
			return "", errors.New("name the program by its name or in full")
		case s.within(path):
			return "", errors.New("the program is in the project, which an agent writes")
		default:
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no program %q in your PATH", name)
}

// limited keeps so many bytes and drops the others.
type limited struct {
	bytes.Buffer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	n := min(len(b), l.left)
	l.left -= n
	l.Buffer.Write(b[:n])
	return len(b), nil
}

// Told is what a person is told of credentials.
func Told(all []policy.Credential) (out []api.Credential) {
	for _, c := range all {
		carrier := "the header " + c.Header
		switch {
		case c.Bearer:
			carrier = "a bearer token"
		case c.User != "":
			carrier = "the password of " + c.User
		case c.Query != "":
			carrier = "the parameter " + c.Query
		}
		out = append(out, api.Credential{
			Name: c.Name, Host: net.JoinHostPort(c.Host, strconv.Itoa(c.Port)), Carrier: carrier, From: api.Escape(From(c)), Variables: c.Variables,
		})
	}
	return out
}

// Warnings say of credentials that they can't work so, and of a limit that nothing counts
// for it.
func Warnings(all []policy.Credential, limits []policy.Limit) (out []string) {
	if i := slices.IndexFunc(limits, func(l policy.Limit) bool { return l.Name == policy.LimitTokens }); i >= 0 && len(all) == 0 {
		out = append(out, fmt.Sprintf("%s limits nothing: tokens are counted where a credential is put in (--credential)", api.Escape(limits[i].From())))
	}
	for _, c := range all {
		aws := slices.ContainsFunc(c.Variables, func(v string) bool { return strings.HasPrefix(v, "AWS_") })
		if aws || strings.HasSuffix(c.Host, ".amazonaws.com") {
			out = append(out, fmt.Sprintf("the credential %s: requests to AWS are signed, which a placeholder can't do; pass a session token of few rights instead", c.Name))
		}
		if strings.HasPrefix(c.Host, "oauth2.") || strings.HasPrefix(c.Host, "login.") || strings.HasPrefix(c.Host, "auth.") {
			out = append(out, fmt.Sprintf("the credential %s: %s gives out tokens in answers' bodies, which the agent then holds", c.Name, c.Host))
		}
	}
	return out
}
