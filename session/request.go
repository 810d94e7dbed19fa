package session

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"stepbox/session/api"
	"stepbox/session/loop"
)

// maxRequests wait at once: more are refused.
const maxRequests = 16

// request is what a program of the sandbox wants of the person's.
type request struct {
	plain // an answer for the session is remembered with it, and no rule
	api.Request
	title string
	// same is what an answer for the session is remembered by; only of those that last.
	same    string
	verdict chan error // has room for it
}

var (
	errTooMany = errors.New("too many requests wait for an answer")
	errEnding  = errors.New("the session is ending")
)

// request asks the person, or whoever was asked before and said that it holds for the
// session. It waits until there is an answer or ctx ends, which withdraws the question.
// Nil is yes. It is called outside of the loop.
func (s *Session) request(ctx context.Context, r request) error {
	r.verdict = make(chan error, 1)
	var q *question
	err := s.loop.Call(context.WithoutCancel(ctx), func() { // what is asked is waited for, or withdrawn
		if ctx.Err() == nil {
			q = s.requested(&r)
		}
	})
	if err != nil {
		return errEnding
	}
	select {
	case err = <-r.verdict:
		return err
	case <-ctx.Done():
		s.loop.Submit(func() {
			if q != nil {
				s.withdraw(q)
			}
		})
		return ctx.Err()
	case <-s.loop.In(loop.Stopping):
		return errEnding
	}
}

// requested asks about a request, unless it is answered already.
func (s *Session) requested(r *request) *question {
	waiting := 0
	for _, q := range s.questions {
		if _, is := q.about.(*request); is {
			waiting++
		}
	}
	said, ok := s.granted[r.same]
	switch {
	case s.loop.Now() >= loop.Stopping:
		r.verdict <- errEnding
		return nil
	case r.Lasts && ok:
		r.verdict <- said
		return nil
	case waiting >= maxRequests, !s.claims.calls.Allow(): // one that comes and goes is many, too
		r.verdict <- errTooMany
		return nil
	}
	q := &question{
		Question: api.Question{Action: s.roster.byPID(r.Pid), Subject: api.SubjectRequest, Title: r.title, Rule: "each is asked about", Request: &r.Request},
		about:    r,
	}
	s.open(q)
	return q
}

func (r *request) follows(s *Session, q *question, d api.Decision) (next func(), also []api.Event) {
	return func() { s.answerRequest(q, r, d) }, nil
}

// answerRequest gives a request the answer that was recorded.
func (s *Session) answerRequest(q *question, r *request, d api.Decision) {
	var said error
	if q.Closed != "allow" {
		said = errors.New("denied by " + d.By + ": " + reason(d))
		s.unreached(q.Action, q.Title, "denied: "+reason(d))
	}
	if d.For == api.ExtentSession {
		if s.granted == nil {
			s.granted = make(map[string]error)
		}
		s.granted[r.same] = said
	}
	r.verdict <- said
	for _, o := range slices.Clone(s.questions) { // what waits beside it, for the same
		beside, is := o.about.(*request)
		if said, ok := s.granted[r.same]; ok && is && beside.Lasts && beside.same == r.same && o.state == questionOpen {
			s.withdraw(o)
			beside.verdict <- said
		}
	}
}

func (r *request) fault(_ *question, d api.Decision) error {
	switch {
	case d.For == api.ExtentProject, d.For == api.ExtentAlways:
		return api.Problemf(api.CodeInvalid, "a request is answered once, or for the session")
	case d.For == api.ExtentSession && !r.Lasts:
		return api.Problemf(api.CodeInvalid, "it isn't known well enough what this is for: it is answered once")
	}
	return eitherOr(d, "it is a request: approve or deny it")
}

func (r *request) binds(put func(...string)) {
	out := []string{"request", r.title, r.Program, strconv.Itoa(r.Pid), strings.Join(r.Warn, "\x00")}
	for _, f := range r.Facts {
		out = append(out, f.Name, f.Value)
	}
	put(out...)
}
