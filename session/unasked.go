package session

import (
	"fmt"
	"time"

	"stepbox/policy"
	"stepbox/session/api"
	"stepbox/session/loop"
)

// askingBy is what becomes of questions, by what the session was started with and by what
// policies say: the strictest of all that. What the session was started with says where
// that is said, unless it is in a flag.
func askingBy(given api.Asking, p *policy.Policy) api.Asking {
	given.By = api.Escape(api.Trim(given.By, maxReason))
	switch {
	case given.By != "":
	case given.On == api.OnAskDeny:
		given.By = "--on-ask deny"
	case given.Timeout > 0:
		given.By = "--ask-timeout"
	}
	for _, a := range p.Asking() {
		by := fmt.Sprintf("ask, %s:%d", api.Escape(a.File), a.Line)
		given = given.Stricter(api.Asking{On: api.OnAsk(a.On), Timeout: a.Timeout, By: by})
	}
	return given
}

// patience is what becomes of questions as policies were read last.
func (s *Session) patience() api.Asking {
	return askingBy(s.cfg.Asking, s.rules.With(s.read.Layers()...))
}

// unasked sees to it that a question doesn't wait for longer than the session's questions
// may by now.
func (s *Session) unasked(q *question) {
	switch a := s.info.Asking; {
	case a.On == api.OnAskDeny:
		s.loop.Post(func() { s.denyUnasked(q, fmt.Sprintf("nobody is asked in this session (%s)", a.By)) })
	case a.Timeout > 0:
		s.denyLater(q, q.left(a.Timeout))
	}
}

// left is how long a question still waits, of how long questions do. It is counted by a
// clock that nobody sets: a host's that is put back would have the agent wait for ever.
func (q *question) left(timeout time.Duration) time.Duration {
	return time.Until(q.since.Add(timeout))
}

// denyLater denies a question that isn't answered by then, if that is still how long
// questions wait. One whose answer is being carried out is looked at again: that may fail,
// and then it stands.
func (s *Session) denyLater(q *question, after time.Duration) {
	time.AfterFunc(after, func() {
		s.loop.Submit(func() {
			a := s.info.Asking
			switch {
			case a.On == api.OnAskDeny || a.Timeout == 0 || q.left(a.Timeout) > 0: // it was changed, and seen to then
			case q.state == questionAnswering:
				s.denyLater(q, a.Timeout)
			default:
				s.denyUnasked(q, fmt.Sprintf("nobody answered within %s (%s)", a.Timeout, a.By))
			}
		})
	})
}

// denyUnasked answers a question that no person does. Changes that were made can't be
// denied any more: they stay unreviewed, and the agent goes on.
func (s *Session) denyUnasked(q *question, why string) {
	if q.state != questionOpen || s.loop.Now() != loop.Running {
		return
	}
	if q.edit() {
		s.withdraw(q)
		return
	}
	d := api.Decision{Question: q.ID, Hash: q.Hash, Answer: api.AnswerDeny, Reason: why, By: api.Nobody, At: time.Now().UTC(), Action: q.Action}
	s.close(q, d, func(error) {}) // that it can't be recorded ends the session
}
