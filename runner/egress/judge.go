package egress

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"time"
)

const (
	// heldAfter is how long a verdict may take before the attempt is logged
	// as waiting.
	heldAfter  = 50 * time.Millisecond
	watchEvery = 250 * time.Millisecond
)

// GaveUp is the Failure of an attempt whose program didn't wait for its verdict.
const GaveUp = "the program gave up while it waited"

var (
	errAbandoned = errors.New(GaveUp)
	errClosing   = errors.New("the sandbox was closed")
	errRuled     = errors.New("ended: it is denied by now")
)

// Rules of verdicts that the gateway gives by itself.
const (
	ruleNowhere = "gateway: nothing is there"
	ruleFlood   = "gateway: too many attempts"
	ruleKind    = "gateway: not forwarded"
	ruleFault   = "gateway: a fault of its own"
)

// open makes the record of a new attempt, nil when there are too many of them
// to be logged one by one; it is then counted.
func (g *Gateway) open(protocol string, t tuple) *record {
	if g.journal.full() {
		g.flood()
		return nil
	}
	r := g.newRecord(protocol, t.remote)
	r.tuple = t
	r.a.Name, _ = g.names.name(t.remote.Addr())
	if t.remote.Port() != 0 {
		var found bool
		if r.inode, found = g.socketOf(t); found && !t.udp {
			g.sees.Store(true)
		}
	}
	return r
}

func (g *Gateway) newRecord(protocol string, at netip.AddrPort) *record {
	return &record{a: Attempt{
		ID: g.lastID.Add(1), At: time.Now(), Protocol: protocol, Address: at, Open: true, Count: 1,
	}}
}

// decide gets the verdict on an attempt; it blocks while the attempt is held.
func (g *Gateway) decide(ctx context.Context, r *record) Verdict {
	if fate, ok := g.nowhere(r); ok {
		return fate
	}
	if v, ok := g.known(r); ok {
		return v
	}
	g.attribute(r, scanNow)
	if g.o.Judge == nil {
		return Verdict{Rule: "gateway: no judge"}
	}
	held := time.AfterFunc(heldAfter, func() { g.hold(r) })
	defer held.Stop()
	return g.o.Judge(ctx, r.snapshot(time.Now()))
}

// hold shows an attempt as one that waits, unless it was judged meanwhile.
func (g *Gateway) hold(r *record) {
	r.mu.Lock()
	waits := r.a.Verdict == ""
	if waits {
		r.a.Verdict, r.shown = verdictAsk, true
	}
	r.mu.Unlock()
	if waits {
		g.journal.changed(r)
	}
}

// known gives the verdict where there is one without asking. Who is denied may be gone
// right after, so its program is looked for first; who is allowed waits for its
// connection anyway.
func (g *Gateway) known(r *record) (Verdict, bool) {
	if g.o.Known == nil {
		return Verdict{}, false
	}
	v, ok := g.o.Known(r.snapshot(time.Now()))
	switch {
	case ok && v.Allow:
		g.wg.Go(func() { g.attribute(r, scanNow) })
	case ok:
		g.attribute(r, scanNow)
	}
	return v, ok
}

// nowhere gives the verdict on destinations that nobody needs to be asked
// about, because nothing could be dialled for them.
func (g *Gateway) nowhere(r *record) (Verdict, bool) {
	addr := r.a.Address.Addr()
	ported := r.a.Address.Port() != 0 || r.a.Protocol == "icmp"
	switch {
	case r.a.Protocol == "udp" && g.pinned(r) != "":
		return Verdict{Rule: ruleQUIC}, true
	case r.a.Name != "" && ported:
		return Verdict{}, false
	case !ported, addr == g.link.Gateway4, addr == g.link.Gateway6, g.names.span.Contains(addr):
		return Verdict{Rule: ruleNowhere}, true
	}
	switch Class(addr) {
	case ClassUnspecified, ClassMulticast:
		return Verdict{Rule: ruleNowhere}, true
	}
	return Verdict{}, false
}

