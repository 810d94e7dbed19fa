package session

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"stepbox/policy"
	"stepbox/runner/egress"
	"stepbox/session/api"
	"stepbox/session/loop"
	"stepbox/session/network"
	"stepbox/session/rules"
)

// tried is a connection that no rule decides.
func (s *Session) tried(t *network.Try) {
	if s.loop.Now() >= loop.Stopping {
		return // the gateway ends, and so does what waits
	}
	t.Action, t.Own, t.Sends = s.roster.byPID(t.At.PID), s.roster.own(t.At.PID), s.roster.sends(t.At.PID)
	now := time.Now()
	if v, ok := s.network.Settled(t, now); ok { // rules changed meanwhile
		t.Answer(v)
		return
	}
	h, first := s.network.Tries.Hold(t, now)
	if !first {
		s.retold(h)
		return
	}
	if h.Flood() {
		open := func(h *network.Held) bool { q := s.questionOf(h); return q != nil && q.state == questionOpen }
		for _, over := range s.network.Tries.Absorb(h, open) {
			s.withdraw(s.questionOf(over))
		}
	}
	s.open(&question{
		Question: api.Question{Action: t.Action, Subject: api.SubjectConnection, Title: titleOfHeld(h), Rule: t.Why, Connection: s.connection(h)},
		about:    &aboutTries{held: h},
	})
	s.expireLater(h)
}

// maxRefusals bounds of how many destinations an agent is told that they are denied.
const maxRefusals = 100

// attempted records how an attempt stands.
func (s *Session) attempted(e api.Event) {
	if a := e.Attempt; a.Verdict == api.Deny && !a.Open {
		why := network.Refused(api.Trim(a.Rule, maxReason))
		if a.GaveUp() {
			why = notYet
		}
		s.unreached(a.Action, cmp.Or(a.Pattern(), a.Host()), why)
	}
	if a := s.actions.at(e.Attempt.Action); a != nil {
		a.reached = true
	}
	if e.Attempt.Refused > 0 {
		s.sayRefused(e.Attempt)
	}
	s.record(nil, e)
}

const notYet = "not allowed yet: the person is asked, and what tries it again is served by the answer"

// unreached has the agent be told once, with its next command, what one of its commands
// couldn't reach: the program itself only sees that it was refused, or that it took too
// long.
func (s *Session) unreached(action int, to, why string) {
	why = to + ", is " + why
	if action == 0 || s.word != "" || len(s.refusals) >= maxRefusals || slices.Contains(s.refusals, why) {
		return
	}
	s.refusals = append(s.refusals, why)
	s.word = fmt.Sprintf("what #%d tried to reach, %s", action, why)
}

// gaveUp is a program that doesn't wait any more. Its question stands for when it
// tries again.
func (s *Session) gaveUp(t *network.Try) {
	if h := s.network.Tries.Leave(t); h != nil {
		s.retold(h)
	}
}

// aboutTries is whether connections are opened that programs try.
type aboutTries struct {
	held    *network.Held
	telling bool // how they stand is told before long
}

// tries are the connections that a question is about; nil for any other.
func (q *question) tries() *network.Held {
	if c, is := q.about.(*aboutTries); is {
		return c.held
	}
	return nil
}

func (c *aboutTries) binds(put func(...string)) {
	k := c.held.Key
	put("connection", k.Program, strconv.FormatBool(k.Written), k.To.String(), k.Limit, k.Sends)
}

func (c *aboutTries) fault(_ *question, d api.Decision) error {
	if c.held.Flood() && d.Answer == api.AnswerApprove {
		return api.Problemf(api.CodeInvalid, "it is %d destinations and more: deny them, or make rules for those that may be reached (stepbox allow HOST)", len(c.held.Others))
	}
	return eitherOr(d, "it is a connection: approve or deny it")
}

func (c *aboutTries) rules(_ *Session, _ *question, d api.Decision, r api.Rule) ([]api.Rule, error) {
	if c.held.Flood() {
		return nil, api.Problemf(api.CodeUsage, "many destinations can be denied once; rules are made for one after the other (stepbox deny HOST)")
	}
	if c.held.Limit() != "" {
		return nil, api.Problemf(api.CodeUsage, "more than a limit is allowed once, or denied once; the limit itself stands in a policy, see stepbox policy show")
	}
	to := c.held.Key.To
	if r.Host = d.Pattern; r.Host == "" {
		r.Host = to.String()
	}
	r, err := rules.Checked(r)
	if err != nil {
		return nil, err
	}
	if h, err := policy.ParseHost(r.Host); err != nil || !h.Match(to) {
		return nil, api.Problemf(api.CodeUsage, "%s isn't about %s, which was asked about", r.Host, api.Escape(to.String()))
	}
	return []api.Rule{r}, nil
}

