package session

import (
	"slices"
	"strconv"

	"stepbox/session/api"
)

// aboutCommand is whether an action runs: its programs wait to be started.
type aboutCommand struct{ plain }

func (aboutCommand) fault(q *question, d api.Decision) error {
	if d.Answer == api.AnswerKeep || d.Answer == api.AnswerRollback {
		return api.Problemf(api.CodeInvalid, "#%d is a command that waits to run: approve or deny it", q.Action)
	}
	return nil
}

func (aboutCommand) rules(s *Session, q *question, d api.Decision, r api.Rule) ([]api.Rule, error) {
	return s.commandRules(q, d, r)
}

func (aboutCommand) follows(s *Session, q *question, d api.Decision) (next func(), also []api.Event) {
	a := q.action
	if a.By = d.By; q.Closed == "deny" {
		return func() { s.deny(a, "denied by "+d.By, reason(d)) }, nil
	}
	a.person = true
	a.into = d.Answer == api.AnswerStepInto
	a.keeps = d.Answer == api.AnswerApproveKeep
	over := d.Answer == api.AnswerStepOver
	return func() { s.letRun(a, "approved by "+d.By, func() { s.holdNext = over }) }, nil
}

// aboutProgram is whether an action that runs starts a program.
type aboutProgram struct {
	aboutCommand
	kin   *kin // that starts it
	joins bool // it joins the action, which waits for it
}

func (p *aboutProgram) fault(q *question, d api.Decision) error {
	if d.Answer == api.AnswerApproveKeep {
		return api.Problemf(api.CodeInvalid, "#%d isn't a command that waits to run: its changes can't be kept ahead", q.Action)
	}
	return p.aboutCommand.fault(q, d)
}

func (p *aboutProgram) follows(s *Session, q *question, d api.Decision) (next func(), also []api.Event) {
	a, x := q.action, q.execs[0]
	if q.Closed == "deny" {
		return func() {
			s.refuse(a, "denied by "+d.By, reason(d), nil, x)
			if p.joins {
				s.leaderGone(a, nil)
			}
		}, nil
	}
	s.judge.Approved(x)
	a.shown = append(a.shown, shownOf(x))
	over := d.Answer == api.AnswerStepOver
	if over {
		p.stepOver(a)
	}
	p.kin.person = p.kin.person || p.joins
	return func() {
		s.letNested(q, p, x, "approved by "+d.By)
		if over {
			s.letOthers(a, "approved by "+d.By+": what #"+strconv.Itoa(a.N)+" starts")
		}
	}, nil
}

// stepOver has no more be asked about of what is started there: by what was approved as the action, or by what joined it.
func (p *aboutProgram) stepOver(a *action) {
	switch {
	case a.into, p.joins:
	case p.kin.joined:
		p.kin.first.over = true
	default:
		a.over = true
	}
	a.into = false
}

// letOthers lets what else waits of an action start, as far as the person lets it start what it likes.
func (s *Session) letOthers(a *action, rule string) {
	for _, q := range slices.Clone(s.questions) {
		p, nested := q.about.(*aboutProgram)
		if nested && q.action == a && !p.joins && p.kin.freed() && q.state == questionOpen && len(q.execs) > 0 {
			x := q.execs[0]
			s.closeByRule(q, rule, "allow", func() { s.letNested(q, p, x, rule) })
		}
	}
}
