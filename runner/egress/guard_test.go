package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"stepbox/session/e2e/must"
)

var parse = netip.MustParseAddr

func TestClass(t *testing.T) {
	for addr, want := range map[string]string{
		"1.1.1.1": ClassPublic, "203.0.113.10": ClassPublic, "2606:4700::1111": ClassPublic, "2001:db8::10": ClassPublic,
		"0.0.0.0": ClassUnspecified, "0.1.2.3": ClassUnspecified, "::": ClassUnspecified,
		"127.0.0.1": ClassLoopback, "127.9.9.9": ClassLoopback, "::1": ClassLoopback, "::ffff:127.0.0.1": ClassLoopback,
		"10.0.0.1": ClassPrivate, "172.16.0.1": ClassPrivate, "172.31.255.255": ClassPrivate, "192.168.1.1": ClassPrivate,
		"172.32.0.1": ClassPublic, "fd00::1": ClassPrivate, "fec0::1": ClassPrivate, "::ffff:10.0.0.1": ClassPrivate,
		"169.254.169.254": ClassMetadata, "::ffff:169.254.169.254": ClassMetadata, "100.100.100.200": ClassMetadata,
		"168.63.129.16": ClassMetadata, "fd00:ec2::254": ClassMetadata,
		"169.254.1.1": ClassLinkLocal, "fe80::1": ClassLinkLocal, "fe80::1%eth0": ClassLinkLocal,
		"100.64.0.1": ClassShared, "100.127.255.255": ClassShared, "100.128.0.1": ClassPublic,
		"64:ff9b::7f00:1": ClassEmbedded, "64:ff9b:1::1": ClassEmbedded, "2002:7f00:1::": ClassEmbedded,
		"2001::1": ClassEmbedded, "::7f00:1": ClassEmbedded, "::ffff:0:7f00:1": ClassEmbedded, "192.88.99.1": ClassEmbedded,
		"224.0.0.1": ClassMulticast, "ff02::1": ClassMulticast,
		"240.0.0.1": ClassReserved, "255.255.255.255": ClassReserved, "198.18.0.1": ClassReserved, "192.0.0.1": ClassReserved,
	} {
		if got := Class(netip.MustParseAddr(addr)); got != want {
			t.Errorf("Class(%s) = %q, want %q", addr, got, want)
		}
	}
	if Class(netip.Addr{}) == ClassPublic {
		t.Error("an invalid address is public")
	}
}

// attacks are ways from a sandbox to places it has no business at, with every
// name and address allowed by a rule like "*".
var attacks = []struct {
	what, name  string // name is dialled when not empty
	answer, lit string // what it resolves to, or the literal address
	where       **space
	class       string
}{
	{"a name that resolves to loopback", "rebind.example", "127.0.0.1", "", &onHost, ClassLoopback},
	{"a name with a v4-mapped AAAA", "mapped.example", "::ffff:127.0.0.1", "", &onHost, ClassLoopback},
	{"a name that resolves to the metadata service", "meta.example", metadataAddr, "", &internet, ClassMetadata},
	{"a name that resolves to the LAN", "lan.example", lanAddr, "", &internet, ClassPrivate},
	{"a name that resolves into NAT64", "nat64.example", nat64Addr, "", &internet, ClassEmbedded},
	{"a name that resolves to carrier-grade NAT", "shared.example", sharedAddr, "", &internet, ClassShared},
	{"a name that resolves to the host's own public address", "own.example", ownPublic, "", &onHost, ClassOwn},
	{"a name that resolves to the host's own LAN address", "ownlan.example", ownLAN, "", &onHost, ClassOwn},
	{"the LAN by address", "", "", lanAddr, &internet, ClassPrivate},
	{"the metadata service by address", "", "", metadataAddr, &internet, ClassMetadata},
	{"the host's own public address", "", "", ownPublic, &onHost, ClassOwn},
	{"the host's own LAN address", "", "", ownLAN, &onHost, ClassOwn},
	{"NAT64 by address", "", "", nat64Addr, &internet, ClassEmbedded},
}

var onHost *space

