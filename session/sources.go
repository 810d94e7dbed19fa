package session

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"stepbox/runner"
	"stepbox/session/api"
	"stepbox/session/loop"
	"stepbox/session/outfit"
	"stepbox/session/rules"
)

// openSources reads the policies of the person and of the project. A session doesn't
// start with one that can't be read: what that forbids would be let through.
func (s *Session) openSources() error {
	cfg := s.cfg
	set, err := rules.Open(rules.Config{
		User:    rules.User(cfg.Home, outfit.Variable(cfg.Env, "XDG_CONFIG_HOME")),
		Project: filepath.Join(cfg.Workspace, rules.Name), Trust: rules.TrustIn(cfg.DataDir),
	})
	if err != nil {
		return &runner.StartError{Reason: err.Error()}
	}
	s.sources, s.read = set, set.Now()
	return nil
}

// recognise finds the agent's profile. A session doesn't start by another if the right one
// may be one that can't be read, or if two are.
func (s *Session) recognise() error {
	cfg := s.cfg
	s.profiles, s.unread = rules.LookProfiles(rules.Profiles(cfg.Home, outfit.Variable(cfg.Env, "XDG_CONFIG_HOME")))
	argv, file, real := outfit.Started(cfg.Argv, cfg.Env, cfg.Workspace)
	for _, b := range s.unread {
		if b.MayBe(argv, file) || b.MayBe(argv, real) {
			return &runner.StartError{Reason: "the agent's profile may be one that can't be used: " + b.Err.Error()}
		}
	}
	s.profile = outfit.ProfileFor(s.profiles, cfg.Argv, cfg.Env, cfg.Workspace)
	if err := cmp.Or(s.profiles.Clash(argv, file), s.profiles.Clash(argv, real)); err != nil {
		return &runner.StartError{Reason: err.Error()}
	}
	return nil
}

// followSources has changes of the files hold from now on.
func (s *Session) followSources() {
	err := s.sources.Follow(func(now rules.State) { s.loop.WhenStarted(func() { s.adopt(now, nil) }) })
	if err != nil {
		s.note(true, "changes of policies aren't noticed before the session is resumed: %s", api.Escape(err.Error()))
	}
	for _, f := range policyFiles(&s.read) {
		s.untrusted(f)
	}
	for _, words := range s.missing {
		s.note(true, "%s", api.Escape(words))
	}
	s.missing = nil
}

// adopt has what the files say now hold, once it is recorded.
func (s *Session) adopt(now rules.State, done func(error)) {
	if s.loop.Now() >= loop.Draining { // the next start reads them
		if done != nil {
			done(ErrEnded)
		}
		return
	}
	if now.N <= s.read.N { // it does, or is about to
		s.record(done)
		return
	}
	was := policyFiles(&s.read)
	s.read, s.info.Policy = now, policyFiles(&now)
	asking := s.info.Asking
	s.info.Asking = s.patience()
	s.record(func(err error) {
		if err == nil {
			s.ruled()
			if asking != s.info.Asking {
				for _, q := range slices.Clone(s.questions) {
					s.unasked(q)
				}
			}
		}
		if done != nil {
			done(err)
		}
	}, s.changed("ruled"))
	for _, f := range s.info.Policy {
		i := slices.IndexFunc(was, func(o api.PolicyFile) bool { return o.For == f.For })
		s.sayChange(was[i], f)
	}
}

// sayChange tells a person how a policy is another now.
func (s *Session) sayChange(was, now api.PolicyFile) {
	switch {
	case now.Problem != "" && now.Problem != was.Problem:
		// The place comes early: where a screen cuts the rest off, that can be acted on.
		s.note(true, "not in force: %s; what was there before holds on", now.Problem)
	case now.Problem != "":
	case now.Hash == "" && was.Hash != "":
		s.note(true, "%s is gone: its rules don't hold any more", now.Path)
	case now.Hash != was.Hash || now.Trusted != was.Trusted:
		s.note(false, "%s is in force as it is now (%.12s)", now.Path, now.Hash)
		s.untrusted(now)
	case was.Problem != "":
		s.note(false, "%s is as it was again", now.Path)
	}
}

// untrusted tells a person of a project's policy that nobody has confirmed.
func (s *Session) untrusted(f api.PolicyFile) {
	if f.Hash != "" && !f.Trusted && f.Loosens {
		s.note(true, "%s isn't trusted: what it denies or asks about holds, what it allows doesn't; look at it with stepbox policy trust %s", f.Path, api.Escape(s.cfg.Workspace))
	}
}

// policyFiles is what a person is told of policies that were read.
func policyFiles(s *rules.State) []api.PolicyFile {
	of := func(e api.Extent, f *rules.Source) api.PolicyFile {
		out := api.PolicyFile{For: e, Path: api.Escape(f.Path), Hash: f.Hash, Trusted: f.Trusted, Loosens: f.Loosens()}
		if f.Problem != nil {
			out.Problem = api.Escape(api.Trim(fmt.Sprint(f.Problem), maxReason))
		}
		return out
	}
	return []api.PolicyFile{of(api.ExtentAlways, &s.User), of(api.ExtentProject, &s.Project)}
}
