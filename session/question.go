package session

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zeebo/blake3"

	"stepbox/runner/gate"
	"stepbox/session/api"
)

// question is an api.Question with what waits for its answer.
type question struct {
	api.Question
	execs  []*gate.Exec // held; empty for a review
	action *action
	thaw   func() error // the agent is frozen until it is answered
	by     string       // who answered
}

// maxReason bounds what is handed to the agent with a denial, in bytes.
const maxReason = 500

// ask shows a formed action to the person.
func (s *Session) ask(a *action) {
	a.forming = nil
	if a.State != api.ActionHeld || a.question != nil || len(a.members) == 0 {
		return
	}
	s.forming = slices.DeleteFunc(s.forming, func(f *action) bool { return f == a })
	first := a.commands[0]
	first.Before = a.Before
	first.LastTime = s.lastTime(a)
	if len(a.commands) > 1 {
		first.Pipeline = slices.Clone(a.commands[1:])
		first.Line = a.Title
	}
	q := &question{
		Question: api.Question{Action: a.N, Subject: api.SubjectCommand, Title: a.Title, Rule: a.Rule, Command: &first},
		execs:    slices.Clone(a.members), action: a,
	}
	a.question = q
	s.open(q, s.actionEvent(a, "held"))
}

// open puts a question into the record and so before the person.
func (s *Session) open(q *question, also ...api.Event) {
	q.ID = int64(len(s.questions) + 1)
	q.HeldAt = time.Now().UTC()
	q.Hash = q.digest()
	s.questions = append(s.questions, q)
	copied := q.Question
	s.record(nil, append(also, api.Event{Kind: "question.opened", Question: &copied}, s.changed("counted"))...)
}

