// Package network judges a session's connections and says what is recorded of them.
// What the sandbox names is hostile: it is escaped here.
package network

import (
	"context"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"stepbox/policy"
	"stepbox/runner/egress"
	"stepbox/session/api"
)

// Network is one session's. Judge, Known and Rules may be called from any goroutine; all else
// is the session's loop's.
type Network struct {
	// Ask hands the loop a try that no rule decides, and Gone one whose program gave
	// up meanwhile.
	Ask, Gone func(*Try)
	// Reached is told once that a limit is used up which ends connections. It may be
	// called from any goroutine.
	Reached func(why string)
	// Wrote says whether this session wrote a program's file, given by its path and when
	// it last changed. It is called from any goroutine; nil is that nothing is known.
	Wrote func(program string, changed time.Time) bool
	Tries Tries
	Last  int64 // the newest attempt's number

	rules    atomic.Pointer[rules]
	accounts accounts
	open     map[int64]int // actions of open attempts
	last     outcomes
	carried  carried
}

// rules are what connections are judged by at a time.
type rules struct {
	policy   *policy.Policy
	mode     api.Mode
	programs bool           // it may depend on the program
	session  []policy.Limit // those that are about all connections
}

// Rules sets by what connections are judged from now on.
func (n *Network) Rules(p *policy.Policy, mode api.Mode) {
	r := &rules{policy: p, mode: mode, programs: p.AsksPrograms()}
	for _, name := range []string{policy.LimitSent, policy.LimitReceived, policy.LimitConnections, policy.LimitRequests, policy.LimitTokens} {
		if l, ok := p.Limit(name); ok {
			r.session = append(r.session, l)
		}
	}
	n.rules.Store(r)
}

// Known is the gateway's: the verdict on an attempt where it needs neither its program
// nor a person, now or at a limit.
func (n *Network) Known(at egress.Attempt) (egress.Verdict, bool) {
	t, r := newTry(at), n.rules.Load()
	if r.programs || len(r.session) > 0 || len(r.policy.Connect(t.To, "").Limits) > 0 {
		return egress.Verdict{}, false
	}
	return n.Ruled(t)
}

// Judge is the gateway's. It takes as long as the person does.
func (n *Network) Judge(ctx context.Context, at egress.Attempt) egress.Verdict {
	t := newTry(at)
	if n.rules.Load().programs { // else it is looked up once it matters
		t.Written = n.wrote(at)
	}
	if v, ok := n.Ruled(t); ok {
		return v
	}
	return n.ask(ctx, t)
}

// ask waits for a person's verdict.
func (n *Network) ask(ctx context.Context, t *Try) egress.Verdict {
	t.Written = n.wrote(t.At)
	n.Ask(t)
	select {
	case v := <-t.verdict:
		return v
	case <-ctx.Done():
		n.Gone(t)
		return egress.Verdict{Rule: "nobody had answered"}
	}
}

func (n *Network) wrote(at egress.Attempt) bool {
	return n.Wrote != nil && at.Program != "" && n.Wrote(at.Program, at.Changed)
}

// connect is what the rules say of a try. No rule for a program lets one through that
// this session wrote, since it may have the name of another.
func (r *rules) connect(t *Try) policy.Judgement {
	j := r.policy.Connect(t.To, t.At.Program)
	if j.Verdict == policy.Allow && t.Written && r.programs {
		j = r.policy.Connect(t.To, policy.Nobody)
	}
	return j
}

// Destination is where an attempt leads, as rules have it.
func Destination(at egress.Attempt) policy.Destination {
	return policy.Destination{Name: at.Name, Addr: at.Address.Addr(), Port: int(at.Address.Port()), Protocol: policy.Protocol(at.Protocol)}
}

// Ruled gives the verdict on a try where the rules and their limits, or the mode, have
// one. One that goes on beyond a limit has none before there is more.
func (n *Network) Ruled(t *Try) (egress.Verdict, bool) {
	if t.flow {
		return egress.Verdict{Allow: true}, !t.over.empty()
	}
	t.Key = Key{Program: t.At.Program, Written: t.Written, To: t.To, Sends: strings.Join(t.Sends, "\n")}
	v, ok := n.Ruling(t)
	if !ok {
		return v, false
	}
	return n.Admit(t, v)
}

