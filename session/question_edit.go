package session

import (
	"fmt"
	"strconv"
	"time"

	"stepbox/session/api"
)

// aboutEdit is whether changes that were made are kept or rolled back.
type aboutEdit struct {
	plain
	until int64 // the last checkpoint whose changes it is about
}

// edit says whether a question is about changes.
func (q *question) edit() bool {
	_, is := q.about.(*aboutEdit)
	return is
}

func (*aboutEdit) fault(q *question, d api.Decision) error {
	if d.Answer != api.AnswerKeep && d.Answer != api.AnswerRollback {
		return api.Problemf(api.CodeInvalid, "#%d has happened: keep its changes or roll them back", q.Action)
	}
	return nil
}

func (e *aboutEdit) follows(s *Session, q *question, _ api.Decision) (next func(), also []api.Event) {
	next = func() { s.unfreeze(q) }
	if q.Closed != "keep" { // rolled back
		return next, nil
	}
	a := q.action
	if err := a.review(api.ReviewKept); err != nil {
		s.log.Warn("kept twice", "error", err)
	}
	a.KeptTo = e.until
	also = append(also, s.actionEvent(a, "kept"))
	for _, n := range a.SharedWith { // it goes on from here
		s.actions.at(n).answered = time.Now()
	}
	if a.unseen { // what its processes changed since is asked about next
		a.unseen = false
		s.grow(a)
	}
	return next, also
}

// reviewOf asks in step mode what becomes of an action's changes, up to a checkpoint.
func reviewOf(a *action, changed []api.Change, until int64) *question {
	q := &question{
		Question: api.Question{
			Action: a.N, Subject: api.SubjectEdit, Title: a.Title, Changes: changed,
			Rule: "step mode: changes are kept or rolled back before the agent's next command",
		},
		about: &aboutEdit{until: until}, action: a,
	}
	if a.State == api.ActionRunning {
		q.Rule += "; it still runs: to roll them back ends it"
	}
	return q
}

// sharedBy says which commands may have made some of an edit's changes.
func (s *Session) sharedBy(q *question) *question {
	var run, ran []string
	for _, n := range q.action.SharedWith {
		if name := "#" + strconv.Itoa(n); s.actions.at(n).State == api.ActionRunning {
			run = append(run, name)
		} else {
			ran = append(ran, name)
		}
	}
	if len(ran) > 0 {
		q.Rule += fmt.Sprintf("; %s ran as well and may have made some of them", listed(ran, len(ran), len(ran)))
	}
	if len(run) > 0 {
		q.Rule += fmt.Sprintf("; %s may have made some of them and still runs: to roll them back takes them from under it", listed(run, len(run), len(run)))
	}
	return q
}
