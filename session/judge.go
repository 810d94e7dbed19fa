package session

import (
	"path"
	"slices"
	"strings"

	"stepbox/policy"
	"stepbox/runner/gate"
	"stepbox/session/api"
)

// command is one exec as a person judges it.
func (s *Session) command(e *gate.Exec, profile *policy.Profile) api.Command {
	peeled := profile.Peel(e.Argv)
	env, whole := differing(s.env, e.Env)
	c := api.Command{
		Line:      api.Escape(peeled.Line) + s.unlike(e, peeled),
		Argv:      api.EscapeAll(e.Argv),
		Truncated: e.Truncated || !whole,
		Cwd:       api.Escape(e.Cwd),
		Program:   api.Escape(e.Program.Path),
		Written:   s.made(e),
		Env:       api.EscapeAll(env),
		Unpinned:  api.EscapeAll(e.Unpinned),
		Pid:       e.PID,
	}
	shown := slices.Concat(e.Argv, env, []string{e.Cwd, e.Program.Path})
	c.Unclear = slices.ContainsFunc(shown, api.Unclear)
	switch {
	case len(e.Pipes) > 0:
		c.Unpinned = append(c.Unpinned, "it may run what it reads there: what it starts is asked about")
	case fed(e):
		c.Unpinned = append(c.Unpinned, "it runs what it reads from its standard input, which nobody can look into: what it starts is asked about")
	}
	sources := peeled.Sources
	for _, f := range peeled.Startup {
		if f = path.Join(s.cfg.Home, f); s.places.wrote(f) {
			sources = append(sources, f)
		}
	}
	for _, src := range sources {
		if s.suspect(src) {
			c.Sources = append(c.Sources, api.Escape(src))
		}
	}
	for _, a := range e.Ancestors {
		c.Parents = append(c.Parents, api.Escape(a.Name))
	}
	return c
}

// unlike names the program that runs when its name isn't what it calls itself.
// A script and what the system's alternatives lead to are told by /bin/ls and
// the like having one of the names. What the agent or the project may have made
// is named in any case, unless the line has its path.
func (s *Session) unlike(e *gate.Exec, peeled policy.Peeled) string {
	runs := " [runs " + api.Escape(e.Program.Path) + "]"
	if len(e.Argv) == 0 {
		return runs
	}
	if s.made(e) || s.places.made(e.Program.Path) {
		at := e.Argv[0]
		if !path.IsAbs(at) {
			at = path.Join(e.Cwd, at)
		}
		if !peeled.Wrapped && strings.Contains(e.Argv[0], "/") && path.Clean(at) == e.Program.Path {
			return ""
		}
		return runs
	}
	name := strings.TrimPrefix(path.Base(e.Argv[0]), "-")
	if name == path.Base(e.Program.Path) || name == path.Base(e.Path) && systems(e.Path) && systems(e.Program.Path) {
		return ""
	}
	return runs
}

// systems says whether a path is in a folder of the system's programs, whose
// links the agent can't have made.
func systems(file string) bool {
	return slices.ContainsFunc([]string{"/usr/", "/bin/", "/sbin/"}, func(dir string) bool { return strings.HasPrefix(path.Clean(file), dir) })
}

// judge asks the rules about one exec.
func (s *Session) judge(e *gate.Exec, c *api.Command, profile *policy.Profile) policy.Judgement {
	if e.Truncated {
		return policy.Judgement{Verdict: policy.Ask, Rule: "its arguments are too large to be read whole"}
	}
	j := s.policy.Command(s.facts(e, profile.Peel(e.Argv).Argv))
	if n := len(e.Files); len(e.Prefix) > 0 && n > 1 && len(e.Argv) > 0 {
		// The kernel runs the script's interpreter with its arguments.
		f := s.facts(e, slices.Concat(e.Prefix, e.Argv[1:]))
		f.Program = e.Files[n-1].Path
		if k := s.policy.Command(f); stricter(api.Verdict(k.Verdict), api.Verdict(j.Verdict)) {
			j = k
		}
	}
	for _, p := range j.Parts {
		c.Parts = append(c.Parts, api.Part{Text: api.Escape(p.Text), Verdict: api.Verdict(p.Verdict), Rule: p.Rule})
	}
	if e.Linker != "" && j.Verdict == policy.Allow {
		j.Verdict, j.Rule = policy.Ask, "it starts in the dynamic linker "+api.Escape(e.Linker)+", which the agent can write"
	}
	if len(c.Sources) > 0 && j.Verdict == policy.Allow {
		j.Verdict, j.Rule = policy.Ask, "it reads commands from "+c.Sources[0]+", which the agent can write"
	}
	return j
}

// facts is one exec as the rules see it.
func (s *Session) facts(e *gate.Exec, argv []string) policy.Command {
	return policy.Command{
		Argv: argv, Cwd: e.Cwd, Program: e.Program.Path, Written: s.made(e) || e.Linker != "",
		Project: s.cfg.Workspace, Home: s.cfg.Home, Wrote: s.places.wrote,
		Resolve: func(name string) string {
			f, err := e.Lookup(name)
			if err != nil {
				return ""
			}
			return f.Path
		},
	}
}

// verdict is what the mode makes of the rules' judgement for an action that begins.
func (s *Session) verdict(j policy.Judgement) (api.Verdict, string) {
	switch {
	case j.Verdict == policy.Deny:
		return api.Deny, j.Rule
	case s.holdNext:
		return api.Ask, "step over: hold the next action"
	case s.info.Mode == api.ModeStep:
		return api.Ask, "step mode holds every action"
	case s.info.Mode == api.ModeWatch:
		return api.Allow, "watch mode"
	}
	return api.Verdict(j.Verdict), j.Rule
}

// weigh judges all members of an action; the strictest verdict counts.
func (s *Session) weigh(a *action) (api.Verdict, string) {
	a.commands, a.children = nil, true
	worst, why, again := api.Allow, "", false
	var lines []string
	for i, e := range a.members {
		c := s.command(e, a.profile)
		j := s.judge(e, &c, a.profile)
		v, rule := s.verdict(j)
		if i == 0 || stricter(v, worst) {
			worst, why = v, rule
		}
		a.children = a.children && j.NestedAllowed
		a.commands = append(a.commands, c)
		lines = append(lines, c.Line)
	}
	a.Title = strings.Join(lines, " | ")
	for _, e := range a.members {
		if p := policy.ProfileFor(e.Argv, e.Program.Path); p.Agent() {
			a.agent = p
		} else if !a.becomes && a.parent != nil && a.parent.is.again(e) {
			a.agent, again = a.profile, true
		}
	}
	if again && worst != api.Deny {
		why = "the agent starts itself again, and what that starts is judged as the agent's: " + why
	}
	if a.becomes && worst != api.Deny {
		why = becoming(a.commands[0]) + ": " + why
	}
	if a.doubt != "" && worst != api.Deny {
		why = a.doubt + ": " + why
	}
	return worst, why
}

func stricter(a, b api.Verdict) bool {
	rank := map[api.Verdict]int{api.Allow: 0, api.Ask: 1, api.Deny: 2}
	return rank[a] > rank[b]
}
