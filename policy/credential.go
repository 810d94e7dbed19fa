package policy

import (
	_ "embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/net/http/httpguts"
)

// Credential is what one host is shown to know whom a request is from. The agent has a
// placeholder in its stead, and requests to the host get the real one on their way out.
type Credential struct {
	Name string // "anthropic", or the host
	Host string // a name as HostRule.Name has it, no pattern
	Port int

	// How it is carried: in one of these.
	Header string // a header of its own
	Bearer bool   // Authorization: Bearer
	User   string // Authorization: Basic, with this user
	Query  string // a parameter

	Variables []string // in which the agent gets the placeholder; none: nothing is needed
	Prefix    string   // how the placeholder begins, for agents that look at it
	From      CredentialSource

	Methods   []string // that requests may have; none: those that every API uses
	Paths     []string // globs for their paths; none: all
	WebSocket bool     // a request may become a WebSocket
	Where
}

// CredentialSource says where the real one comes from: one of these.
type CredentialSource struct {
	Env     []string // variables of the person's environment, the first that is set
	File    string   // absolute, or from ~/ on
	Command []string // what a program prints
}

// Placeholder is what the agent has in its stead. It is the same in every session, so that
// an agent that asks once whether it may use a key, or keeps it, isn't confused.
func (c *Credential) Placeholder() string { return c.Prefix + "stepbox-placeholder-" + c.Name }

// Rule lets connections to its host through.
func (c *Credential) Rule() NetRule {
	h := HostRule{Name: c.Host, First: c.Port, Last: c.Port, Protocol: TCP}
	return NetRule{Verdict: Allow, Host: h, Why: "the credential " + c.Name + " is for it", File: c.File, Line: c.Line}
}

type credentialFile struct {
	place
	Known     *text       `yaml:"known" doc:"A service whose host and way of carrying are known: anthropic, openai, gemini, github, npm and others. Only from may be said beside it."`
	Name      *text       `yaml:"name" doc:"What it is called. The host, where nothing is said."`
	Host      *text       `yaml:"host" doc:"The one host that it is for, as NAME or NAME:PORT. The port is 443 where nothing is said."`
	Header    *text       `yaml:"header" doc:"The header that carries it, as x-api-key."`
	Bearer    bool        `yaml:"bearer" doc:"true: Authorization: Bearer carries it."`
	Basic     *text       `yaml:"basic" doc:"Authorization: Basic carries it, as the password of this user."`
	Query     *text       `yaml:"query" doc:"The parameter that carries it, as key."`
	Variable  textList    `yaml:"placeholder" doc:"Variables in which the agent gets a placeholder, as ANTHROPIC_API_KEY."`
	Prefix    *text       `yaml:"prefix" doc:"How the placeholder begins, for agents that look at it, as sk-ant-."`
	From      *sourceFile `yaml:"from" doc:"Where the real one is: env, file or command."`
	Methods   textList    `yaml:"methods" doc:"Methods that requests may have. GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS where nothing is said."`
	Paths     textList    `yaml:"paths" doc:"Globs with ** for the paths of requests, as /v1/**. All where nothing is said."`
	WebSocket bool        `yaml:"websocket" doc:"true: a request may become a WebSocket, in which nothing is checked."`
}

type sourceFile struct {
	place
	Env     textList `yaml:"env" doc:"Variables of your environment; the first that is set."`
	File    *text    `yaml:"file" doc:"A file outside of the project, absolute or from ~/ on."`
	Command textList `yaml:"command" doc:"A program outside of the project and its arguments, run on the host once as a session starts."`
}

const (
	maxCredentials = 50
	maxPrefix      = 40
)

//go:embed credentials.yaml
var credentialsYAML []byte

// known are the credentials of well-known services.
var known = sync.OnceValue(func() []Credential {
	var f struct {
		Credentials []credentialFile `yaml:"credentials"`
	}
	err := Decode("credentials.yaml", credentialsYAML, &f)
	var out []Credential
	for i := 0; err == nil && i < len(f.Credentials); i++ {
		c, bad := f.Credentials[i].credential(&Layer{})
		c.Where = Where{} // nobody edits it
		out, err = append(out, c), bad.err()
	}
	if err != nil {
		panic(err) // the file is part of the program, and tested
	}
	return out
})

// KnownCredential are those of a well-known service, one for each of its hosts.
func KnownCredential(name string) (out []Credential, err error) {
	var names []string
	for _, c := range known() {
		if c.Name == name {
			out = append(out, c)
		}
		if !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no credential %q is known: there are %s; others are described under credentials in your policy", name, strings.Join(names, ", "))
	}
	return out, nil
}

func (f *layerFile) credentials(l *Layer) (all Problems) {
	if n := len(f.Credentials); n > maxCredentials {
		return f.Credentials[0].bad("%d credentials are too many: at most %d are read", n, maxCredentials)
	}
	for i := range f.Credentials {
		found, bad := f.Credentials[i].read(l)
		all = append(all, bad...)
		for _, c := range found {
			if err := c.beside(l.Credentials); err != nil {
				all = append(all, f.Credentials[i].bad("%w", err)...)
				continue
			}
			l.Credentials = append(l.Credentials, c)
			l.Network = append(l.Network, c.Rule())
		}
	}
	return all
}

