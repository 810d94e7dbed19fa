package egress

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
	socks "golang.org/x/net/proxy"
)

// proxies are the upstream proxies of the supervisor's own environment:
// HTTPS_PROXY, HTTP_PROXY (for port 80), ALL_PROXY and NO_PROXY, in either
// case; http, https and socks5 URLs. TCP goes through them by CONNECT,
// whatever it carries; UDP doesn't, and neither does what only its own rule
// opens, as addresses of private networks. The host of a proxy is chosen by the person, so the guard doesn't
// look at it; what is asked of a proxy is resolved by the proxy.
type proxies struct {
	find  func(*url.URL) (*url.URL, error)
	roots func() (*x509.CertPool, error) // see Options
}

var defaultPort = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}

// newProxies is nil when the environment names no proxy.
func newProxies(environ []string, roots func() (*x509.CertPool, error)) (*proxies, error) {
	vars := make(map[string]string)
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok {
			vars[name] = value
		}
	}
	get := func(name string) string {
		if v := vars[strings.ToLower(name)]; v != "" {
			return v
		}
		return vars[name]
	}
	all := get("ALL_PROXY")
	c := &httpproxy.Config{HTTPProxy: get("HTTP_PROXY"), HTTPSProxy: get("HTTPS_PROXY"), NoProxy: get("NO_PROXY")}
	c.HTTPProxy = cmp.Or(c.HTTPProxy, all)
	c.HTTPSProxy = cmp.Or(c.HTTPSProxy, all)
	for _, value := range []string{c.HTTPProxy, c.HTTPSProxy} {
		if err := checkProxy(value); err != nil {
			return nil, err
		}
	}
	if c.HTTPProxy == "" && c.HTTPSProxy == "" {
		return nil, nil
	}
	return &proxies{c.ProxyFunc(), roots}, nil
}

// checkProxy refuses what httpproxy would pass over in silence. The value isn't
// in the error: it may have a password.
func checkProxy(value string) error {
	if !strings.Contains(value, "://") {
		value = "http://" + value // as httpproxy reads it
	}
	u, err := url.Parse(value)
	switch {
	case err != nil:
		return errors.New("cannot use the proxy that HTTPS_PROXY, HTTP_PROXY or ALL_PROXY names: it is no URL")
	case defaultPort[u.Scheme] == "":
		return fmt.Errorf("cannot use a proxy with scheme %q: only http, https and socks5 are known", u.Scheme)
	}
	return nil
}

// forDestination is the proxy to use, nil for none.
func (p *proxies) forDestination(network string, d destination) *url.URL {
	if p == nil || network != "tcp" || d.private && d.name != "" {
		return nil
	}
	scheme := "https"
	if d.port == 80 {
		scheme = "http"
	}
	proxy, err := p.find(&url.URL{Scheme: scheme, Host: d.String()})
	if err != nil {
		return nil
	}
	return proxy
}

// dial asks the proxy for a tunnel to d.
func (p *proxies) dial(ctx context.Context, proxy *url.URL, d destination) (net.Conn, string, error) {
	address := proxy.Host
	if proxy.Port() == "" {
		address = net.JoinHostPort(proxy.Hostname(), defaultPort[proxy.Scheme])
	}
	if strings.HasPrefix(proxy.Scheme, "socks5") {
		conn, err := dialSOCKS(ctx, address, proxy.User, d)
		if err != nil {
			return nil, "", &proxyError{address, err}
		}
		return conn, "via " + address, nil
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, "", &proxyError{address, err}
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	tunnel, err := p.connect(ctx, conn, proxy, d)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, "", &proxyError{address, err}
	}
	return tunnel, "via " + address, nil
}

// proxyError is why there is no connection by a proxy: who reads the log is to
// know that it isn't the destination that said so.
type proxyError struct {
	address string
	err     error
}

func (e *proxyError) Error() string { return "proxy " + e.address + ": " + why(e.err) }
func (e *proxyError) Unwrap() error { return e.err }

// dialSOCKS speaks SOCKS5 (RFC 1928, RFC 1929).
func dialSOCKS(ctx context.Context, address string, user *url.Userinfo, d destination) (net.Conn, error) {
	var auth *socks.Auth
	if user != nil {
		password, _ := user.Password()
		auth = &socks.Auth{User: user.Username(), Password: password}
	}
	var raw rawDialer
	via, err := socks.SOCKS5("tcp", address, auth, &raw)
	if err != nil {
		return nil, err
	}
	if _, err := via.(socks.ContextDialer).DialContext(ctx, "tcp", d.String()); err != nil {
		return nil, err
	}
	return raw.conn, nil
}

// rawDialer keeps the connection that a SOCKS client wraps: after the
// greeting it is a plain one, and the wrapping can't be closed by halves.
type rawDialer struct{ conn net.Conn }

func (r *rawDialer) Dial(network, address string) (net.Conn, error) {
	return r.DialContext(context.Background(), network, address)
}

func (r *rawDialer) DialContext(ctx context.Context, network, address string) (conn net.Conn, err error) {
	r.conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
	return r.conn, err
}

// connect speaks CONNECT (RFC 9110 section 9.3.6).
func (p *proxies) connect(ctx context.Context, conn net.Conn, proxy *url.URL, d destination) (net.Conn, error) {
	if proxy.Scheme == "https" {
		config := &tls.Config{ServerName: proxy.Hostname(), NextProtos: []string{"http/1.1"}}
		if p.roots != nil {
			var err error
			if config.RootCAs, err = p.roots(); err != nil {
				return nil, err
			}
		}
		secure := tls.Client(conn, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		conn = secure
	}
	req := &http.Request{
		Method: http.MethodConnect,
		URL:    &url.URL{Opaque: d.String()},
		Host:   d.String(),
		Header: http.Header{"User-Agent": {"stepbox"}},
	}
	if u := proxy.User; u != nil {
		password, _ := u.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	// A proxy's answer is small; one that never ends its header is cut off.
	limited := &limitedConn{Conn: conn, left: 64 << 10}
	r := bufio.NewReader(limited)
	resp, err := http.ReadResponse(r, req)
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	if resp.StatusCode == http.StatusProxyAuthRequired {
		return nil, errors.New("it answered 407: it wants another name and password in HTTPS_PROXY (http://NAME:PASSWORD@HOST:PORT), or a way of signing in other than Basic, which isn't spoken")
	}
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("it answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	limited.left = -1
	if r.Buffered() == 0 {
		return conn, nil
	}
	return &bufferedConn{Conn: conn, r: r}, nil
}

// limitedConn reads at most left bytes; negative is without limit.
type limitedConn struct {
	net.Conn
	left int
}

func (c *limitedConn) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, errors.New("the proxy's answer is too long")
	}
	if c.left > 0 && len(p) > c.left {
		p = p[:c.left]
	}
	n, err := c.Conn.Read(p)
	if c.left > 0 {
		c.left -= n
	}
	return n, err
}

// bufferedConn starts with what the far side sent right after the proxy's
// answer.
type bufferedConn struct {
	net.Conn
	r *bufio.Reader
}

func (c *bufferedConn) Read(p []byte) (int, error) { return c.r.Read(p) }

// CloseWrite ends this side's half, when the transport has halves.
func (c *bufferedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