// digest covers everything that a decision on the question covers: what was
// shown, and the exact bytes behind it.
func (q *question) digest() string {
	h := blake3.New()
	put := func(parts ...string) {
		for _, p := range parts {
			var n [8]byte
			binary.LittleEndian.PutUint64(n[:], uint64(len(p)))
			_, _ = h.Write(n[:]) // a hash never fails
			_, _ = h.WriteString(p)
		}
	}
	put(strconv.FormatInt(q.ID, 10), strconv.Itoa(q.Action), string(q.Subject), q.Title, q.Rule)
	for _, e := range q.execs {
		put("exec", strconv.Itoa(e.PID), strconv.FormatUint(e.Start, 10), e.Path, e.Cwd, e.Program.Path,
			strconv.FormatUint(e.Program.Dev, 16), strconv.FormatUint(e.Program.Ino, 16), string(e.Digest[:]))
	}
	if q.Command != nil {
		put(q.Command.Env...)
	}
	if q.action != nil {
		put("checkpoints", strconv.FormatInt(q.action.Before, 10), strconv.FormatInt(q.action.After, 10))
	}
	for _, c := range q.Changes {
		put(c.Key, c.Status)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Decide answers a question. The first answer that names what is really held
// wins; everyone else is told what became of it. It returns once the decision
// is in the record.
func (s *Session) Decide(ctx context.Context, d api.Decision) (api.Question, error) {
	type result struct {
		q   api.Question
		err error
	}
	done := make(chan result, 1)
	err := s.call(ctx, func() {
		q, err := s.decidable(d)
		if err != nil {
			done <- result{err: err}
			return
		}
		d.At, d.Action = time.Now().UTC(), q.Action
		d.Reason = api.Escape(trim(strings.TrimSpace(d.Reason), maxReason))
		if d.By = api.Escape(trim(d.By, 64)); d.By == "" {
			d.By = "client"
		}
		if d.Answer == api.AnswerRollback {
			// It is closed once the files are back: a roll back may
			// be refused.
			go func() {
				err := s.takeBack(context.WithoutCancel(ctx), q, d)
				s.post(func() { done <- result{q.Question, err} })
			}()
			return
		}
		s.close(q, d, func() { done <- result{q: q.Question} })
	})
	if err != nil {
		return api.Question{}, err
	}
	select {
	case r := <-done:
		return r.q, r.err
	case <-s.ended:
		return api.Question{}, ErrEnded
	case <-ctx.Done():
		return api.Question{}, ctx.Err()
	}
}

// decidable finds the question that a decision names, if it may be answered so.
func (s *Session) decidable(d api.Decision) (*question, error) {
	i := slices.IndexFunc(s.questions, func(q *question) bool { return q.ID == d.Question })
	if i < 0 {
		return nil, problem(api.CodeNotFound, "there is no question %d", d.Question)
	}
	q := s.questions[i]
	if q.Closed == "withdrawn" {
		return nil, problem(api.CodeGone, "action %d is no longer held: what was asked about went away", q.Action)
	}
	if !q.Open() {
		return nil, problem(api.CodeDecided, "%s already answered: %s", q.by, q.Closed)
	}
	if d.Hash != q.Hash {
		return nil, problem(api.CodeStale, "action %d isn't what was shown any more; look at it again", q.Action)
	}
	review := q.Subject == api.SubjectEdit
	switch d.Answer {
	case api.AnswerKeep, api.AnswerRollback:
		if !review {
			return nil, problem(api.CodeInvalid, "action %d is a command that waits to run: approve or deny it", q.Action)
		}
	case api.AnswerApprove, api.AnswerStepInto, api.AnswerStepOver:
		if review {
			return nil, problem(api.CodeInvalid, "action %d has happened: keep its changes or roll them back", q.Action)
		}
		if q.Subject == api.SubjectCommand && s.info.Mode == api.ModeStep {
			for _, o := range s.questions {
				if o.Open() && o.Subject == api.SubjectEdit {
					return nil, problem(api.CodeBusy, "the changes of action %d come first: keep them or roll them back", o.Action)
				}
			}
		}
	case api.AnswerDeny:
		if review {
			return nil, problem(api.CodeInvalid, "action %d has happened: keep its changes or roll them back", q.Action)
		}
	default:
		return nil, problem(api.CodeInvalid, "there is no answer %q: use approve, deny, into, over, keep or rollback", api.Escape(trim(string(d.Answer), 40)))
	}
	return q, nil
}

// close records the answer to a question and then carries it out.
func (s *Session) close(q *question, d api.Decision, then func()) {
	closed := map[api.Answer]string{
		api.AnswerApprove: "allow", api.AnswerStepInto: "allow", api.AnswerStepOver: "allow",
		api.AnswerDeny: "deny", api.AnswerKeep: "keep", api.AnswerRollback: "rollback",
	}
	q.Closed, q.by = closed[d.Answer], d.By
	a := q.action
	copied := q.Question
	events := []api.Event{{Kind: "decision", Decision: &d}, {Kind: "question.closed", Question: &copied}}
	var next func()
	switch {
	case q.Closed == "keep":
		if err := a.review(api.ReviewKept); err != nil {
			s.log.Warn("kept twice", "error", err)
		}
		events = append(events, s.actionEvent(a, "kept"))
		next = func() { s.unfreeze(q) }
	case q.Closed == "rollback":
		next = func() { s.unfreeze(q) }
	case q.Subject == api.SubjectNested:
		e, c := q.execs[0], *q.Command
		if q.Closed == "allow" {
			a.shown = append(a.shown, e.Argv)
			a.into = a.into && d.Answer != api.AnswerStepOver
			next = func() { s.start(a, e, c, "approved by "+d.By, nil) }
		} else {
			next = func() { s.refuse(a, e, c, "denied by "+d.By, reason(d)) }
		}
	case q.Closed == "deny":
		a.By = d.By
		next = func() { s.deny(a, "denied by "+d.By, reason(d)) }
	default:
		a.By, a.person = d.By, true
		a.into = d.Answer == api.AnswerStepInto
		over := d.Answer == api.AnswerStepOver
		next = func() {
			// The agent's other threads may have edited while it was
			// held: those edits aren't this action's.
			s.checkpoint(func(cp *checkpoint) {
				if a.State != api.ActionHeld {
					return // it went away meanwhile
				}
				a.Before = cp.id
				s.release(a, "approved by "+d.By)
				s.holdNext = over
			})
		}
	}
	events = append(events, s.changed("counted"))
	s.record(func() { next(); then() }, events...)
}

func reason(d api.Decision) string {
	if d.Reason == "" {
		return "the person who supervises this session said no"
	}
	return d.Reason
}

// withdraw closes a question whose subject went away.
func (s *Session) withdraw(q *question, also ...api.Event) {
	if !q.Open() {
		return
	}
	q.Closed = "withdrawn"
	copied := q.Question
	s.record(func() { s.unfreeze(q) }, append(also, api.Event{Kind: "question.closed", Question: &copied}, s.changed("counted"))...)
}

// unfreeze lets the agent go on after a review, unless another still waits.
func (s *Session) unfreeze(q *question) {
	if q.thaw == nil {
		return
	}
	if err := q.thaw(); err != nil {
		s.note(true, "cannot let the agent go on: %v", err)
	}
	q.thaw = nil
}

// lastTime says what the last action with the same line did.
func (s *Session) lastTime(a *action) string {
	for _, o := range slices.Backward(s.actions) {
		if o == a || o.Title != a.Title {
			continue
		}
		switch {
		case o.State == api.ActionDenied:
			return fmt.Sprintf("action %d: denied", o.N)
		case o.State == api.ActionEnded && o.Exit != nil:
			return fmt.Sprintf("action %d: %s, %d files changed", o.N, exitWords(o.Exit), o.Files)
		}
	}
	return ""
}
