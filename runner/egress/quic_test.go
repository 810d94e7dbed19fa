package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/quic"

	"stepbox/policy"
	"stepbox/policy/policytest"
	"stepbox/session/e2e/must"
)

// certificate is one of example.com.
func certificate() (tls.Certificate, *x509.Certificate) {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	return s.TLS.Certificates[0], s.Certificate()
}

// echoQUIC answers each stream at addr with what came on it.
func echoQUIC(t *testing.T, addr string) (config *tls.Config) {
	t.Helper()
	var conn net.PacketConn
	var err error
	internet.do(func() { conn, err = net.ListenPacket("udp", addr) })
	must.OK(t, err)
	own, public := certificate()
	server := &tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS13, NextProtos: []string{"echo"}}
	end, err := quic.NewEndpoint(conn, &quic.Config{TLSConfig: server})
	must.OK(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := end.Accept(ctx)
			if err != nil {
				return
			}
			wg.Go(func() {
				for {
					s, err := c.AcceptStream(ctx)
					if err != nil {
						return
					}
					s.SetReadContext(ctx)
					s.SetWriteContext(ctx)
					io.Copy(s, s)
					s.CloseWrite()
				}
			})
		}
	})
	t.Cleanup(func() { stop(); end.Close(ctx); wg.Wait() })
	trusted := x509.NewCertPool()
	trusted.AddCert(public)
	return &tls.Config{RootCAs: trusted, ServerName: "example.com", MinVersion: tls.VersionTLS13, NextProtos: server.NextProtos}
}

// overQUIC sends bytes to an address from inside, on a stream, and gives what comes back.
func (s *sandbox) overQUIC(ctx context.Context, to netip.AddrPort, config *tls.Config, b []byte) ([]byte, error) {
	var conn net.PacketConn
	var err error
	s.do(func() { conn, err = net.ListenPacket("udp4", ":0") })
	if err != nil {
		return nil, err
	}
	end, err := quic.NewEndpoint(conn, nil)
	if err != nil {
		return nil, err
	}
	// It stays open till the end: a last word of a socket that is gone is an attempt of its own.
	s.t.Cleanup(func() { end.Close(ctx) })
	c, err := end.Dial(ctx, "udp", to.String(), &quic.Config{TLSConfig: config, HandshakeTimeout: patience})
	if err != nil {
		return nil, err
	}
	stream, err := c.NewStream(ctx)
	if err != nil {
		return nil, err
	}
	stream.SetReadContext(ctx)
	stream.SetWriteContext(ctx)
	var sent sync.WaitGroup
	defer sent.Wait()
	sent.Go(func() { stream.Write(b); stream.CloseWrite() })
	return io.ReadAll(stream)
}

// A rule for a name and a port is for TCP alone. QUIC there is UDP, which is asked about
// by itself and waits, or has a rule of its own.
func TestQUIC(t *testing.T) {
	const name, port = "example.com", 443
	config := echoQUIC(t, publicAddr+":443")
	serve(t, internet, publicAddr+":443", hello)
	z := newZone(t, map[string][]string{name: {publicAddr}})
	message := bytes.Repeat([]byte("0123456789abcdef"), 1<<13)
	for rules, want := range map[string]struct{ tcp, udp policy.Verdict }{
		"allow: example.com:443":                                    {policy.Allow, policy.Ask},
		"allow: example.com:443/udp":                                {policy.Ask, policy.Allow},
		"allow: example.com:443/any":                                {policy.Allow, policy.Allow},
		"deny: example.com:443":                                     {policy.Deny, policy.Ask},
		"allow: [example.com:443]\n  - deny: [example.com:443/udp]": {policy.Allow, policy.Deny},
	} {
		for _, yes := range []bool{true, false} {
			if !yes && want.tcp != policy.Ask && want.udp != policy.Ask {
				continue // nobody is asked
			}
			t.Run(rules+map[bool]string{true: ", yes", false: ", no"}[yes], func(t *testing.T) {
				l, err := policytest.ParseLayer("test", "/test.yaml", []byte("network:\n  - "+rules+"\n"))
				must.OK(t, err)
				p := policy.Of(l)
				asked, answer := make(chan string, 10), make(chan bool)
				s := newSandbox(t, Options{resolver: z.resolver(), Judge: func(ctx context.Context, a Attempt) Verdict {
					j := p.Connect(policy.Destination{Name: a.Name, Addr: a.Address.Addr(), Port: int(a.Address.Port()), Protocol: policy.Protocol(a.Protocol)}, "")
					if j.Verdict != policy.Ask {
						return Verdict{Allow: j.Verdict == policy.Allow, Rule: j.Rule}
					}
					asked <- a.Protocol
					select {
					case yes := <-answer:
						return Verdict{Allow: yes, Rule: "a person"}
					case <-ctx.Done():
						return Verdict{}
					}
				}})
				to := netip.AddrPortFrom(s.resolve(name), port)
				// passes says whether it does, once a person was asked where one is to be.
				passes := func(protocol string, want policy.Verdict) bool {
					if want == policy.Ask {
						select {
						case got := <-asked:
							if answer <- yes; got != protocol {
								t.Errorf("asked about %s", got)
							}
						case <-time.After(patience):
							t.Fatal("nobody is asked")
						}
					}
					return want == policy.Allow || want == policy.Ask && yes
				}

				ctx, cancel := context.WithTimeout(t.Context(), patience)
				t.Cleanup(cancel)
				type result struct {
					got []byte
					err error
				}
				done := make(chan result, 1)
				try := func(f func() ([]byte, error)) {
					go func() {
						got, err := f()
						done <- result{got, err}
					}()
				}
				try(func() ([]byte, error) { return s.overQUIC(ctx, to, config, message) })
				if passes("udp", want.udp) {
					if r := <-done; r.err != nil || !bytes.Equal(r.got, message) {
						t.Errorf("%d of %d bytes came back: %v", len(r.got), len(message), r.err)
					}
				} else {
					// A socket for whomever isn't told of refusals: a client goes on trying.
					if a := s.waitClosed(name); a.Protocol != "udp" || a.Verdict != verdictDeny || a.Resolved != "" {
						t.Errorf("logged %+v", a)
					}
					cancel()
					if r := <-done; !errors.Is(r.err, context.Canceled) {
						t.Errorf("%d bytes came back: %v", len(r.got), r.err)
					}
				}

				try(func() ([]byte, error) {
					got, err := s.get("tcp", to.String())
					return []byte(got), err
				})
				if allowed, r := passes("tcp", want.tcp), <-done; allowed && (r.err != nil || string(r.got) != "hello") || !allowed && !errors.Is(r.err, syscall.ECONNREFUSED) {
					t.Errorf("by TCP: %q, %v", r.got, r.err)
				}
				if len(asked) > 0 {
					t.Errorf("asked about %s, too", <-asked)
				}
			})
		}
	}
}
