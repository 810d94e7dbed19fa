package egress

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Attempt is one connection or datagram flow that a program of the sandbox
// tried. It is a snapshot: Log sees one after each change.
//
// Name and Program come from the sandbox. Name is a valid lower-case DNS name.
// Program is a path as the kernel gives it and may hold any byte but NUL.
type Attempt struct {
	ID       int64
	At       time.Time
	Protocol string         // tcp, udp, dns, icmp, multicast, broadcast, forged, ip/N, flood
	Name     string         // the host name that was asked for, without final dot; empty for an address
	Address  netip.AddrPort // what the program connected to: synthetic when there is a name
	Resolved string         // what was really dialled, as ADDRESS:PORT, or "via PROXY"
	PID      int            // on the host, 0 when not known
	Program  string         // its executable
	Changed  time.Time      // when that file last changed, which nobody can set
	Verdict  string         // "allow" or "deny"; "ask" while it waits
	Rule     string

	Sent, Received int64         // payload bytes out of and into the sandbox
	Duration       time.Duration // since At
	Open           bool
	Failure        string // why an allowed one didn't connect, or how it broke
	Count          int    // attempts that this stands for; 1 but for "flood"

	// Of one that an Interceptor answers.
	Credential string    // that is put into its requests; "": it isn't looked into
	Requests   int       // that were passed on
	Refused    int       // that weren't
	Refusals   []Refusal // the first of these
}

// Words of Attempt.Verdict.
const (
	verdictAllow = "allow"
	verdictDeny  = "deny"
	verdictAsk   = "ask"
)

// Verdict is what was said of an attempt. The zero value denies.
type Verdict struct {
	Allow bool
	Rule  string // what gave the verdict, shown to people
	// Private says that the rule named a private address, or a port of this
	// host by HostName: the dial guard lets exactly that through.
	Private bool
	// Meter is asked for what an allowed one carries; nil: it may carry anything.
	Meter Meter
}

// record is an attempt while it lives. The journal hands out snapshots.
type record struct {
	sent, received atomic.Int64
	last           atomic.Int64 // of the last payload byte either way, ns since the start
	waitsOut       atomic.Int32 // the meter is asked about bytes, or requests, that leave
	waitsIn        atomic.Int32 // the same of those that come

	meter Meter  // set before anything moves, nil for none
	tuple tuple  // never changes; names its socket
	inode uint64 // never changes; of that socket, 0 where it wasn't found

	mu       sync.Mutex
	a        Attempt // guarded by mu, but for ID, At, Protocol, Name, Address, which never change
	shown    bool    // guarded by mu: it was given to the journal
	searched bool    // guarded by mu: there is no use in looking for the program again

	queued bool      // guarded by the journal's mu
	logged time.Time // guarded by the journal's mu: when Log last saw it
	told   int64     // guarded by the journal's mu: sent+received then
}

// snapshot is the attempt as it is now.
func (r *record) snapshot(now time.Time) Attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.a
	a.Sent, a.Received = r.sent.Load(), r.received.Load()
	if a.Open {
		a.Duration = now.Sub(a.At)
	}
	return a
}

// moved counts payload bytes.
func (r *record) moved(counter *atomic.Int64, n int) {
	counter.Add(int64(n))
	r.last.Store(int64(time.Since(r.a.At)))
}

// idle is how long no byte has moved.
func (r *record) idle() time.Duration {
	return time.Since(r.a.At) - time.Duration(r.last.Load())
}
