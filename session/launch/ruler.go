package launch

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"stepbox/policy"
	"stepbox/session/api"
	"stepbox/session/rules"
)

// ruler puts rules into the files of a person and of projects, where no session does.
type ruler struct{ data, home string }

// prepared is what a rule is to be, and the files in which it is.
func (t ruler) prepared(r api.FolderRule) (api.Rule, rules.Config, error) {
	cfg, err := truster{t.data}.config(r.Folder)
	if err != nil {
		return r.Rule, cfg, err
	}
	cfg.User = rules.User(t.home, os.Getenv("XDG_CONFIG_HOME"))
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

// KeepRule implements server.Ruler.
func (t ruler) KeepRule(_ context.Context, r api.FolderRule) (api.RuleKept, error) {
	made, cfg, err := t.prepared(r)
	if err != nil {
		return api.RuleKept{}, err
	}
	out, err := changed(cfg, made, cfg.Add("made on "+time.Now().Format(time.DateOnly), made))
	if err == nil {
		now := rules.Look(cfg)
		p := policy.Builtin().With(now.Layers()...)
		out.Beaten = api.Escape(rules.Beaten(p, made, filepath.Dir(cfg.Project), t.home))
	}
	return out, err
}

// ForgetRule implements server.Ruler.
func (t ruler) ForgetRule(_ context.Context, r api.FolderRule) (api.RuleKept, error) {
	gone, cfg, err := t.prepared(r)
	if err != nil {
		return api.RuleKept{}, err
	}
	return changed(cfg, gone, cfg.Remove(gone))
}