// destination is what a verdict allows to be dialled.
func (g *Gateway) destination(r *record, v Verdict) destination {
	d := destination{name: r.a.Name, port: r.a.Address.Port(), private: v.Private}
	if d.name == "" {
		d.addr = r.a.Address.Addr()
	}
	if g.o.Denied != nil {
		d.denied = func(addr netip.Addr) (rule string, is bool) {
			a := r.snapshot(r.a.At)
			a.Resolved = netip.AddrPortFrom(addr, d.port).String()
			return g.o.Denied(a)
		}
	}
	return d
}

// judged notes the verdict on a record; true when it has been shown as held.
func (r *record) judged(v Verdict) (shown bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.a.Rule = v.Rule
	r.a.Verdict = verdictDeny
	if v.Allow {
		r.a.Verdict, r.meter = verdictAllow, v.Meter
	}
	return r.shown
}

// connected notes what was dialled and hands the record to the journal, which
// from now on looks at its bytes.
func (g *Gateway) connected(r *record, resolved string) {
	r.mu.Lock()
	r.a.Resolved, r.shown = resolved, true
	r.mu.Unlock()
	g.journal.track(r)
	g.journal.changed(r)
}

// refuse closes the record of an attempt that leads nowhere. An attempt that
// nobody was shown yet may end in the flood count.
func (g *Gateway) refuse(r *record, v Verdict, failure string) {
	r.mu.Lock()
	shown := r.shown
	r.mu.Unlock()
	listed := shown || g.journal.spend()
	// Judged, it isn't shown as held any more, which nobody would take back.
	if shown = r.judged(v); !shown && !listed {
		g.flood()
		return
	}
	r.finish(failure)
	g.journal.changed(r)
}

// fault ends the record of what a panic has ended; an attempt without verdict is denied.
func (r *record) fault(g *Gateway, why string) {
	r.mu.Lock()
	allowed := r.a.Verdict == verdictAllow
	r.mu.Unlock()
	if !allowed {
		g.refuse(r, Verdict{Rule: ruleFault}, why)
		return
	}
	r.finish(why)
	g.journal.untrack(r)
}

// finish sets the end of an attempt; the first one counts.
func (r *record) finish(failure string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.a.Open {
		return
	}
	r.a.Open = false
	r.a.Duration = time.Since(r.a.At)
	r.a.Failure = cmp.Or(r.a.Failure, failure)
}

// flood counts an attempt that is refused because there are too many.
func (g *Gateway) flood() {
	j := g.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.flood == nil {
		j.flood = g.newRecord("flood", netip.AddrPort{})
		j.flood.a.Verdict, j.flood.a.Rule = verdictDeny, ruleFlood
		j.flood.a.Open, j.flood.a.Count = false, 0
		j.flood.a.Failure = "attempts that came too fast to be listed, all refused"
	}
	j.flood.mu.Lock()
	j.flood.a.Count++
	j.flood.a.Duration = time.Since(j.flood.a.At)
	j.flood.mu.Unlock()
	if time.Since(j.flood.logged) >= logEvery {
		j.push(j.flood)
	}
}

// attribute finds the program behind an attempt, among at most so many
// descriptors.
func (g *Gateway) attribute(r *record, most int) {
	r.mu.Lock()
	done := r.searched || r.a.PID != 0
	r.mu.Unlock()
	if done {
		return
	}
	if found, ok := g.owners.find(r.inode, most); ok {
		r.mu.Lock()
		r.a.PID, r.a.Program, r.a.Changed = found.pid, found.program, found.changed
		r.mu.Unlock()
	}
}

// attributeLater is the journal's second try, for attempts whose verdict
// didn't need to know or whose search took too long.
func (g *Gateway) attributeLater(r *record) {
	g.attribute(r, scanLater)
	r.mu.Lock()
	r.searched = true // its socket won't show up later
	r.mu.Unlock()
}

// stillWaits says whether the socket behind a waiting connection is still
// there: one that its program gave up has no inode any more.
func (g *Gateway) stillWaits(r *record) bool {
	inode, ok := g.socketOf(r.tuple)
	if r.inode == 0 {
		// It was gone before it was looked for, or the kernel doesn't tell of any.
		return ok || !g.sees.Load()
	}
	return ok && inode == r.inode
}

// socketOf is the inode of the socket behind a tuple.
func (g *Gateway) socketOf(t tuple) (uint64, bool) {
	if g.diag == nil {
		return 0, false
	}
	return g.diag.lookup(t)
}
