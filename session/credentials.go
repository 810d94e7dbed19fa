package session

import (
	"context"
	"crypto/x509"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stepbox/policy"
	"stepbox/runner"
	"stepbox/runner/egress/intercept"
	"stepbox/session/api"
	"stepbox/session/credential"
	"stepbox/session/loop"
)

const (
	// spentEvery is how often at most it is recorded what was spent.
	spentEvery = 5 * time.Second
	// maxTold refused requests are told of; the attempts have all.
	maxTold = 20
)

// guardCredentials gets the credentials that the session is to have, and has the sandbox
// trust what puts them into requests. Without any nothing is looked into. Withheld is how
// their values may be written, none of which is to be recorded.
func (s *Session) guardCredentials(ctx context.Context, spec *runner.Spec) (withheld []string, err error) {
	all, err := credential.All(s.cfg.Credentials, s.rules.With(s.read.Layers()...).Credentials())
	if err != nil || len(all) == 0 {
		return nil, err
	}
	values, err := s.source().Values(ctx, all)
	var roots *x509.CertPool
	if err == nil {
		roots, err = s.roots()
	}
	if err == nil {
		s.spend.Counted = s.spent
		s.intercept, err = intercept.New(values, intercept.Options{Roots: roots, Answer: s.spend.Answer})
	}
	if err == nil {
		err = credential.Trust(filepath.Join(spec.StateDir, "trust"), s.intercept.CA(), s.outfit.Authorities, all, spec)
	}
	if err != nil {
		return nil, &runner.StartError{Reason: err.Error()}
	}
	for _, v := range values {
		withheld = append(withheld, v.Spellings()...)
		// By whatever name it would get in.
		spec.Env = slices.DeleteFunc(spec.Env, func(e string) bool { return strings.Contains(e, v.Value) })
	}
	for _, c := range all { // the agent needs none of these
		s.outfit.Lacking = slices.DeleteFunc(s.outfit.Lacking, func(name string) bool {
			return slices.Contains(c.Variables, name) || slices.Contains(c.From.Env, name)
		})
	}
	s.credentials = all
	return withheld, nil
}

// source is where the session's credentials come from.
func (s *Session) source() credential.Source {
	return credential.Source{Env: s.cfg.Env, Home: s.cfg.Home, Project: s.cfg.Workspace}
}

// roots are those whom Stepbox itself trusts for this session.
func (s *Session) roots() (*x509.CertPool, error) { return s.source().Roots(s.outfit.Authorities) }

// tokenLimits are those on tokens that hold as it starts.
func (s *Session) tokenLimits() []policy.Limit {
	p, err := s.holding()
	if err != nil {
		return nil // which ended it
	}
	return p.Limits()
}

// spent counts tokens for their limit, and has the record say before long what was spent.
func (s *Session) spent(more api.Spend) {
	s.network.Spent(more.Input + more.Output)
	if s.telling.CompareAndSwap(false, true) {
		time.AfterFunc(spentEvery, func() {
			s.telling.Store(false)
			s.loop.Submit(func() {
				if s.loop.Now() == loop.Running {
					s.record(nil, s.changed("spent"))
				}
			})
		})
	}
}

// sayRefused tells a person of requests that weren't passed on, each reason once.
func (s *Session) sayRefused(a *api.Attempt) {
	for _, r := range a.Refusals {
		words := "a request to " + a.Host() + " was refused: " + r.Why
		if len(s.refused) >= maxTold || slices.Contains(s.refused, words) {
			continue
		}
		s.refused = append(s.refused, words)
		s.note(true, "%s (%s %s, %s)", words, r.Method, r.Path, a.Program)
	}
}

// asked are the layers of what the person named when the session was started.
func asked(cfg *Config) []policy.Layer {
	hosts := policy.Layer{Name: "--allow-host", Origin: policy.Given}
	for _, h := range cfg.AllowHosts {
		hosts.Network = append(hosts.Network, policy.NetRule{Verdict: policy.Allow, Host: h})
	}
	l := policy.Layer{Name: "--credential", Origin: policy.Given, Limits: cfg.Tokens}
	for _, name := range cfg.Credentials {
		known, _ := policy.KnownCredential(name) // what there isn't was refused
		for _, c := range known {
			l.Network = append(l.Network, c.Rule())
		}
	}
	return []policy.Layer{hosts, l}
}
