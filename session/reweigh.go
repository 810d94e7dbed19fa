package session

import (
	"path"
	"slices"
	"strconv"

	"stepbox/policy"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/judge"
	"stepbox/session/loop"
)

// reweigh has the commands that wait be judged by the rules that hold now. Each takes
// a turn of the loop's own: an agent may have many wait, and each may be long.
func (s *Session) reweigh() {
	for _, q := range s.questions {
		if len(q.execs) > 0 && q.state == questionOpen {
			s.loop.Post(func() { s.reweighed(q) })
		}
	}
}

// reweighed answers a question on commands where other rules do. Where they ask, or say
// what the old ones said, it stands as it was asked. In step mode only those allow that are on what the
// agent's own program starts.
func (s *Session) reweighed(q *question) {
	if q.state != questionOpen || len(q.execs) == 0 || s.loop.Now() != loop.Running {
		return
	}
	if p, nested := q.about.(*aboutProgram); nested {
		s.reweighedNested(q, p)
		return
	}
	a := q.action
	if a.State != api.ActionHeld || a.question != q || !s.newest(a) && s.info.Mode != api.ModeStep {
		return
	}
	mode := s.info.Mode
	if mode == api.ModeWatch {
		mode = api.ModePolicy // it waits, since it did before
	}
	verdict, rule := s.weigh(a, mode)
	switch verdict {
	case api.Allow:
		a.By = "rule"
		s.closeByRule(q, rule, "allow", func() { s.letRun(a, rule, nil) })
	case api.Deny:
		a.By = "rule"
		s.closeByRule(q, rule, "deny", func() { s.deny(a, rule, rule) })
	}
}

// newest has an action's members be judged by the rules that hold now, and says whether
// these say anything else of one.
func (s *Session) newest(a *action) (changed bool) {
	for i, x := range a.members {
		now := s.judge.Newest(x)
		changed = changed || now.Judgement.Verdict != x.Judgement.Verdict
		a.members[i] = now
	}
	return changed
}

func (s *Session) reweighedNested(q *question, p *aboutProgram) {
	was := q.execs[0]
	x := s.judge.Newest(was)
	q.execs[0] = x
	if x.Judgement.Verdict == was.Judgement.Verdict || x.Judgement.Verdict == policy.Ask {
		return
	}
	switch verdict, rule := s.within(p.kin, x, p.joins); verdict {
	case api.Allow:
		s.closeByRule(q, rule, "allow", func() { s.letNested(q, p, x, rule) })
	case api.Deny:
		s.closeByRule(q, rule, "deny", func() {
			s.refuse(q.action, rule, rule, nil, x)
			if p.joins {
				s.leaderGone(q.action, nil)
			}
		})
	}
}

// letNested lets a program of an action start that a question was about. In step mode what the agent edited
// meanwhile is asked about first.
func (s *Session) letNested(q *question, p *aboutProgram, x *judge.Exec, rule string) {
	start := func(*files.Checkpoint) {
		s.letting = slices.DeleteFunc(s.letting, func(o *question) bool { return o == q })
		switch {
		case len(q.execs) > 0 && p.joins && q.action.undone: // its changes could be nobody's
			s.refuse(q.action, rule, "what it joined was rolled back meanwhile", nil, x)
			s.leaderGone(q.action, nil)
		case len(q.execs) > 0:
			s.start(p.kin, x, rule, p.joins, nil)
		case p.joins: // it went away meanwhile
			s.leaderGone(q.action, nil)
		}
	}
	if s.info.Mode != api.ModeStep {
		start(nil)
		return
	}
	s.letting = append(s.letting, q)
	s.afterEdits(start)
}

// afterEdits does something with a checkpoint of all that was changed until then. In step mode what of that is
// an edit of the agent's has been answered, and what others ask about meanwhile.
func (s *Session) afterEdits(then func(*files.Checkpoint)) {
	s.checkpoint(func(cp *files.Checkpoint, err error) {
		switch {
		case err != nil: // the session ends
		case s.info.Mode == api.ModeStep && (s.edits > 0 || s.questions.edit() != nil || s.askRunning()):
			s.behind = append(s.behind, func() { s.afterEdits(then) })
		default:
			then(cp)
		}
	})
}

// letRun lets a held action run that was asked about, and then does something more.
func (s *Session) letRun(a *action, rule string, then func()) {
	// The agent's other threads may have edited while it was held: those edits
	// aren't this action's.
	held := slices.Clone(a.members)
	if !a.apart() {
		for _, x := range held {
			s.roster.released[procOf(x)] = &released{n: a.N}
		}
	}
	s.afterEdits(func(cp *files.Checkpoint) {
		verdict := api.Allow
		if !a.person && s.info.Mode == api.ModeStep { // what the rule was about may be another by now
			verdict, a.Rule = s.weigh(a, s.info.Mode)
		}
		if a.State != api.ActionHeld || verdict != api.Allow { // or it went away meanwhile
			for _, x := range held {
				delete(s.roster.released, procOf(x))
			}
			s.ask(a)
			return
		}
		a.Before = cp.ID
		s.release(a, rule)
		if then != nil {
			then()
		}
	})
}

// within is the verdict on a program that a kin starts, or that joins its action.
func (s *Session) within(k *kin, x *judge.Exec, joins bool) (api.Verdict, string) {
	a, j := k.action, x.Judgement
	if joins {
		verdict, rule := verdictOf(x, s.info.Mode, s.holdNext)
		if a.into && verdict == api.Allow {
			verdict, rule = api.Ask, "step into: every program of this action is held"
		}
		return verdict, "it joins action " + strconv.Itoa(a.N) + ", which runs, and is judged by itself: " + rule
	}
	switch {
	case j.Verdict == policy.Deny:
		return api.Deny, api.Escape(j.Denial())
	case x.Ours:
		return api.Allow, "Stepbox's own program, which speaks for the agent"
	case k.freed():
	case a.into:
		return api.Ask, "step into: every program of this action is held"
	case s.info.Mode == api.ModeStep: // an answer says what is covered, and no rule
		if why := s.uncovered(k, x); why != "" {
			return api.Ask, "step mode: " + why
		}
	case s.info.Mode == api.ModeWatch || k.children || k.person || a.again(x):
	default:
		return api.Verdict(j.Verdict), j.Rule
	}
	return api.Allow, "part of action " + strconv.Itoa(a.N)
}

// uncovered says why a person's approval doesn't cover a program that a kin starts; "": it does.
func (s *Session) uncovered(k *kin, x *judge.Exec) string {
	a := k.action
	switch n := strconv.Itoa(a.N); {
	case k.person && s.roster.led(k, x):
		return ""
	case k.person:
		return "what was approved of action " + n + " has ended, or isn't above what starts this: others may have it do so"
	case a.person || k.joined:
		by := "something"
		if p, _, _ := s.roster.belongs(x); p != nil {
			by = path.Base(p.exec.Program)
		}
		return api.Escape(by) + " starts it, and may have been told to by others than action " + n
	}
	return "nobody approved what starts this"
}
