package apply

import (
	"fmt"
	"slices"

	"stepbox/policy"
	"stepbox/runner/overlay/diff"
	"stepbox/session/api"
)

// ruled is what policies say of a project's files.
type ruled struct{ fixed, review []policy.FileRule }

// rules are those of a session's project as policies are now, whatever they were when it
// ran. One that can't be read has nothing applied.
func (a *Applier) rules(s api.Session) (ruled, error) {
	if a.Rules == nil {
		return ruled{}, nil
	}
	p, err := a.Rules(s)
	if err != nil {
		return ruled{}, api.Problemf(api.CodeInvalid, "a policy can't be read, and it may protect files: %s", api.Escape(err.Error()))
	}
	return ruled{p.ReadOnly(), p.Review()}, nil
}

// protects is the rule that keeps a path from being changed; nil: none does.
func (r ruled) protects(path string) *policy.FileRule { return about(r.fixed, path) }

// reviews is the rule that wants a change looked at; nil: none does.
func (r ruled) reviews(c *diff.Change) *policy.FileRule {
	for _, path := range c.Paths() {
		if f := about(r.review, path); f != nil {
			return f
		}
	}
	return nil
}

func about(rules []policy.FileRule, path string) *policy.FileRule {
	i := slices.IndexFunc(rules, func(f policy.FileRule) bool { return f.Match(path) })
	if i < 0 {
		return nil
	}
	return &rules[i]
}

// also adds to what is to be looked at what rules want looked at, though an action that was
// kept made it, and says how many that are.
func (r ruled) also(open, all []diff.Change) (_ []diff.Change, wanted int) {
	for i := range all {
		c := &all[i]
		if r.reviews(c) == nil {
			continue
		}
		wanted++
		if !slices.ContainsFunc(open, func(o diff.Change) bool { return o.Path == c.Path }) {
			open = append(open, *c)
		}
	}
	return open, wanted
}

// standing is a rule and where it stands, not escaped.
func standing(r *policy.FileRule) string {
	return fmt.Sprintf("%s (%s, line %d)", r.Glob, r.File, r.Line)
}
