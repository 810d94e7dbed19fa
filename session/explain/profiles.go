package explain

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"stepbox/policy"
	"stepbox/session/api"
	"stepbox/session/rules"
)

// profileDir is the folder of the person's own profiles.
func (s *Service) profileDir() string { return rules.Profiles(s.Home, s.Config) }

// profiles are those that can be used now.
func (s *Service) profiles() *policy.Profiles {
	ps, _ := rules.LookProfiles(s.profileDir())
	return ps
}

// Profiles lists all profiles, those that can't be used last.
func (s *Service) Profiles(context.Context) ([]api.Profile, error) {
	ps, broken := rules.LookProfiles(s.profileDir())
	var out []api.Profile
	for _, p := range ps.All() {
		out = append(out, s.profile(p))
	}
	for _, b := range broken {
		name := strings.TrimSuffix(filepath.Base(b.File), ".yaml")
		out = append(out, api.Profile{Name: api.Escape(name), File: api.Escape(b.File), Problem: api.Escape(b.Err.Error())})
	}
	return out, nil
}

// Profile is one, with its text.
func (s *Service) Profile(_ context.Context, name string) (api.Profile, error) {
	ps, broken := rules.LookProfiles(s.profileDir())
	for _, b := range broken {
		if filepath.Base(b.File) == name+".yaml" {
			return api.Profile{}, api.Problemf(api.CodeInvalid, "%s", api.Escape(b.Err.Error()))
		}
	}
	p := ps.Named(name)
	if p == nil || name == "" {
		return api.Profile{}, api.Problemf(api.CodeNotFound, "there is no profile %q: there are %s", api.Escape(name), ps.Names())
	}
	out := s.profile(p)
	out.Text = string(p.Text)
	return out, nil
}

// profile is what one says, in words.
func (s *Service) profile(p *policy.Profile) api.Profile {
	says := p.Says()
	out := api.Profile{
		Name: p.Name, Title: api.Escape(p.Title), File: api.Escape(p.File), Replaces: p.File != "" && policy.BuiltinProfiles().Named(p.Name) != nil,
		Home: api.Escape(filepath.Join(s.Data, "homes", p.Name)), Passed: api.EscapeAll(says.Pass), Wanted: api.EscapeAll(p.Wants()), SignIn: api.Escape(says.SignIn),
		Args: api.EscapeAll(says.Args), Wrappers: says.Wrappers,
	}
	if len(says.Programs) > 0 {
		out.Recognised = append(out.Recognised, api.Escape("a program that is called "+strings.Join(says.Programs, " or ")))
	}
	for _, glob := range says.Paths {
		out.Recognised = append(out.Recognised, api.Escape("a file "+glob))
	}
	if len(says.Interpreters) > 0 {
		out.Recognised = append(out.Recognised, api.Escape("each of these as a script of "+strings.Join(says.Interpreters, " or ")))
	}
	if len(out.Recognised) == 0 {
		out.Recognised = []string{"every program that no other profile is for"}
	}
	for _, v := range says.Set {
		out.Set = append(out.Set, api.Escape(fmt.Sprintf("%s=%s", v.Name, valueOf(v))))
	}
	for _, r := range p.Layer().Network {
		host := api.Escape(r.Host.String())
		switch r.Verdict {
		case policy.Allow:
			out.Hosts = append(out.Hosts, host)
		case policy.Deny:
			out.Refused = append(out.Refused, host)
		}
	}
	for _, flag := range slices.Sorted(maps.Keys(p.Prompts)) {
		out.Prompts = append(out.Prompts, api.Escape(flag+": "+p.Prompts[flag]))
	}
	return out
}
