package session

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"stepbox/runner/socket"
	"stepbox/session/api"
	"stepbox/session/loop"
	"stepbox/session/tell"
)

// maxCalls bounds what the agent itself asks at once.
const maxCalls = 3

// Bounds of what it asks, in bytes: of its words, and of what a tool is to be given, which
// a person has to see.
const (
	maxAsked = 600
	maxGiven = 4 << 10
)

// call is a question of the agent's own: whether it may call a tool, as it would ask at
// its own terminal, or one in words. The answer goes back to the agent and is nothing
// else: what it does then is judged as ever.
type call struct {
	answered chan tell.Decision // has room for the one answer; closed without one when there is none
	claim    *api.Claim         // the tool's call that it is about; nil for a question in words
}

// allowedTo asks the person what the agent's own prompt does. Where nobody is asked
// about anything, it is left to that prompt.
func (s *Session) allowedTo(ctx context.Context, c *socket.Conn, claim api.Claim) (tell.Reply, error) {
	watch := false
	if err := s.loop.Request(ctx, func() { watch = s.info.Mode == api.ModeWatch }); err != nil || watch {
		return tell.Reply{}, err
	}
	d, err := s.asks(ctx, c, mayUse(&claim), "the agent's own prompt: yes lets it go on, and what it starts then is judged as ever", &claim)
	if err != nil {
		return tell.Reply{}, err // its own prompt asks
	}
	return tell.Reply{Decision: &d}, nil
}

// mayUse is what is asked about a call: what it does, not what it says that it is for.
func mayUse(c *api.Claim) string {
	what := marked(cmp.Or(c.Command, strings.Join(c.Paths, ", ")), maxGiven)
	if what == "" {
		if what = c.Input; c.Cut {
			what += "… and more"
		}
	}
	return "may it use " + c.Tool + ": " + what
}

// asksPerson is a tool of the agent's.
func (s *Session) asksPerson(ctx context.Context, c *socket.Conn, text string) (string, error) {
	text = api.Escape(marked(text, maxAsked))
	if text == "" {
		return "", errors.New("there is no question")
	}
	d, err := s.asks(ctx, c, "the agent asks: "+text, "the answer goes back in words and allows nothing: approve says yes, deny no, either with a reason", nil)
	if err != nil {
		return "", err
	}
	answer := "The person says no."
	if d.Allow {
		answer = "The person says yes."
	}
	if d.Reason != "" {
		answer += " In their words: " + d.Reason
	}
	return answer + " This changes nothing of what you may do.", nil
}

// asks waits for a person's answer as long as the agent does.
func (s *Session) asks(ctx context.Context, c *socket.Conn, title, rule string, claim *api.Claim) (tell.Decision, error) {
	_ = c.SetReadDeadline(time.Time{})
	ctx, cancel := context.WithTimeout(ctx, tell.AskWait) // whoever asks may never hang up
	defer cancel()
	go func() { // it writes no more: reading ends when it is gone
		_, _ = c.Read(make([]byte, 1))
		cancel()
	}()
	var q *question
	err := s.loop.Do(context.WithoutCancel(ctx), func(done func(error)) { // what is asked is waited for, or withdrawn
		switch {
		case ctx.Err() != nil:
			done(ctx.Err())
		case s.loop.Now() != loop.Running:
			done(ErrEnded)
		case s.calls() >= maxCalls:
			done(errors.New("the person has enough questions of yours to answer"))
		case !s.claims.calls.Allow(): // one that comes and goes keeps a person from answering others
			done(errTooOften)
		default:
			q = s.askCall(title, rule, claim)
			done(nil)
		}
	})
	if err != nil {
		return tell.Decision{}, err
	}
	select {
	case d, ok := <-q.about.(*call).answered:
		if !ok {
			return tell.Decision{}, errors.New("nobody answered")
		}
		return d, nil
	case <-ctx.Done():
		s.loop.Submit(func() { s.withdraw(q) })
		return tell.Decision{}, ctx.Err()
	case <-s.loop.In(loop.Stopping):
		return tell.Decision{}, ErrEnded
	}
}

func (s *Session) calls() (n int) {
	for _, q := range s.questions {
		if _, is := q.about.(*call); is && q.Open() {
			n++
		}
	}
	return n
}

// askCall shows the person what the agent asks, as an action that waits.
func (s *Session) askCall(title, rule string, claim *api.Claim) *question {
	a := &action{profile: s.profile}
	s.actions.add(a)
	a.Kind, a.StartedAt, a.Title, a.Rule = api.KindCall, time.Now().UTC(), title, rule
	if claim != nil {
		s.ofCall(claim)
		s.claim(claim)
		a.Claim = &api.Claimed{N: claim.N, Tool: claim.Tool, Text: claim.Text}
	}
	q := &question{
		Question: api.Question{Action: a.N, Subject: api.SubjectCall, Title: title, Rule: rule},
		about:    &call{make(chan tell.Decision, 1), claim}, action: a,
	}
	a.question = q
	if err := a.to(api.ActionHeld); err != nil {
		s.fail(err)
	}
	s.open(q, s.actionEvent(a, "held"))
	return q
}

