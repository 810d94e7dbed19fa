package explain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"stepbox/policy"
	"stepbox/session/api"
	"stepbox/session/rules"
)

// Past is what was recorded of sessions.
type Past interface {
	Session(ctx context.Context, id string) (api.Session, error)
	Execs(ctx context.Context, id string, action int) ([]api.Exec, error)
	Actions(ctx context.Context, id string) ([]api.Action, error)
	Attempts(ctx context.Context, id string) ([]api.Attempt, error)
}

// NewProfile writes a profile that is made of what a session of an unknown agent recorded,
// for the person to go over. What it would let through without a question stands in
// comments.
func (s *Service) NewProfile(ctx context.Context, r api.ProfileNew) (api.ProfileMade, error) {
	var out api.ProfileMade
	if s.Past == nil || s.profileDir() == "" {
		return out, api.Problemf(api.CodeUsage, "there is no record of sessions here, or no folder for your settings")
	}
	was, err := s.Past.Session(ctx, r.Session)
	if err != nil {
		return out, err
	}
	if was.Agent != s.profiles().Named("").Name {
		return out, api.Problemf(api.CodeUsage, "the agent of session %s has a profile, %s: stepbox profile show %s prints it, to begin another with", was.Name, was.Agent, was.Agent)
	}
	seen, err := s.observed(ctx, was)
	if err != nil {
		return out, err
	}
	text := seen.yaml(r.Name, was)
	file := filepath.Join(s.profileDir(), r.Name+".yaml")
	if _, err := policy.OwnProfile(file, []byte(text)); err != nil {
		return out, api.Problemf(api.CodeInvalid, "no profile can be made of session %s: %s", was.Name, api.Escape(err.Error()))
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return out, fmt.Errorf("cannot make the folder of your profiles: %w", err)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return out, api.Problemf(api.CodeUsage, "%s is there already: it stays as it is", api.Escape(file))
	}
	if err != nil {
		return out, fmt.Errorf("cannot write the profile: %w", err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return out, fmt.Errorf("cannot write the profile: %w", err)
	}
	return api.ProfileMade{File: api.Escape(file), Text: text}, nil
}

// observed is what a session showed of its agent.
type observed struct {
	program     string // what its file, or its script, is called
	dir         string // the folder of that, below which it is recognised, too
	interpreter string
	hosts       []string
	upkeep      []string // commands, as rules have them, that it ran again and again, from its start on
	shells      []string // as "bash -lc": how it wraps commands
}

// Bounds on what is taken for upkeep.
const (
	atStart   = 30 * time.Second // of a session: what is first run later isn't
	maxUpkeep = 30
)

func (s *Service) observed(ctx context.Context, was api.Session) (o observed, err error) {
	own, err := s.Past.Execs(ctx, was.ID, 0)
	if err != nil {
		return o, err
	}
	for _, x := range own {
		o.started(x)
	}
	attempts, err := s.Past.Attempts(ctx, was.ID)
	if err != nil {
		return o, err
	}
	for _, a := range attempts {
		if rule := a.Pattern(); a.Verdict == api.Allow && a.Name != "" && rule != "" && !slices.Contains(o.hosts, rule) {
			o.hosts = append(o.hosts, rule)
		}
	}
	slices.Sort(o.hosts)
	actions, err := s.Past.Actions(ctx, was.ID)
	if err != nil {
		return o, err
	}
	return o, o.commands(ctx, s.Past, was, actions)
}

// started is one of the agent's own program starts: the last that is a script, or the
// first that isn't, is what a person would call it.
func (o *observed) started(x api.Exec) {
	if len(x.Argv) == 0 {
		return
	}
	program, interpreter := x.Program, ""
	if x.Basis != nil && len(x.Basis.Interpreter) > 0 {
		interpreter = path.Base(x.Basis.Interpreter[0])
	} else if i := slices.IndexFunc(x.Argv[1:], func(a string) bool { return !strings.HasPrefix(a, "-") }); i >= 0 && policy.RunsScripts(path.Base(x.Argv[0])) {
		program, interpreter = x.Argv[i+1], path.Base(x.Argv[0])
	}
	switch {
	case o.program != "" && path.Base(program) != o.program:
	case o.program == "" || interpreter != "" && interpreter != "env":
		o.program, o.dir = path.Base(program), path.Base(path.Dir(program))
		if interpreter != "env" {
			o.interpreter = interpreter
		}
	}
}

// commands finds what is repeated among an agent's actions.
func (o *observed) commands(ctx context.Context, past Past, was api.Session, actions []api.Action) error {
	times, first := map[string]int{}, map[string]api.Action{}
	for _, a := range actions {
		if a.Kind != api.KindCommand || a.Housekeeping || a.State == api.ActionDenied {
			continue
		}
		if times[a.Title]++; times[a.Title] == 1 {
			first[a.Title] = a
		}
	}
	wrapped := map[string]int{}
	for _, a := range actions {
		if a.N != first[a.Title].N || len(o.upkeep) >= maxUpkeep {
			continue
		}
		execs, err := past.Execs(ctx, was.ID, a.N)
		if err != nil {
			return err
		}
		if len(execs) == 0 || len(execs[0].Argv) == 0 || execs[0].Basis != nil && execs[0].Basis.Cut {
			continue
		}
		argv := execs[0].Argv
		if len(argv) == 3 && strings.HasPrefix(argv[1], "-") && strings.HasSuffix(argv[1], "c") && strings.HasSuffix(path.Base(argv[0]), "sh") {
			wrapped[path.Base(argv[0])+" "+argv[1]] += times[a.Title]
			continue
		}
		if times[a.Title] > 1 && a.StartedAt.Sub(was.StartedAt) < atStart && !strings.Contains(a.Title, " | ") {
			if words, ok := rules.Exactly(argv); ok {
				o.upkeep = append(o.upkeep, words)
			}
		}
	}
	for shape, n := range wrapped {
		if n > 1 {
			o.shells = append(o.shells, shape)
		}
	}
	slices.Sort(o.shells)
	return nil
}

// yaml is the profile's text.
func (o *observed) yaml(name string, was api.Session) string {
	var b strings.Builder
	line := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	line("# %s. Seen in session %s (%s) of %s: %s", name, oneLine(was.Name), was.ID, was.StartedAt.Format(time.DateOnly), oneLine(was.Command))
	line("name: %s", quote(name))
	line("agent: true")
	line("match:")
	line("  programs: [%s]", quote(o.program))
	if o.interpreter != "" {
		line("  interpreters: [%s]", quote(o.interpreter))
	}
	line("  # More exactly, by globs for its path, in place of programs:")
	line("  # paths: [%s]", quote("*/"+o.dir+"/"+o.program))
	line("# Variables with its keys, or its model's address: whoever has one is told how to pass it.")
	line("# wants: [MY_AGENT_API_KEY]")
	if len(o.hosts) > 0 {
		line("# What it reached, and was let. Leave those out that it should ask for.")
		line("hosts:")
		for _, h := range o.hosts {
			line("  - %s", quote(h))
		}
	}
	if len(o.upkeep) > 0 {
		line("# What it ran again and again from its start on. Such commands are folded away and nobody is asked about")
		line("# them, so take the # only from those that look and change nothing.")
		line("# housekeeping:")
		line("#   - run:")
		for _, words := range o.upkeep {
			line("#       - %s", quote(words))
		}
	}
	if len(o.shells) > 0 {
		line("# How it runs commands: with this, the command is shown without its shell.")
		line("# wrappers:")
		for _, shape := range o.shells {
			shell, flag, _ := strings.Cut(shape, " ")
			line("#   - shells: [%s]", quote(shell))
			line("#     flags: [%s]", quote(flag))
			line("#     script: \"«payload!»\"")
		}
	}
	return b.String()
}

// quote is a text in a YAML file.
func quote(s string) string { return strconv.QuoteToASCII(s) }

// oneLine is a text in a comment.
func oneLine(s string) string { return api.Escape(api.Trim(s, 200)) }
