package egress

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"stepbox/runner/egress/intercept"
)

// What one gateway holds at most at a time.
const (
	// MaxPending TCP connections wait for a verdict, an upstream or a
	// handshake. Netstack's own limit lies above, because it would drop
	// beyond it without a word.
	MaxPending = 512
	// MaxFlows TCP connections are open; those beyond are refused.
	MaxFlows = 1024
	// MaxUDPFlows is the number of datagram flows, of whatever verdict.
	MaxUDPFlows = 1024

	maxInFlight = 4 * MaxPending // netstack's
)

// Options are what a Gateway needs from its sandbox's owner.
type Options struct {
	// Judge gives the verdict on an attempt. It may block for as long as it
	// likes: the program sees a slow network. It must return soon after ctx
	// is done, which is when the program has given up, or the gateway is
	// closed; its verdict is then ignored. Nil denies everything.
	Judge func(ctx context.Context, a Attempt) Verdict
	// Known gives the verdict where it needs neither the program nor time; the program
	// of what it allows is looked for meanwhile. Judge is asked about all else. Nil
	// knows nothing.
	Known func(a Attempt) (Verdict, bool)
	// Denied says whether an attempt is denied by what holds now, and by which rule: for
	// what it is, or for the address and port in its Resolved. It is asked before each
	// socket is connected, and by Recheck, and must not block. Nil denies nothing.
	Denied func(a Attempt) (rule string, is bool)
	// Log takes a snapshot of each attempt when it opens, is held, gets its
	// verdict, at most once a second while bytes move, and when it closes.
	// Changes in quick succession arrive as one. While Log blocks, attempts
	// go on until MaxUnlogged are waiting.
	Log func(a Attempt)
	// Processes lists the sandbox's processes, as host pids. Nil: attempts
	// are logged without program.
	Processes func() []int
	// Intercept has credentials put into requests to some hosts; nil: nothing is looked
	// into. It is kept by its owner.
	Intercept *intercept.Interceptor
	// Environ is the environment that names upstream proxies, as NAME=value:
	// the person's, never the agent's.
	Environ []string
	// Roots are those by which such a proxy is verified that is reached by TLS; nil:
	// the system's.
	Roots func() (*x509.CertPool, error)
	// Range is where synthetic addresses come from; the zero Prefix is DefaultRange.
	// It is for programs that take that for a private network, and hides the real
	// addresses in it.
	Range netip.Prefix
	// Names are addresses that names had before, in a session that goes on: they
	// have them again. Last is the last attempt's ID by then.
	Names    map[string]netip.Addr
	Last     int64
	resolver *net.Resolver // of tests; nil is the host's
	patience time.Duration // of tests; 0 is dialTimeout
}

// Gateway is the far end of a sandbox's link. It owns the link's files.
type Gateway struct {
	link    Link
	o       Options
	names   *nameTable
	journal *journal
	owners  *owners
	diag    *netlinkConn
	guard   *guard
	dialer  *dialer
	stack   *stack.Stack
	tap     *tap
	udp     *udpTable
	echo    *echoTable

	ctx     context.Context // done when the gateway closes
	cancel  context.CancelFunc
	wg      sync.WaitGroup // all goroutines but the journal's
	logged  sync.WaitGroup // the journal's
	stopLog context.CancelFunc

	lastID   atomic.Int64
	dropped  uint64      // the watching goroutine's, then Close's: SYNs that the stack dropped, as far as they are counted
	sees     atomic.Bool // the kernel told of a TCP socket: one that it doesn't tell of isn't there
	tcpFlows atomic.Int64
	dnsConns atomic.Int64

	mu      sync.Mutex
	closed  bool                  // guarded by mu
	pending map[*pending]struct{} // guarded by mu; at most MaxPending
	flows   map[*flow]struct{}    // guarded by mu; at most MaxFlows
}

// New starts a gateway on the link, whose files it owns from then on, also
// when it fails.
func New(link Link, o Options) (*Gateway, error) {
	g := &Gateway{
		link: link, o: o,
		names:   newNameTable(o.Range, o.Names),
		owners:  &owners{processes: o.Processes, known: make(map[uint64]owner)},
		pending: make(map[*pending]struct{}),
		flows:   make(map[*flow]struct{}),
	}
	g.lastID.Store(o.Last)
	if err := g.start(); err != nil {
		if g.guard != nil {
			_ = g.guard.close()
		}
		_ = g.link.Close()
		return nil, fmt.Errorf("cannot start the network gateway: %w", err)
	}
	return g, nil
}

func (g *Gateway) start() (err error) {
	if err := checkRange(g.names.span, g.link); err != nil {
		return err
	}
	if g.link.Packet == nil {
		return errors.New("the link has no packet socket")
	}
	if g.link.Diag != nil {
		g.diag = &netlinkConn{file: g.link.Diag}
	}
	if g.guard, err = newGuard(); err != nil {
		return err
	}
	upstream, err := newProxies(g.o.Environ, g.o.Roots)
	if err != nil {
		return err
	}
	g.dialer = &dialer{guard: g.guard, resolver: g.o.resolver, proxies: upstream, timeout: g.o.patience}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	logger := g.o.Log
	if logger == nil {
		logger = func(Attempt) {}
	}
	g.journal = newJournal(logger, g.attributeLater)
	g.udp, g.echo = newUDPTable(g), newEchoTable(g)
	if err := g.startStack(); err != nil {
		g.cancel()
		return err
	}
	logging, stop := context.WithCancel(context.Background())
	g.stopLog = stop
	g.logged.Go(func() { g.journal.run(logging) })
	g.wg.Go(g.watch)
	return nil
}

// Close ends every flow, logs the last of each, and waits for all goroutines,
// Judge calls included.
func (g *Gateway) Close() error {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return nil
	}
	g.closed = true
	g.cancel()
	for f := range g.flows {
		f.abort("the sandbox was closed")
	}
	g.mu.Unlock()
	g.udp.close()
	g.echo.close()
	g.wg.Wait()
	g.countDropped()
	g.stopStack()
	g.stopLog()
	g.logged.Wait()
	return errors.Join(g.guard.close(), g.link.Close())
}

// begin registers a goroutine that netstack started; false when the gateway
// is closing and there is nothing left to do.
func (g *Gateway) begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.wg.Add(1)
	return true
}

// countDropped counts SYNs that the stack dropped because as many as it takes were in
// hand, which is far more than may wait: it tells nobody.
func (g *Gateway) countDropped() {
	now := g.stack.Stats().TCP.ForwardMaxInFlightDrop.Value()
	for ; g.dropped < now; g.dropped++ {
		g.flood()
	}
}

// watch looks after what nothing else wakes for: programs that gave up while
// they waited, and connections that are closed on one side and silent.
func (g *Gateway) watch() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-tick.C:
		}
		g.mu.Lock()
		waiting := make(map[*pending]*record, len(g.pending))
		for p := range g.pending {
			if p.rec != nil {
				waiting[p] = p.rec
			}
		}
		var paused []*flow
		for f := range g.flows {
			if f.expire(); f.rec.vain() {
				paused = append(paused, f)
			}
		}
		g.mu.Unlock()
		for _, f := range paused {
			if !g.stillWaits(f.rec) {
				f.abort(errAbandoned.Error())
			}
		}
		for p, rec := range waiting {
			if g.stillWaits(rec) {
				continue
			}
			g.mu.Lock()
			if _, still := g.pending[p]; still {
				p.giveUp(errAbandoned)
			}
			g.mu.Unlock()
		}
		g.countDropped()
		g.udp.expire(time.Now())
		g.echo.expire(time.Now())
	}
}
