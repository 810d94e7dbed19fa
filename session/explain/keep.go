package explain

import (
	"context"
	"path/filepath"
	"time"

	"stepbox/policy"
	"stepbox/session/api"
	"stepbox/session/rules"
)

// prepared is what a rule is to be, and the files in which it is.
func (s *Service) prepared(r api.FolderRule) (api.Rule, rules.Config, error) {
	cfg, err := s.inFolder(r.Folder)
	if err != nil {
		return r.Rule, cfg, err
	}
	if !r.Rule.Kept() {
		return r.Rule, cfg, api.Problemf(api.CodeUsage, "without a session a rule is for a project, or always")
	}
	made, err := rules.Checked(r.Rule)
	return made, cfg, err
}

// changed is what became of a rule that was to be put into its file, or taken out.
func changed(cfg rules.Config, r api.Rule, err error) (api.RuleKept, error) {
	file := cfg.Project
	if r.For == api.ExtentAlways {
		file = cfg.User
	}
	out := api.RuleKept{File: api.Escape(file)}
	switch {
	case rules.IsNone(err):
		return out, api.Problemf(api.CodeNotFound, "there is no rule to %s in %s", r.Words(), out.File)
	case err != nil:
		return out, api.Problemf(api.CodeInvalid, "%s", api.Escape(err.Error()))
	}
	return out, nil
}

// KeepRule puts a rule into the person's file or a project's, where no session does.
func (s *Service) KeepRule(_ context.Context, r api.FolderRule) (api.RuleKept, error) {
	made, cfg, err := s.prepared(r)
	if err != nil {
		return api.RuleKept{}, err
	}
	out, err := changed(cfg, made, cfg.Add("made on "+time.Now().Format(time.DateOnly), made))
	if err == nil {
		now := rules.Look(cfg)
		p := policy.Of(now.Layers()...)
		out.Beaten = api.Escape(rules.Beaten(p, made, filepath.Dir(cfg.Project), s.Home))
	}
	return out, err
}

// ForgetRule takes one out.
func (s *Service) ForgetRule(_ context.Context, r api.FolderRule) (api.RuleKept, error) {
	gone, cfg, err := s.prepared(r)
	if err != nil {
		return api.RuleKept{}, err
	}
	return changed(cfg, gone, cfg.Remove(gone))
}