func TestGuardAttacks(t *testing.T) {
	records := make(map[string][]string)
	for _, a := range attacks {
		if a.name != "" {
			records[a.name] = []string{a.answer}
		}
	}
	z := newZone(t, records)
	s := newSandbox(t, Options{Judge: allow, resolver: z.resolver()})
	for _, a := range attacks {
		t.Run(a.what, func(t *testing.T) {
			target := a.answer + a.lit
			at := serve(t, *a.where, net.JoinHostPort(strings.TrimPrefix(target, "::ffff:"), "0"), hello)
			// Without the guard it would work: the host itself gets there.
			direct, err := net.DialTimeout("tcp", at.String(), patience)
			if err != nil {
				t.Fatalf("the target isn't there: %v", err)
			}
			direct.Close()
			dst := netip.MustParseAddr(target)
			name := dst.String()
			if a.name != "" {
				dst, name = s.resolve(a.name), a.name
			}
			got, err := s.get("tcp", hostPort(dst, at.Port()))
			if !errors.Is(err, syscall.ECONNREFUSED) {
				t.Fatalf("got %q, %v", got, err)
			}
			logged := s.waitClosed(name)
			if logged.Verdict != "allow" || !strings.Contains(logged.Failure, "dial guard") || !strings.Contains(logged.Failure, a.class) {
				t.Errorf("logged %+v", logged)
			}
		})
	}
}

// Who is refused by the guard is told what reaches the place, if anything does.
func TestGuardErrorsSayWhatToDo(t *testing.T) {
	for class, want := range map[string]string{
		ClassPrivate: "a rule for the address itself", ClassOwn: "a rule for the address itself", ClassLoopback: HostName, ClassMulticast: ClassMulticast,
	} {
		if text := (&GuardError{parse(lanAddr), class}).Error(); !strings.Contains(text, class) || !strings.Contains(text, want) {
			t.Errorf("%s: %s", class, text)
		}
	}
}

// What rules deny isn't reached by a name that leads there, nor if they are newer than the
// verdict.
func TestGuardAsksTheRules(t *testing.T) {
	at := serve(t, internet, publicAddr+":0", hello)
	other := serve(t, internet, publicAddr2+":0", hello)
	echo := echoUDP(t, internet, publicAddr+":0")
	z := newZone(t, map[string][]string{"good.example": {publicAddr}, "other.example": {publicAddr2}})
	s := newSandbox(t, Options{Judge: allow, resolver: z.resolver(), Denied: func(a Attempt) (string, bool) {
		to, err := netip.ParseAddrPort(a.Resolved)
		return "deny it", err == nil && to.Addr() == parse(publicAddr) || a.Address.Addr() == parse(lanAddr)
	}})
	if got, err := s.get("tcp", hostPort(s.resolve("other.example"), other.Port())); err != nil || got != "hello" {
		t.Errorf("another place: %q, %v", got, err)
	}
	if got, err := s.get("tcp", hostPort(s.resolve("good.example"), at.Port())); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a name that leads there: %q, %v", got, err)
	}
	if a := s.waitClosed("good.example"); !strings.Contains(a.Failure, "it leads to "+publicAddr+": deny it") {
		t.Errorf("logged %+v", a)
	}
	c := s.dialFrom(40001, hostPort(s.resolve("good.example"), echo.Port()), nil)
	if _, err := roundTrip(c, []byte("x")); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("datagrams: %v", err)
	}
	if _, err := s.gw.dialer.ping(t.Context(), s.gw.destination(&record{a: Attempt{Protocol: "icmp", Name: "good.example"}}, Verdict{Allow: true})); err == nil {
		t.Error("a ping went there")
	}
	if got, err := s.get("tcp", lanAddr+":80"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("what was denied since: %q, %v", got, err)
	}
}

// A name with a harmless and a harmful address reaches the harmless one only.
func TestGuardMixedAnswers(t *testing.T) {
	at := serve(t, internet, publicAddr+":0", hello)
	trap := serve(t, nil, hostPort(netip.MustParseAddr("127.0.0.1"), at.Port()), func(c net.Conn) { c.Write([]byte("trap")) })
	z := newZone(t, map[string][]string{"mixed.example": {"127.0.0.1", publicAddr}})
	s := newSandbox(t, Options{Judge: allow, resolver: z.resolver()})
	got, err := s.get("tcp", hostPort(s.resolve("mixed.example"), trap.Port()))
	if err != nil || got != "hello" {
		t.Fatalf("got %q, %v", got, err)
	}
}

