package session

import (
	"slices"

	"stepbox/policy"
	"stepbox/session/api"
	"stepbox/session/judge"
	"stepbox/session/rules"
)

// commandRules are what an answer on commands is to be made: with a pattern that, else
// one for exactly each of the simple commands that are asked about.
func (s *Session) commandRules(q *question, d api.Decision, r api.Rule) (made []api.Rule, err error) {
	patterns := []string{d.Pattern}
	if len(q.execs) == 0 {
		return nil, api.Problemf(api.CodeGone, "#%d is no longer held", q.Action)
	}
	if q.shape() && r.Verdict == api.Allow && r.For == api.ExtentSession && s.info.Mode == api.ModeStep {
		return shapeRule(q, d, r)
	}
	if d.Pattern == "" {
		patterns = nil
		for _, x := range q.execs {
			for _, p := range s.parts(x) {
				exact, ok := s.exactly(x, p, r.Verdict)
				if !ok {
					return nil, api.Problemf(api.CodeInvalid, "%s can't be made a rule: what it does is known only when it runs, or no rule can hold it", api.Escape(api.Trim(p.Text, 200)))
				}
				patterns = append(patterns, exact)
			}
		}
	}
	for _, p := range patterns {
		r.Command = p
		checked, err := rules.Checked(r)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(q.execs, func(x *judge.Exec) bool { return s.about(x, checked) }) {
			return nil, api.Problemf(api.CodeUsage, "%q isn't about what was asked about", api.Escape(api.Trim(checked.Command, 200)))
		}
		if !slices.ContainsFunc(made, checked.Same) {
			made = append(made, checked)
		}
	}
	return made, nil
}

// shape says whether a question is about one program that the agent's own program starts.
func (q *question) shape() bool { return q.Command != nil && q.Command.Itself && len(q.execs) == 1 }

// shapeRule is the rule on what the agent's own program starts, see shape of a Session.
func shapeRule(q *question, d api.Decision, r api.Rule) ([]api.Rule, error) {
	argv := q.execs[0].Argv
	r.Itself = q.execs[0].Program.Path
	if r.Command = d.Pattern; r.Command == "" {
		r.Command, _ = rules.Exactly(argv)
	}
	r, err := rules.Checked(r)
	if err == nil && !rules.Shapes(r.Command, argv) {
		err = api.Problemf(api.CodeUsage, "%q isn't about what was asked about", api.Escape(api.Trim(r.Command, 200)))
	}
	return []api.Rule{r}, err
}

// parts are the simple commands of an exec that rules ask about, or all where none is.
func (s *Session) parts(x *judge.Exec) []policy.Part {
	all := x.Judgement.Parts
	asks := slices.DeleteFunc(slices.Clone(all), func(p policy.Part) bool { return p.Verdict == policy.Allow })
	if len(asks) > 0 {
		return asks
	}
	return all
}

// about says whether a rule decides anything of an exec.
func (s *Session) about(x *judge.Exec, r api.Rule) bool {
	return slices.ContainsFunc(x.Judgement.Parts, func(p policy.Part) bool { return s.decides(x, p, r) })
}

// exactly is the rule for just one of the simple commands of an exec.
func (s *Session) exactly(x *judge.Exec, p policy.Part, v api.Verdict) (string, bool) {
	for _, words := range p.Readings() {
		text, ok := rules.Exactly(words)
		if ok && s.decides(x, p, api.Rule{Verdict: v, Command: text}) {
			return text, true
		}
	}
	return "", false
}

// decides says whether a simple command of an exec has a rule's verdict by that, once
// it is made.
func (s *Session) decides(x *judge.Exec, p policy.Part, r api.Rule) bool {
	l, err := rules.Layer("the rule", []api.Rule{r})
	if err != nil {
		return false
	}
	verdict := policy.Verdict(r.Verdict)
	with := s.judge.Policy()
	if p.Verdict == verdict { // it has it without: would the rule change another?
		for i := range l.Rules {
			l.Rules[i].Verdict = policy.Deny
		}
		verdict = policy.Deny
		with = &policy.Policy{}
	}
	j := s.judge.By(x, with.With(l))
	return slices.ContainsFunc(j.Parts, func(o policy.Part) bool { return o.Text == p.Text && o.Verdict == verdict })
}
