// Package network judges a session's connections and says what is recorded of them.
// What the sandbox names is hostile: it is escaped here.
package network

import (
	"cmp"
	"context"
	"net/netip"

	"stepbox/policy"
	"stepbox/runner/egress"
	"stepbox/session/api"
)

// Network is one session's. Judge may be called from any goroutine; all else is the
// session's loop's.
type Network struct {
	Hosts  []policy.HostRule // that were named at the start
	Policy *policy.Policy    // which has those that the agent's profile needs to work at all
	Last   int64             // the newest attempt's number

	open map[int64]int // actions of open attempts
}

// Judge is the gateway's.
func (n *Network) Judge(_ context.Context, at egress.Attempt) egress.Verdict {
	name := cmp.Or(at.Name, at.Address.Addr().String())
	for _, h := range n.Hosts {
		if h.Match(name, int(at.Address.Port())) {
			return egress.Verdict{Allow: true, Rule: "--allow-host " + h.String(), Private: private(h)}
		}
	}
	if j := n.Policy.Host(name, int(at.Address.Port())); j.Verdict == policy.Allow {
		return egress.Verdict{Allow: true, Rule: j.Rule}
	}
	return egress.Verdict{Rule: "no rule allows it"}
}

// private says whether a rule names a place that the dial guard else refuses: an
// address itself, or a port of this host.
func private(h policy.HostRule) bool {
	_, err := netip.ParseAddr(h.Name)
	return err == nil || h.Name == egress.HostName
}

// Event is the event that says how an attempt stands. Owner tells which action a
// process belongs to; 0: none.
func (n *Network) Event(at egress.Attempt, owner func(pid int) int) api.Event {
	a := api.Attempt{
		ID: at.ID, At: at.At.UTC(), Pid: at.PID, Program: api.Escape(at.Program), Protocol: at.Protocol,
		Name: api.Escape(at.Name), Resolved: api.Escape(at.Resolved), Verdict: api.Verdict(at.Verdict), Rule: api.Escape(at.Rule),
		Sent: at.Sent, Received: at.Received, Duration: at.Duration, Open: at.Open, Failure: api.Escape(at.Failure),
	}
	if at.Address.IsValid() {
		a.Address, a.Port = at.Address.Addr().String(), int(at.Address.Port())
	}
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
	case a.Action != 0:
		n.open[a.ID] = a.Action
	}
	return api.Event{Kind: kind, Attempt: &a}
}