// What the sandbox's own kernel keeps to itself never gets to the gateway.
func TestLoopbackIsTheSandboxsOwn(t *testing.T) {
	at := serve(t, nil, "127.0.0.1:0", hello)
	s := newSandbox(t, Options{Judge: allow})
	for _, addr := range []string{"127.0.0.1", "0.0.0.0", "::1", "::ffff:127.0.0.1", "::"} {
		if err := s.connectRaw(netip.MustParseAddr(addr), at.Port(), patience); err == nil {
			t.Errorf("%s: connected", addr)
		}
	}
}

func TestPrivateVerdict(t *testing.T) {
	at := serve(t, internet, lanAddr+":0", hello)
	own := serve(t, nil, ownLAN+":0", hello)
	local := serve(t, nil, "127.0.0.1:0", hello)
	meta := serve(t, internet, metadataAddr+":0", hello)
	z := newZone(t, map[string][]string{
		"db.corp": {lanAddr}, "rebind.corp": {"127.0.0.1"}, "meta.corp": {metadataAddr}, "own.corp": {ownLAN},
	})
	s := newSandbox(t, Options{resolver: z.resolver(), Judge: func(context.Context, Attempt) Verdict {
		return Verdict{Allow: true, Private: true}
	}})
	for _, c := range []struct {
		what, name, addr string
		port             uint16
		ok               bool
	}{
		{"a LAN address that the rule named", "", lanAddr, at.Port(), true},
		{"the host's own address that the rule named", "", ownLAN, own.Port(), true},
		{"metadata that the rule named", "", metadataAddr, meta.Port(), true},
		{"a name of a private network", "db.corp", "", at.Port(), true},
		{"a private name that leads to loopback", "rebind.corp", "", local.Port(), false},
		{"a private name that leads to metadata", "meta.corp", "", meta.Port(), false},
		{"a private name that leads to this host", "own.corp", "", own.Port(), false},
		{"this host by its name", HostName, "", local.Port(), true},
	} {
		dst := netip.Addr{}
		if c.name != "" {
			dst = s.resolve(c.name)
		} else {
			dst = netip.MustParseAddr(c.addr)
		}
		got, err := s.get("tcp", hostPort(dst, c.port))
		if (err == nil && got == "hello") != c.ok {
			t.Errorf("%s: got %q, %v", c.what, got, err)
		}
	}
}

// An allow that didn't name the host's port doesn't open it.
func TestHostNameNeedsPrivate(t *testing.T) {
	local := serve(t, nil, "127.0.0.1:0", hello)
	s := newSandbox(t, Options{Judge: allow})
	if got, err := s.get("tcp", hostPort(s.resolve(HostName), local.Port())); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %q, %v", got, err)
	}
	if a := s.waitClosed(HostName); !strings.Contains(a.Failure, "rule must name the port") {
		t.Errorf("logged %+v", a)
	}
}

// The guard decides on what the kernel says is local, not on a list of
// interface addresses: a route can make any address local.
func TestGuardKnowsLocalRoutes(t *testing.T) {
	g, err := newGuard()
	must.OK(t, err)
	defer g.close()
	for addr, want := range map[string]bool{
		ownPublic: true, ownLAN: true, "127.0.0.1": true, "10.77.0.255": true, "10.77.0.1": false, publicAddr: false, publicAddr6: false, "fd77::2": true,
	} {
		if got, err := g.own(netip.MustParseAddr(addr)); err != nil || got != want {
			t.Errorf("own(%s) = %v, %v", addr, got, err)
		}
	}
	// A question that can't be asked refuses.
	g.routes.file.Close()
	if err := g.check(netip.MustParseAddr(publicAddr), destination{}); err == nil {
		t.Error("allowed without knowing whether it is this host")
	}
}

func TestDialGivesUpWithItsContext(t *testing.T) {
	g, err := newGuard()
	must.OK(t, err)
	defer g.close()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	x := &dialer{guard: g, resolver: &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}}
	if _, _, err := x.dial(ctx, "tcp", destination{name: "slow.example", port: 80}); err == nil {
		t.Error("it got somewhere")
	}
}