// Ruling is what the rules, or the mode, say of a try, whatever the limits. A rule on what
// the agent itself needs lets only that through: nobody allowed that host for what it runs. In
// step mode only that, and rules that the person gave for this session, let anything through.
func (n *Network) Ruling(t *Try) (egress.Verdict, bool) {
	r := n.rules.Load()
	j := r.connect(t)
	switch {
	case j.Verdict == policy.Allow && r.mode == api.ModeStep && j.Origin != policy.Given && (j.Origin != policy.Needs || !t.Own):
		t.Why = "step mode holds every connection; else: " + j.From()
		return egress.Verdict{}, false
	case j.Verdict == policy.Allow && r.mode == api.ModePolicy && j.Origin == policy.Needs && !t.Own:
		t.Why = "only the agent itself needs this host, and another program connects: " + j.From()
		return egress.Verdict{}, false
	case j.Verdict == policy.Allow:
		return egress.Verdict{Allow: true, Rule: j.From(), Private: j.Special}, true
	case j.Verdict == policy.Deny:
		return egress.Verdict{Rule: j.Denial()}, true
	case r.mode == api.ModeWatch:
		return egress.Verdict{Allow: true, Rule: api.WatchMode}, true
	}
	t.Why = j.From()
	return egress.Verdict{}, false
}

// Denied says whether the rules deny an attempt, and which one does: where it is to a name,
// also what they deny of the address that it leads to. It doesn't block.
func (n *Network) Denied(at egress.Attempt) (rule string, is bool) {
	v, ok := n.Ruling(newTry(at))
	if ok && !v.Allow || at.Name == "" || at.Name == policy.HostService {
		return v.Rule, ok && !v.Allow
	}
	to, err := netip.ParseAddrPort(at.Resolved)
	if err != nil { // a ping has no port
		to = netip.AddrPort{}
		if addr, err := netip.ParseAddr(at.Resolved); err == nil {
			to = netip.AddrPortFrom(addr, 0)
		}
	}
	if !to.IsValid() { // it isn't known, as behind a proxy
		return "", false
	}
	at.Name, at.Address = "", to
	v, ok = n.Ruling(newTry(at))
	return v.Rule, ok && !v.Allow
}

// Settled gives the verdict on a try where the rules have one, or an earlier answer.
func (n *Network) Settled(t *Try, now time.Time) (egress.Verdict, bool) {
	v, ok := n.Ruled(t)
	if ok {
		return v, true
	}
	if v, ok = n.Tries.Answered(t, now); !ok || !v.Allow {
		return v, ok
	}
	if v, ok = n.Admit(t, v); !ok { // beyond a limit
		return n.Tries.Answered(t, now)
	}
	return v, true
}

// More gives what a question about a limit is about once more.
func (n *Network) More(h *Held) { h.Last.over.give(1) }

// Event is the event that says how an attempt stands. Owner tells which action a
// process belongs to; 0: none.
func (n *Network) Event(at egress.Attempt, owner func(pid int) int) api.Event {
	a := api.Attempt{
		ID: at.ID, At: at.At.UTC(), Pid: at.PID, Program: api.Escape(at.Program), Protocol: at.Protocol,
		Name: api.Escape(at.Name), Resolved: api.Escape(at.Resolved), Verdict: api.Verdict(at.Verdict), Rule: api.Escape(at.Rule),
		Sent: at.Sent, Received: at.Received, Duration: at.Duration, Open: at.Open, Failure: api.Escape(at.Failure),
	}
	a.Credential, a.Requests, a.Refused = at.Credential, at.Requests, at.Refused
	for _, r := range at.Refusals {
		a.Refusals = append(a.Refusals, api.Refusal{At: r.At.UTC(), Method: api.Escape(r.Method), Path: api.Escape(r.Path), Why: api.Escape(r.Why)})
	}
	if at.Address.IsValid() {
		a.Address, a.Port = at.Address.Addr().String(), int(at.Address.Port())
	}
	if at.Failure == egress.ProgramReset && at.Received > 0 {
		a.Failure = "" // it had its answer: that is how it ends
	}
	n.carried.count(at)
	kind := "attempt.changed"
	if a.ID > n.Last {
		kind, n.Last = "attempt.opened", a.ID
	}
	var known bool
	if a.Action, known = n.open[a.ID]; !known && a.Pid != 0 {
		a.Action = owner(a.Pid)
	}
	if n.open == nil {
		n.open = make(map[int64]int)
	}
	switch {
	case !a.Open:
		kind = "attempt.closed"
		delete(n.open, a.ID)
		n.last.note(at)
	case a.Action != 0:
		n.open[a.ID] = a.Action
	}
	return api.Event{Kind: kind, Attempt: &a}
}
