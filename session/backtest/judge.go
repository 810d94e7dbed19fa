package backtest

import (
	"slices"

	"stepbox/policy"
)

// Unknown is said of what the record doesn't tell enough of to be judged.
const Unknown policy.Verdict = "unknown"

// Says is what some rules say of a deed, or why that can't be told.
type Says struct {
	policy.Judgement
	// Again says that it is asked about, by a question that was answered already.
	Again bool
	// Within says that it wasn't judged by itself: it is part of something that was, or
	// would not have been without something that is denied.
	Within bool
	// Stepped says that step mode asks about it.
	Stepped bool
}

// rank orders what is said of several programs of one job: what is certain to stop
// counts, then what isn't known.
func rank(v policy.Verdict) int {
	return slices.Index([]policy.Verdict{policy.Allow, Unknown, policy.Ask, policy.Deny}, v)
}

// start is what rules say of a program start. Project and home are as the sandbox had
// them.
func (s *Start) start(p *policy.Policy, project, home string) policy.Judgement {
	var out policy.Judgement
	readings := s.readings()
	if len(readings) == 0 {
		return unknown("its arguments weren't recorded whole")
	}
	for i, argv := range readings {
		j := s.reading(argv, p, project, home)
		if i > 0 && j.Verdict != out.Verdict {
			return unknown("whether backslashes of its arguments are such wasn't recorded")
		}
		out = j
	}
	return out
}

const whyUnrecorded = "whether it was the agent's own that it read commands from wasn't recorded"

func unknown(why string) policy.Judgement { return policy.Judgement{Verdict: Unknown, Rule: why} }

func (s *Start) reading(argv []string, p *policy.Policy, project, home string) policy.Judgement {
	peeled := s.profile.Peel(argv)
	c := policy.Command{Argv: peeled.Argv, Cwd: s.Cwd, Program: s.Program, Project: project, Home: home}
	b := s.Basis
	if b != nil && len(argv) > 0 && len(c.Argv) > 0 && c.Argv[0] == argv[0] {
		c.Started, c.Posing = b.Started, b.Posing
	}
	out := p.Command(c)
	if b != nil && len(b.Interpreter) > 0 && len(argv) > 0 {
		c.Argv, c.Program, c.Started, c.Posing = slices.Concat(b.Interpreter, argv[1:]), b.Loaded, "", false
		if k := p.Command(c); k.Verdict.Stricter(out.Verdict) {
			out = k
		}
	}
	switch doubted := p.Doubted(out, whyUnrecorded); {
	case b == nil && len(peeled.Sources) > 0 && doubted.Verdict != out.Verdict:
		return unknown(whyUnrecorded)
	case b != nil && b.Doubt != "":
		return p.Doubted(out, b.Doubt)
	}
	return out
}

// job is what rules say of programs that begin together.
func job(starts []Start, p *policy.Policy, project, home string) policy.Judgement {
	out := policy.Judgement{Verdict: policy.Allow, NestedAllowed: true}
	for i := range starts {
		j := starts[i].start(p, project, home)
		nested := out.NestedAllowed && j.NestedAllowed
		if i == 0 || rank(j.Verdict) > rank(out.Verdict) || out.Layer == "" && j.Layer != "" && j.Verdict == out.Verdict {
			out = j
		}
		out.NestedAllowed = nested
	}
	return out
}
