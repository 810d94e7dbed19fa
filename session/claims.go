package session

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"stepbox/runner/gate"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/socket"
	"stepbox/session/api"
	"stepbox/session/tell"
)

// Bounds of what the sandbox may say. An agent may call a hundred tools at once.
const (
	claimConns  = 32
	claimPace   = 50              // connections in a second
	claimRate   = 5               // recorded claims in a second, on average
	claimBurst  = 200             // and at once
	callRate    = 0.5             // questions and checkpoints that it asks for in a second, on average
	callBurst   = 20              // and at once
	maxClaims   = 256             // that what comes may be put beside
	maxJoined   = 32              // actions of a claim
	claimHear   = 5 * time.Second // for a peer to say all, and to take the answer
	claimBehind = 3 * time.Second // after a call, in which an edit is still seen
)

// claims are what the agent said by its hooks of late, the newest last. They are owned
// by the session's loop.
type claims struct {
	last    int64
	recent  []*api.Claim // at most maxClaims
	pace    *rate.Limiter
	calls   *rate.Limiter // what a person sees of its calls: questions, marks of the files
	flooded bool          // that was said
}

// sockets are what the sandbox's programs can speak to.
func (s *Session) sockets() map[string]socket.Service {
	s.claims.pace, s.claims.calls = rate.NewLimiter(claimRate, claimBurst), rate.NewLimiter(callRate, callBurst)
	s.servers.opens = rate.NewLimiter(openRate, openBurst)
	return map[string]socket.Service{tell.Socket: {
		Limits: socket.Limits{Conns: claimConns, PerSecond: claimPace, Lasts: tell.AskWait},
		Serve:  s.hear,
	}}
}

// hear answers one message of the sandbox.
func (s *Session) hear(ctx context.Context, c *socket.Conn) {
	_ = c.SetReadDeadline(time.Now().Add(claimHear))
	line, err := c.ReadMessage(tell.MessageLimit)
	if err != nil {
		return
	}
	m, err := tell.Parse(line)
	if err != nil || !s.loop.Started() {
		return
	}
	var by int
	known := false
	if s.loop.Request(ctx, func() { by, known = s.roster.speaker(c.PID) }) != nil || !known {
		return
	}
	var reply tell.Reply
	switch {
	case m.Open != nil:
		err = s.loop.Request(ctx, func() { reply = s.wantsOpen(m.Open.URL, by) })
	case m.Hook != nil:
		claim := m.Hook.Claim()
		if claim.Event == tell.Permission && by == 0 {
			reply, err = s.allowedTo(ctx, c, claim)
			s.reply(c, reply, err)
			return
		}
		err = s.loop.Request(ctx, func() { reply = s.hooked(claim, by) })
	default:
		reply = s.called(ctx, c, *m.Call, by)
	}
	s.reply(c, reply, err)
}

func (s *Session) reply(c *socket.Conn, reply tell.Reply, err error) {
	if err != nil {
		return // whoever asked goes on without
	}
	if text, err := json.Marshal(reply); err == nil {
		_ = c.SetWriteDeadline(time.Now().Add(claimHear))
		_, _ = c.Write(append(text, '\n'))
	}
}

// speaker is the action whose process speaks, 0: the agent itself does, or its own
// upkeep for it. It isn't known of a process that is gone: it may have been a command's,
// which left its connection to another.
func (r *roster) speaker(pid int) (action int, known bool) {
	mark := gate.MarkOf(pid)
	if k := r.kins[mark]; k != nil && !k.action.apart() {
		return k.action.N, true
	}
	return 0, mark != 0
}

// hooked takes note of what a hook said. Only the agent itself is told what there is to
// tell.
func (s *Session) hooked(c api.Claim, by int) (r tell.Reply) {
	c.By = by
	switch {
	case c.Event == "PreToolUse":
		s.claim(&c)
	case strings.HasPrefix(c.Event, "PostToolUse"):
		s.unclaim(&c)
	}
	if by != 0 {
		return r
	}
	if c.SessionID != "" && c.SessionID != s.info.AgentSession {
		s.info.AgentSession = c.SessionID
		s.countSoon()
	}
	if tell.Next(c.Event) {
		s.leftBehind(&c)
	}
	if tell.Told(c.Event) {
		r.Context, s.word = s.secrets.Text(s.word, ""), ""
	}
	return r
}

// claim records that the agent calls a tool.
func (s *Session) claim(c *api.Claim) {
	if !s.claims.pace.Allow() {
		if !s.claims.flooded {
			s.claims.flooded = true
			s.note(true, "the agent tells of more tool calls than are recorded: at most %d at once and %d a second", claimBurst, claimRate)
		}
		return
	}
	s.claims.last++
	c.N, c.At = s.claims.last, time.Now().UTC()
	list := s.claims.recent
	s.claims.recent = append(list[max(len(list)+1-maxClaims, 0):], c)
	s.record(nil, c.Said("made"))
}

// unclaim records that a call is over.
func (s *Session) unclaim(over *api.Claim) {
	s.wentOn(over)
	for _, c := range slices.Backward(s.claims.recent) {
		if c.EndedAt.IsZero() && sameCall(c, over) {
			c.EndedAt = time.Now().UTC()
			s.record(nil, c.Said("ended"))
			return
		}
	}
}

// claimed puts an action beside the call that says to have begun it: one of a command
// that is the same, the oldest of which nothing came yet.
func (s *Session) claimed(a *action) {
	var lines []string
	for _, x := range a.members {
		lines = append(lines, strings.TrimSpace(x.Command.Line))
		if n := len(x.Command.Argv); n > 0 {
			lines = append(lines, strings.TrimSpace(x.Command.Argv[n-1]))
		}
	}
	lines = append(lines, a.Title)
	s.join(a, func(c *api.Claim) bool {
		return c.Command != "" && c.EndedAt.IsZero() && slices.Contains(lines, strings.TrimSpace(c.Command))
	})
}

// claimedEdit is claimed for files that the agent wrote.
func (s *Session) claimedEdit(a *action, changed []diff.Change) {
	s.join(a, func(c *api.Claim) bool {
		late := !c.EndedAt.IsZero() && c.EndedAt.Add(claimBehind).Before(a.StartedAt)
		return c.Writes && !late && slices.ContainsFunc(changed, func(d diff.Change) bool {
			return slices.Contains(c.Paths, api.Escape(s.cfg.Workspace+"/"+d.Path))
		})
	})
}

// join puts an action beside the call that has the fewest of those that fit.
func (s *Session) join(a *action, fits func(*api.Claim) bool) {
	var found *api.Claim
	for _, c := range s.claims.recent {
		if c.By == 0 && fits(c) && (found == nil || len(c.Actions) < len(found.Actions)) {
			found = c
		}
	}
	if found == nil {
		return
	}
	a.Claim = &api.Claimed{N: found.N, Tool: found.Tool, Text: found.Text}
	if len(found.Actions) < maxJoined {
		found.Actions = append(found.Actions, a.N)
	}
	s.wentOn(found)
}