func (*call) binds(func(...string)) {}

func (*call) fault(q *question, d api.Decision) error {
	if d.For != "" && d.For != api.ExtentOnce {
		d.Answer = "" // it is none
	}
	return eitherOr(d, "#%d is what the agent asks: approve says yes, deny no; neither allows anything, or makes a rule", q.Action)
}

func (*call) rules(*Session, *question, api.Decision, api.Rule) ([]api.Rule, error) {
	return nil, api.Problemf(api.CodeUsage, "what the agent asks can't be made a rule")
}

func (c *call) follows(s *Session, q *question, d api.Decision) (next func(), also []api.Event) {
	return func() { s.answerCall(q, c, d) }, nil
}

// gone ends the action: the question is all that it was. Whoever asked goes on without an answer.
func (c *call) gone(s *Session, q *question) ([]api.Event, error) {
	if err := q.action.to(api.ActionAbandoned); err != nil {
		return nil, err
	}
	q.action.EndedAt = time.Now().UTC()
	close(c.answered)
	return []api.Event{s.actionEvent(q.action, "abandoned")}, nil
}

// answerCall gives the agent its answer.
func (s *Session) answerCall(q *question, c *call, d api.Decision) {
	a := q.action
	allow := q.Closed == "allow"
	steps := []api.ActionState{api.ActionDenied}
	a.Verdict, a.By, a.Reason, a.EndedAt = api.Deny, d.By, d.Reason, time.Now().UTC()
	if allow {
		steps = []api.ActionState{api.ActionRunning, api.ActionEnded}
		a.Verdict, a.ReleasedAt = api.Allow, a.EndedAt
	}
	for _, next := range steps {
		if err := a.to(next); err != nil {
			s.fail(err)
			return
		}
	}
	said := d.Reason
	if !allow {
		said = reason(d)
	}
	s.record(func(err error) {
		if err == nil {
			c.answered <- tell.Decision{Allow: allow, Reason: said}
		}
		close(c.answered)
	}, s.actionEvent(a, map[bool]string{true: "ended", false: "denied"}[allow]), s.changed("counted"))
}

// ofCall gives a permission that is asked for the name of the call that it is about:
// Claude Code's hook doesn't say it. That is the oldest call of the same that hasn't
// ended and isn't asked about yet.
func (s *Session) ofCall(asked *api.Claim) {
	if asked.Call != "" {
		return
	}
	for _, c := range s.claims.recent {
		taken := slices.ContainsFunc(s.questions, func(q *question) bool {
			asked := q.claim()
			return asked != nil && q.Open() && asked.Call == c.Call
		})
		if c.Event != tell.Permission && c.EndedAt.IsZero() && !taken && sameCall(c, asked) {
			asked.Call = c.Call
			return
		}
	}
}

// claim is the tool's call that a question is about; nil: it is about another thing.
func (q *question) claim() *api.Claim {
	if c, is := q.about.(*call); is {
		return c.claim
	}
	return nil
}

// sameCall says whether two claims are of one call, as far as they tell.
func sameCall(a, b *api.Claim) bool {
	if a.By != b.By || a.SessionID != b.SessionID || a.Helper != b.Helper {
		return false
	}
	if a.Call != "" && b.Call != "" {
		return a.Call == b.Call
	}
	return a.Tool == b.Tool && a.Command == b.Command && (a.Command != "" || a.Input == b.Input)
}

// wentOn withdraws the questions about a call that is seen to go on, or to be over: the
// agent's own prompt was answered in the Terminal. An answer would change nothing any
// more, and the record would have it wrong.
func (s *Session) wentOn(c *api.Claim) {
	for _, q := range slices.Clone(s.questions) {
		if asked := q.claim(); asked != nil && sameCall(asked, c) {
			s.withdraw(q)
		}
	}
}

// leftBehind withdraws the questions about calls before what the agent is at now: its own
// prompt was answered with no in the Terminal, of which no hook tells. Calls that it
// makes at once it announces before the first of them asks. If one is late, its own
// prompt is still there.
func (s *Session) leftBehind(now *api.Claim) {
	for _, q := range slices.Clone(s.questions) {
		asked := q.claim()
		if asked != nil && asked.SessionID == now.SessionID && asked.Helper == now.Helper && !sameCall(asked, now) {
			s.withdraw(q)
		}
	}
}
