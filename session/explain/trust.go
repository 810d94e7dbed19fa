package explain

import (
	"context"
	"path/filepath"

	"stepbox/session/api"
	"stepbox/session/rules"
)

// inFolder is where the rules for a project are: its own and the person's.
func (s *Service) inFolder(folder string) (rules.Config, error) {
	if !filepath.IsAbs(folder) {
		return rules.Config{}, api.Problemf(api.CodeUsage, "a project is named by its absolute path, not %q", api.Escape(folder))
	}
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return rules.Config{}, api.Problemf(api.CodeNotFound, "cannot look at the project: %s", api.Escape(err.Error()))
	}
	return rules.Config{User: s.User, Project: filepath.Join(folder, rules.Name), Trust: s.Trust}, nil
}

// Project is the policy that comes with a project, and whether a person confirmed it.
func (s *Service) Project(_ context.Context, folder string) (api.ProjectPolicy, error) {
	cfg, err := s.inFolder(folder)
	if err != nil {
		return api.ProjectPolicy{}, err
	}
	return projectPolicy(cfg), nil
}

func projectPolicy(cfg rules.Config) api.ProjectPolicy {
	cfg.User = ""
	state := rules.Look(cfg)
	p := &state.Project
	out := api.ProjectPolicy{Folder: filepath.Dir(cfg.Project), Hash: p.Hash, Trusted: p.Hash != "" && p.Trusted, Loosens: p.Loosens()}
	if p.Problem != nil {
		out.Problem = api.Escape(p.Problem.Error())
	}
	for i, f := range p.Whole.Sources { // what was hashed is shown, whatever is there by now
		out.Files = append(out.Files, api.PolicyText{Path: api.Escape(f), Text: string(p.Whole.Texts[i])})
	}
	return out
}

// Confirm lets hold what the policy of a project allows, if it is still what was shown.
func (s *Service) Confirm(ctx context.Context, r api.TrustRequest) (api.ProjectPolicy, error) {
	cfg, err := s.inFolder(r.Folder)
	if err != nil {
		return api.ProjectPolicy{}, err
	}
	switch now := projectPolicy(cfg); {
	case now.Problem != "":
		return now, api.Problemf(api.CodeInvalid, "%s", now.Problem)
	case now.Hash == "":
		return now, api.Problemf(api.CodeNotFound, "%s has no %s", api.Escape(now.Folder), rules.Name)
	case now.Hash != r.Hash:
		return now, api.Problemf(api.CodeStale, "the policy of %s isn't what was shown any more; look at it again", api.Escape(now.Folder))
	}
	if err := cfg.Trust.Confirm(cfg.Project, r.Hash, api.Person(ctx)); err != nil {
		return api.ProjectPolicy{}, err
	}
	return projectPolicy(cfg), nil
}

// Distrust takes that back.
func (s *Service) Distrust(_ context.Context, folder string) (api.ProjectPolicy, error) {
	cfg, err := s.inFolder(folder)
	if err != nil {
		return api.ProjectPolicy{}, err
	}
	if _, err := cfg.Trust.Forget(cfg.Project); err != nil {
		return api.ProjectPolicy{}, err
	}
	return projectPolicy(cfg), nil
}
