package explain

import (
	"context"
	"fmt"
	"strings"

	"stepbox/policy"
	"stepbox/session/api"
)

// Show is all layers of a session or a project, from the general to the specific.
func (s *Service) Show(ctx context.Context, of api.PolicyOf) (api.Policy, error) {
	r, err := s.holding(ctx, of)
	if err != nil {
		return api.Policy{}, err
	}
	var out api.Policy
	for _, f := range r.layers {
		l := api.PolicyLayer{Name: api.Escape(f.name), File: api.Escape(f.Path), Files: api.EscapeAll(f.Whole.Sources), Absent: f.absent, Confirmed: f.Trusted, Hash: f.Hash}
		if f.Problem != nil {
			l.Problems = problems(f.Problem)
		}
		l.Entries = entries(&f.Whole, f.Trusted)
		out.Layers = append(out.Layers, l)
	}
	return out, nil
}

// entries are all that a layer says, by section and in order.
func entries(l *policy.Layer, confirmed bool) (out []api.PolicyEntry) {
	add := func(section, text string, at policy.Where, loosens bool) {
		out = append(out, api.PolicyEntry{Section: section, Text: api.Escape(text), File: api.Escape(at.File), Line: at.Line, Idle: loosens && !confirmed})
	}
	for i := range l.Rules {
		r := &l.Rules[i]
		text := r.String()
		if in := r.Folders(); len(in) > 0 {
			text += " (in " + strings.Join(in, ", ") + ")"
		}
		add("commands", text, policy.Where{File: r.File, Line: r.Line}, r.Verdict == policy.Allow)
	}
	for i := range l.Network {
		r := &l.Network[i]
		add("network", r.String(), policy.Where{File: r.File, Line: r.Line}, r.Verdict == policy.Allow)
	}
	for _, k := range []struct {
		section string
		rules   []policy.FileRule
	}{{"hide", l.Hide}, {"read-only", l.ReadOnly}, {"review", l.Review}} {
		for _, f := range k.rules {
			add(k.section, f.Glob, f.Where, false)
		}
	}
	for _, m := range l.Limits {
		add("limits", m.String(), m.Where, false)
	}
	for _, v := range l.Pass {
		add("pass", v.Name, v.Where, true)
	}
	for _, v := range l.Set {
		add("set", v.Name+"="+valueOf(v), v.Where, true)
	}
	for _, n := range l.Names {
		add("names", n.Range.String(), n.Where, true)
	}
	for _, m := range l.Mounts {
		how := "read"
		if m.Write {
			how = "changed"
		}
		add("mounts", fmt.Sprintf("%s, to be %s", m.Path, how), m.Where, true)
	}
	for _, a := range l.Asking {
		text := a.On
		if a.Timeout > 0 {
			text = strings.TrimSpace(fmt.Sprintf("%s for %s", a.On, a.Timeout))
		}
		add("ask", text, a.Where, false)
	}
	for _, c := range l.Checks {
		add("checks", c.Command, c.Where, false)
	}
	return out
}
