package intercept

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"
)

// Bounds on one connection, and on all.
const (
	maxHeader   = 64 << 10
	maxStreams  = 100 // of HTTP/2, at a time
	maxUpstream = 16  // connections to the real host, at a time
	maxRequests = 512 // in hand, of all connections

	handshakeTimeout = 30 * time.Second
	headerTimeout    = 30 * time.Second
	idleTimeout      = 10 * time.Minute
)

// Options are what an Interceptor needs from its owner.
type Options struct {
	Roots *x509.CertPool // by which the real hosts are verified; nil: the system's
	// Answer is told of each answer before its body is read, which is written to what it
	// returns, unless that is nil, and then closed. It is called from any goroutine.
	Answer func(host string, header http.Header) io.WriteCloser
}

// Interceptor has credentials put into the requests of connections.
type Interceptor struct {
	o     Options
	ca    *authority
	hosts map[string]*host // by authority
	room  chan struct{}    // holds one for each request in hand
}

// host is one that a credential is for.
type host struct {
	Credential
	leaf *tls.Certificate
	redactor
}

// New makes an Interceptor for credentials, of which each host has one.
func New(all []Credential, o Options) (*Interceptor, error) {
	in := &Interceptor{o: o, hosts: make(map[string]*host), room: make(chan struct{}, maxRequests)}
	var names []string
	for _, c := range all {
		names = append(names, c.Host)
	}
	ca, err := newAuthority(names)
	if err != nil {
		return nil, err
	}
	in.ca = ca
	for _, c := range all {
		if err := CheckValue(c.Value); err != nil {
			return nil, fmt.Errorf("cannot use credential %q: %w", c.Name, err)
		}
		leaf, err := ca.leaf(c.Host)
		if err != nil {
			return nil, err
		}
		if in.hosts[key(c.Host, c.Port)] != nil {
			return nil, fmt.Errorf("cannot use credential %q: %s has another already", c.Name, c.Host)
		}
		in.hosts[key(c.Host, c.Port)] = &host{c, leaf, redactor{secrets: c.Spellings()}}
	}
	return in, nil
}

func key(name string, port uint16) string { return fmt.Sprintf("%s:%d", name, port) }

// CA is the certificate that programs inside have to trust, as PEM.
func (in *Interceptor) CA() []byte { return in.ca.pem() }

// Named is the credential for a host and port; "" is none, also where in is nil.
func (in *Interceptor) Named(name string, port uint16) string {
	if in == nil || in.hosts[key(name, port)] == nil {
		return ""
	}
	return in.hosts[key(name, port)].Name
}

// Flow is one connection, as its owner knows it.
type Flow struct {
	Name string
	Port uint16
	// Dial connects to the real host.
	Dial func(ctx context.Context) (net.Conn, error)
	// Ask waits for leave for a request; an error is why there is none, in words.
	Ask func(ctx context.Context) error
	// Passed is told of each request that is passed on, Refused of each that isn't. What
	// it says has nothing hostile but the method and path, which are of any length.
	Passed  func()
	Refused func(method, path, why string)
}

// connection is one that is served.
type connection struct {
	*host
	in       *Interceptor
	flow     Flow
	proxy    *httputil.ReverseProxy
	handlers sync.WaitGroup
}