// beside says why one can't be in force together with others.
func (c *Credential) beside(others []Credential) error {
	for _, o := range others {
		if o.Host == c.Host && o.Port == c.Port {
			return fmt.Errorf("%s has a credential already: a host has one", o.Host)
		}
	}
	return nil
}

func (f *credentialFile) read(l *Layer) ([]Credential, Problems) {
	if f.Known == nil {
		c, bad := f.credential(l)
		return []Credential{c}, bad
	}
	if f.Name != nil || f.Host != nil || f.Header != nil || f.Bearer || f.Basic != nil || f.Query != nil || f.Prefix != nil || f.WebSocket || len(f.Variable)+len(f.Methods)+len(f.Paths) > 0 {
		return nil, f.bad("of a known credential only from can be said")
	}
	found, err := KnownCredential(f.Known.s)
	if err != nil {
		return nil, f.Known.bad("%w", err)
	}
	var all Problems
	for i := range found {
		found[i].Where = f.where(l)
		if f.From != nil {
			found[i].From, all = f.From.source()
		}
	}
	return found, all
}

// credential is one that is described in full.
func (f *credentialFile) credential(l *Layer) (c Credential, all Problems) {
	c = Credential{Bearer: f.Bearer, WebSocket: f.WebSocket, Where: f.where(l)}
	if f.Host == nil || f.From == nil {
		return c, f.bad("a credential says for which host it is, what carries it, and where it comes from")
	}
	if err := c.setHost(f.Host.s); err != nil {
		all = f.Host.bad("cannot use host %q: %w", f.Host.s, err)
	}
	c.From, all = f.From.sourceAfter(all)
	ways := 0
	if f.Bearer {
		ways++
	}
	for _, t := range []struct {
		from *text
		to   *string
		way  bool
	}{{f.Header, &c.Header, true}, {f.Query, &c.Query, true}, {f.Basic, &c.User, true}, {f.Name, &c.Name, false}, {f.Prefix, &c.Prefix, false}} {
		if t.from == nil {
			continue
		}
		if *t.to = t.from.s; t.way {
			ways++
		}
		// All of them are tokens of HTTP, so that they are what they look like wherever they go.
		if !httpguts.ValidHeaderFieldName(t.from.s) || len(t.from.s) > maxPrefix {
			all = append(all, t.from.bad("%q can't be used here: letters, digits and hyphens, at most %d", t.from.s, maxPrefix)...)
		}
	}
	if ways != 1 {
		all = append(all, f.bad("one of header, bearer, basic and query carries a credential")...)
	}
	if c.Name == "" {
		c.Name = c.Host
	}
	return c, append(all, f.requests(&c)...)
}

// requests reads which requests may carry it, and the variables.
func (f *credentialFile) requests(c *Credential) (all Problems) {
	for _, t := range f.Variable {
		if err := checkName(t.s); err != nil {
			all = append(all, t.bad("%w", err)...)
		}
		c.Variables = append(c.Variables, t.s)
	}
	for _, t := range f.Methods {
		if strings.Trim(t.s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "" || t.s == "" || t.s == "CONNECT" {
			all = append(all, t.bad("%q is no method that can be let through: use capital letters, as in GET", t.s)...)
		}
		c.Methods = append(c.Methods, t.s)
	}
	for _, t := range f.Paths {
		if !strings.HasPrefix(t.s, "/") || !doublestar.ValidatePattern(t.s) {
			all = append(all, t.bad("%q is no pattern of paths: they begin with a slash", t.s)...)
		}
		c.Paths = append(c.Paths, t.s)
	}
	return all
}

// setHost reads NAME[:PORT].
func (c *Credential) setHost(s string) error {
	h, err := parseHost(s)
	switch {
	case err != nil:
		return err
	case h.Name == "" || strings.Contains(h.Name, "*"):
		return errors.New("a credential is for one host, by its name")
	case h.Name == HostService:
		return errors.New("what this machine serves has no certificate for that name")
	case h.Protocol != TCP || h.First != h.Last:
		return errors.New("name one port, without a protocol")
	}
	if c.Host, c.Port = h.Name, h.First; c.Port == 0 {
		c.Port = 443
	}
	return nil
}

func (f *sourceFile) sourceAfter(all Problems) (CredentialSource, Problems) {
	out, bad := f.source()
	return out, append(all, bad...)
}

func (f *sourceFile) source() (out CredentialSource, all Problems) {
	ways := 0
	if f.File != nil {
		ways++
		out.File = path.Clean(f.File.s)
		if !path.IsAbs(out.File) && !strings.HasPrefix(out.File, "~/") {
			all = f.File.bad("a file is named in full, or from ~/ on")
		}
	}
	for _, l := range []struct {
		texts textList
		into  *[]string
	}{{f.Env, &out.Env}, {f.Command, &out.Command}} {
		if l.texts != nil {
			ways++
		}
		for _, t := range l.texts {
			*l.into = append(*l.into, t.s)
		}
	}
	if ways != 1 || f.File == nil && len(out.Env)+len(out.Command) == 0 {
		all = append(all, f.bad("a credential comes from one of env, file and command")...)
	}
	return out, all
}

// Credentials are those of all layers.
func (p *Policy) Credentials() []Credential {
	return gather(p, func(l *Layer) []Credential { return l.Credentials })
}