func (c *aboutTries) follows(s *Session, q *question, d api.Decision) (next func(), also []api.Event) {
	return func() { s.answerHeld(q, c.held, d) }, nil
}

// questionOf is the question about some tries; nil when it is closed.
func (s *Session) questionOf(h *network.Held) *question {
	for _, q := range s.questions {
		if q.tries() == h {
			return q
		}
	}
	return nil
}

// connection is what a person is told of some tries.
func (s *Session) connection(h *network.Held) *api.Connection {
	to := h.Last.To
	c := &api.Connection{
		Protocol: string(to.Protocol), Host: api.Escape(cmp.Or(to.Name, addressOf(to))), Port: to.Port, Program: api.Escape(h.Last.At.Program),
		Pid: h.Last.At.PID, Tries: h.Tries, Waiting: h.Waiting(), LastTry: h.LastTry.UTC(), Limit: api.Escape(h.Limit()),
	}
	if h.Flood() {
		c = &api.Connection{Tries: h.Tries, Waiting: h.Waiting(), LastTry: h.LastTry.UTC()}
		for _, d := range h.Others {
			c.Many = append(c.Many, api.Escape(d.String()))
		}
		return c
	}
	c.Rule = api.Escape(to.String())
	c.Written, c.LastTime, c.Sends = h.Last.Written, s.network.LastTime(to), h.Last.Sends
	return c
}

func addressOf(d policy.Destination) string {
	if !d.Addr.IsValid() {
		return ""
	}
	return d.Addr.String()
}

func titleOfHeld(h *network.Held) string {
	if h.Flood() {
		return "connections to many destinations"
	}
	if l := h.Limit(); l != "" {
		return "go on beyond a limit: " + api.Escape(l+", at "+h.Last.To.String())
	}
	return "connect to " + api.Escape(h.Key.To.String())
}

// toldEvery is how often a question tells how many try at most.
const toldEvery = time.Second

// retold has the record say how a question's tries stand now, before long.
func (s *Session) retold(h *network.Held) {
	q := s.questionOf(h)
	if q == nil {
		return
	}
	c := q.about.(*aboutTries)
	if c.telling {
		return
	}
	c.telling = true
	time.AfterFunc(toldEvery, func() {
		s.loop.Submit(func() {
			c.telling = false
			if q.state == questionOpen && s.loop.Now() == loop.Running {
				before := q.Connection.LastTime // the time before it was asked
				q.Connection = s.connection(h)
				q.Connection.LastTime = before
				s.record(nil, q.event("changed"))
			}
		})
	})
}

// expireLater withdraws a question once nobody has tried for long.
func (s *Session) expireLater(h *network.Held) {
	time.AfterFunc(network.Patience, func() {
		s.loop.Submit(func() {
			q := s.questionOf(h)
			switch {
			case q == nil || s.loop.Now() >= loop.Stopping:
			case h.Stale(time.Now()):
				s.network.Tries.Drop(h)
				s.withdraw(q)
			default:
				s.expireLater(h)
			}
		})
	})
}

// answerHeld gives those that wait the answer that was recorded.
func (s *Session) answerHeld(q *question, h *network.Held, d api.Decision) {
	if h.Limit() != "" {
		s.answerLimit(q, h, d)
		return
	}
	v := egress.Verdict{Allow: q.Closed == "allow", Rule: "denied by " + d.By}
	if d.Reason != "" {
		v.Rule += ": " + d.Reason
	}
	if v.Allow {
		// Who was asked about an address, or a port of this host, named it.
		to := h.Key.To
		v.Rule, v.Private = "approved by "+d.By, to.Name == "" || to.Name == policy.HostService
	} else if !h.Flood() { // of that each is told as it is refused
		// Before the program is refused, since its next command may be there at once.
		s.unreached(h.Last.Action, h.Key.To.String(), network.Refused(api.Trim(v.Rule, maxReason)))
	}
	s.answerTries(h, v, d.For == "" || d.For == api.ExtentOnce)
}

// answerTries gives those that wait a verdict. What is beyond a limit is asked about anew.
func (s *Session) answerTries(h *network.Held, v egress.Verdict, remember bool) {
	for _, t := range s.network.Tries.Answer(h, v, remember, time.Now()) {
		s.tried(t)
	}
}

// answerLimit lets what is used up be used once more, or ends what waits for it.
func (s *Session) answerLimit(q *question, h *network.Held, d api.Decision) {
	if q.Closed != "allow" {
		s.network.Tries.Answer(h, egress.Verdict{Rule: "denied by " + d.By + ": " + h.Last.Why}, true, time.Now())
		return
	}
	s.network.More(h)
	for _, t := range s.network.Tries.Take(h) {
		s.tried(t)
	}
}