// Serve answers on a connection of the sandbox until it is over, and waits for all that
// belongs to it. An error is why it didn't come to requests, in words.
func (in *Interceptor) Serve(ctx context.Context, conn net.Conn, flow Flow) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h := in.hosts[key(flow.Name, flow.Port)]
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, SessionTicketsDisabled: true,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return h.leaf, nil },
	}
	secure := tls.Server(conn, config)
	defer secure.Close()
	if err := handshake(secure); err != nil {
		return err
	}
	c := &connection{host: h, in: in, flow: flow}
	// What is dialled goes on when the request for which it began is over, and ends with
	// the sandbox's connection.
	dial := func(context.Context, string, string) (net.Conn, error) {
		conn, err := flow.Dial(ctx)
		if err == nil {
			context.AfterFunc(ctx, func() { conn.Close() })
		}
		return conn, err
	}
	transport := &http.Transport{
		DialContext: dial, ForceAttemptHTTP2: true, DisableCompression: true, MaxConnsPerHost: maxUpstream,
		MaxResponseHeaderBytes: maxHeader, TLSHandshakeTimeout: handshakeTimeout, IdleConnTimeout: idleTimeout,
		TLSClientConfig: &tls.Config{ServerName: h.Host, RootCAs: in.o.Roots, MinVersion: tls.VersionTLS12},
	}
	defer transport.CloseIdleConnections()
	c.proxy = &httputil.ReverseProxy{
		Rewrite: c.rewrite, Transport: transport, FlushInterval: -1, ModifyResponse: c.answer,
		ErrorHandler: c.failed, ErrorLog: discard,
	}
	one := &oneConn{conns: make(chan net.Conn, 1)}
	one.conns <- secure
	server := &http.Server{
		Handler: c, TLSConfig: config, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams}, ErrorLog: discard,
		ConnState:   one.state,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	_ = server.Serve(one) // ends when the connection does
	c.handlers.Wait()     // of a WebSocket it is over only now
	return nil
}

// discard is where net/http says what a hostile peer did.
var discard = log.New(io.Discard, "", 0)

// handshake says in words why there is none. It ends with the connection, and not before:
// what the program said last is why.
func handshake(conn *tls.Conn) error {
	_ = conn.SetDeadline(time.Now().Add(handshakeTimeout)) // it has deadlines
	err := conn.Handshake()
	_ = conn.SetDeadline(time.Time{})
	var said *net.OpError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &said) && said.Op == "remote error": // an alert
		return fmt.Errorf("the program doesn't take the session's certificate (%w): it has certificates of its own, or knows the host's; have it read SSL_CERT_FILE, or start without this credential", said.Err)
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
		return errors.New("the program left while TLS was agreed on: it may not take the session's certificate")
	}
	return fmt.Errorf("cannot agree on TLS with the program: %w", err)
}

// ServeHTTP has one request checked and passed on.
func (c *connection) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.handlers.Add(1) // the connection still lives
	defer c.handlers.Done()
	select {
	case c.in.room <- struct{}{}:
		defer func() { <-c.in.room }()
	default:
		explain(w, http.StatusServiceUnavailable, "too many requests are under way")
		return
	}
	if no := c.check(r); no != nil {
		c.flow.Refused(r.Method, r.URL.Path, no.why)
		explain(w, no.status, "this request was refused: "+no.why)
		return
	}
	if err := c.flow.Ask(r.Context()); err != nil {
		c.flow.Refused(r.Method, r.URL.Path, err.Error())
		explain(w, http.StatusTooManyRequests, "this request was refused: "+err.Error())
		return
	}
	c.flow.Passed()
	c.proxy.ServeHTTP(&cleanWriter{w, c}, r)
}

// rewrite makes a request one to the real host.
func (c *connection) rewrite(p *httputil.ProxyRequest) {
	p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = "https", c.authority(), c.authority()
	c.strip(p.Out)
	p.Out.Header.Del("Expect") // it has been answered
	p.Out.Header.Set("Accept-Encoding", "identity")
	c.put(p.Out)
}

// oneConn is a listener that has one connection, and ends when that is over, or taken by a
// handler.
type oneConn struct {
	conns chan net.Conn
	once  sync.Once
}

func (l *oneConn) Accept() (net.Conn, error) {
	if conn, ok := <-l.conns; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (l *oneConn) state(_ net.Conn, s http.ConnState) {
	if s == http.StateClosed || s == http.StateHijacked {
		l.once.Do(func() { close(l.conns) })
	}
}

func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// failed answers for a host that doesn't. The error may quote what the host said.
func (c *connection) failed(w http.ResponseWriter, _ *http.Request, err error) {
	var unknown *tls.CertificateVerificationError
	why := "cannot reach " + c.Host + ": " + err.Error()
	if errors.As(err, &unknown) {
		why = "the certificate of " + c.Host + " can't be verified on this machine: " + unknown.Err.Error()
	}
	explain(w, http.StatusBadGateway, c.text(why))
}
