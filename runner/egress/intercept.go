package egress

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/egress/intercept"
)

const (
	// MaxRefusals of an attempt's requests are told of one by one; all are counted.
	MaxRefusals = 20
	// freshness is for how long a connection to a host may wait for its first request:
	// servers end those that nothing comes on.
	freshness = 5 * time.Second

	maxRefusedPath = 200
)

const ruleQUIC = "gateway: a credential can't be put into QUIC; programs use TCP instead"

// Refusal is a request that wasn't passed on.
type Refusal struct {
	At           time.Time
	Method, Path string // cut, and hostile; without a query
	Why          string
}

// pinned is the credential for where an attempt leads; "" is none.
func (g *Gateway) pinned(r *record) string {
	return g.o.Intercept.Named(r.a.Name, r.a.Address.Port())
}

// interceptedConn is the near end of what an Interceptor answers on. To the flow it is the
// upstream.
type interceptedConn struct {
	*net.UnixConn
	cancel context.CancelFunc // ends what is served
	served chan struct{}      // closed when it is over, and why is known
}

// intercept puts an Interceptor between an allowed connection and its host.
func (g *Gateway) intercept(ctx context.Context, rec *record, v Verdict, upstream net.Conn) (net.Conn, error) {
	near, far, err := socketPair()
	if err != nil {
		reset(upstream)
		return nil, err
	}
	dialled, first := time.Now(), make(chan net.Conn, 1)
	first <- upstream
	flow := intercept.Flow{
		Name: rec.a.Name, Port: rec.a.Address.Port(), Passed: rec.passed,
		Ask: func(ctx context.Context) error {
			if rec.meter == nil {
				return nil
			}
			rec.waitsOut.Add(1)
			defer rec.waitsOut.Add(-1)
			return rec.meter.Model(ctx)
		},
		Refused: func(method, path, why string) {
			if rec.refused(Refusal{time.Now(), cut(method, 20), cut(path, maxRefusedPath), why}) {
				g.journal.changed(rec)
			}
		},
		Dial: func(ctx context.Context) (net.Conn, error) {
			select {
			case conn := <-first:
				if time.Since(dialled) < freshness {
					return conn, nil
				}
				conn.Close()
			default:
			}
			conn, _, err := g.dialer.dial(ctx, "tcp", g.destination(rec, v))
			return conn, err
		},
	}
	ctx, cancel := context.WithCancel(ctx)
	served := make(chan struct{})
	g.wg.Go(func() {
		defer close(served)
		defer cancel()
		defer far.Close()
		defer survive(rec.broke)
		if err := g.o.Intercept.Serve(ctx, far, flow); err != nil {
			rec.broke(err.Error())
		}
		far.Close()
		select {
		case conn := <-first: // nobody asked for anything
			conn.Close()
		default:
		}
	})
	return &interceptedConn{near, cancel, served}, nil
}

func cut(s string, most int) string { return strings.ToValidUTF8(s[:min(len(s), most)], "") }

func (r *record) intercepted(credential string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.a.Credential = credential
}

// passed counts a request that an Interceptor passed on.
func (r *record) passed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.a.Requests++
}

// refused notes a request that wasn't. The first ones are told of at once, the others as
// bytes are.
func (r *record) refused(why Refusal) (told bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.a.Refused++
	if len(r.a.Refusals) >= MaxRefusals {
		return false
	}
	r.a.Refusals = append(slices.Clip(r.a.Refusals), why) // snapshots have the others
	return true
}

// broke notes why an Interceptor had no requests, whatever else is said of the connection.
func (r *record) broke(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.a.Failure = reason
}

// socketPair is a connection within this process whose sides can be closed by halves.
func socketPair() (near, far *net.UnixConn, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a pair of sockets: %w", err)
	}
	var conns [2]net.Conn
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "intercepted")
		c, failed := net.FileConn(file)
		file.Close()
		if conns[i] = c; failed != nil {
			err = failed
		}
	}
	near, ok := conns[0].(*net.UnixConn)
	far, also := conns[1].(*net.UnixConn)
	if err != nil || !ok || !also {
		for _, c := range conns {
			if c != nil {
				c.Close()
			}
		}
		return nil, nil, fmt.Errorf("cannot use a pair of sockets: %w", err)
	}
	return near, far, nil
}
