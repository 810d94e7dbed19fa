package egress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"
)

// dialTimeout bounds resolution, connecting and a proxy's answer together.
const dialTimeout = 30 * time.Second

// dialer makes every socket that carries a sandbox's bytes.
type dialer struct {
	guard    *guard
	resolver *net.Resolver // nil: the host's
	proxies  *proxies      // nil: none
	timeout  time.Duration // 0: dialTimeout
}

// dial connects to d on network tcp or udp and says what it connected to. It
// is the only caller of net.Dialer for destinations that the sandbox chose.
func (x *dialer) dial(ctx context.Context, network string, d destination) (conn net.Conn, resolved string, err error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(x.timeout, dialTimeout))
	defer cancel()
	direct := net.Dialer{Resolver: x.resolver, ControlContext: x.guard.control(d)}
	switch {
	case d.name == HostName:
		if !d.private {
			return nil, "", errors.New("a rule must name the port to reach this host's own services")
		}
		conn, err = direct.DialContext(ctx, network, net.JoinHostPort("127.0.0.1", strconv.Itoa(int(d.port))))
	case d.name == "":
		// Where only a rule on the address leads, no proxy does.
		if proxy := x.proxies.forDestination(network, d); proxy != nil && x.guard.checkClass(d.addr, destination{}) == nil {
			// Nobody checks behind a proxy.
			if err := x.guard.check(d.addr, d); err != nil {
				return nil, "", err
			}
			return x.proxies.dial(ctx, proxy, d)
		}
		conn, err = direct.DialContext(ctx, network, netip.AddrPortFrom(d.addr, d.port).String())
	default:
		if proxy := x.proxies.forDestination(network, d); proxy != nil {
			if err := x.preview(ctx, d); err != nil {
				return nil, "", err
			}
			return x.proxies.dial(ctx, proxy, d)
		}
		// The final dot keeps the host's search domains out.
		conn, err = direct.DialContext(ctx, network, net.JoinHostPort(d.name+".", strconv.Itoa(int(d.port))))
	}
	if err != nil {
		return nil, "", err
	}
	return conn, conn.RemoteAddr().String(), nil
}

// preview is for names that a proxy will resolve: where this host can resolve
// them too, an address that the guard would refuse refuses the attempt. Where
// it can't, which is usual behind such proxies, the proxy is on its own.
func (x *dialer) preview(ctx context.Context, d destination) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r := cmp.Or(x.resolver, net.DefaultResolver)
	addrs, err := r.LookupNetIP(ctx, "ip", d.name+".")
	if err != nil {
		return nil
	}
	for _, addr := range addrs {
		if err := x.guard.check(addr, d); err != nil {
			return err
		}
	}
	return nil
}

// broke says whether an error on a connection is more than its end.
func broke(err error) bool {
	return !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.EOF) && !errors.Is(err, context.Canceled)
}

// errnoOf is what the kernel said.
func errnoOf(err error) syscall.Errno {
	var no syscall.Errno
	errors.As(err, &no)
	return no
}

// why puts a failed dial into words for the log.
func why(err error) string {
	var refused *GuardError
	var denied *deniedError
	var dns *net.DNSError
	var proxy *proxyError
	switch {
	case errors.As(err, &proxy):
		return proxy.Error()
	case errors.As(err, &refused):
		return refused.Error()
	case errors.As(err, &denied):
		return denied.Error()
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host"
	case errors.As(err, &dns):
		return fmt.Sprintf("cannot resolve: %s", dns.Err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET):
		return "connection reset"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.ENETDOWN):
		return "no way there: " + errnoOf(err).Error()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return "no answer in time"
	case errors.Is(err, context.Canceled):
		return "given up"
	}
	return err.Error()
}
