package policy

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
)

func TestParseHost(t *testing.T) {
	for in, want := range map[string]HostRule{
		"example.com":                 {Name: "example.com", Protocol: TCP},
		"Example.COM.":                {Name: "example.com", Protocol: TCP},
		"example.com:443":             {Name: "example.com", First: 443, Last: 443, Protocol: TCP},
		"*.example.com":               {Name: "*.example.com", Protocol: TCP},
		"*.Example.com.:8443":         {Name: "*.example.com", First: 8443, Last: 8443, Protocol: TCP},
		"bücher.example":              {Name: "xn--bcher-kva.example", Protocol: TCP},
		"BÜCHER.example:1":            {Name: "xn--bcher-kva.example", First: 1, Last: 1, Protocol: TCP},
		"*.bücher.example":            {Name: "*.xn--bcher-kva.example", Protocol: TCP},
		"_sip._tcp.example.com":       {Name: "_sip._tcp.example.com", Protocol: TCP},
		"localhost:3000":              {Name: "localhost", First: 3000, Last: 3000, Protocol: TCP},
		"192.0.2.1":                   {Net: single(netip.MustParseAddr("192.0.2.1")), Protocol: TCP},
		"192.0.2.1:65535":             {Net: single(netip.MustParseAddr("192.0.2.1")), First: 65535, Last: 65535, Protocol: TCP},
		"::1":                         {Net: single(netip.MustParseAddr("::1")), Protocol: TCP},
		"[::1]":                       {Net: single(netip.MustParseAddr("::1")), Protocol: TCP},
		"[2001:DB8:0::1]:443":         {Net: single(netip.MustParseAddr("2001:db8::1")), First: 443, Last: 443, Protocol: TCP},
		"::ffff:192.0.2.1":            {Net: single(netip.MustParseAddr("192.0.2.1")), Protocol: TCP},
		"*":                           {Name: "*", Protocol: TCP},
		"*:443":                       {Name: "*", First: 443, Last: 443, Protocol: TCP},
		"example.com:8000-8010":       {Name: "example.com", First: 8000, Last: 8010, Protocol: TCP},
		"example.com:443/tcp":         {Name: "example.com", First: 443, Last: 443, Protocol: TCP},
		"example.com:443/udp":         {Name: "example.com", First: 443, Last: 443, Protocol: UDP},
		"example.com/icmp":            {Name: "example.com", Protocol: ICMP},
		"example.com/any":             {Name: "example.com", Protocol: Any},
		"192.0.2.0/24":                {Net: netip.MustParsePrefix("192.0.2.0/24"), Protocol: TCP},
		"192.0.2.0/24:22/any":         {Net: netip.MustParsePrefix("192.0.2.0/24"), First: 22, Last: 22, Protocol: Any},
		"192.0.2.1/udp":               {Net: netip.MustParsePrefix("192.0.2.1/32"), Protocol: UDP},
		"2001:db8::/32":               {Net: netip.MustParsePrefix("2001:db8::/32"), Protocol: TCP},
		"2001:db8::/32/icmp":          {Net: netip.MustParsePrefix("2001:db8::/32"), Protocol: ICMP},
		"[2001:db8::/32]:1-9/udp":     {Net: netip.MustParsePrefix("2001:db8::/32"), First: 1, Last: 9, Protocol: UDP},
		"0.0.0.0/0":                   {Net: netip.MustParsePrefix("0.0.0.0/0"), Protocol: TCP},
		"host.stepbox.internal:11434": {Name: HostService, First: 11434, Last: 11434, Protocol: TCP},
	} {
		got, err := ParseHost(in)
		if err != nil || got != want {
			t.Errorf("ParseHost(%q) = %+v, %v; want %+v", in, got, err, want)
		}
		if again, err := ParseHost(got.String()); err != nil || again != got {
			t.Errorf("%q isn't read back: %+v, %v", got, again, err)
		}
	}
	for _, in := range []string{
		"", ".", ":443", "**", "*.", "a.com:9-1", "a.com:1-", "a.com:-1", "a.com:1-2-3", "a.com/TCP", "a.com/sctp", "a.com/", "a.com:1/icmp", "/udp", "a.com/udp:1", "a.com/24", "192.0.2.1/24", "192.0.2.0/33", "192.0.2.0/024", "192.0.2.0/-1", "::ffff:192.0.2.0/120", "2001:db8::/32:1", "[2001:db8::]/32", "*/24", "host.stepbox.internal/any", "*.com", "*.stepbox.internal", "a.*.com", "*a.com", "**.a.com", "a*.com", "example.com:", "example.com:0", "example.com:65536", "example.com:+1", "example.com:0443", "example.com: 443",
		"example.com:443:1", "a..b", ".a.com", "a.com..", "-a.com", "a-.com", "a b.com", " a.com", "a.com ", "a.com\x00.evil.com", "a\x00", "a.com\n", "a\u202e.com", "a\u200b.com", "a\u00a0b.com", "a/b", "http://a.com", "user@a.com", "a.com/",
		"[::1", "::1]", "[::1]443", "[::1]:", "[a.com]:443", "[1.2.3.4]:1", "fe80::1%eth0", "1.2.3", "1.2.3.4.5", "256.1.1.1", "0x7f.1", "0x7f000001", "2130706433", "1:2:3:4:5:6:7:8:9", "a.0x1",
		"host.stepbox.internal", "*.host.stepbox.internal:1", "HOST.stepbox.internal.", strings.Repeat("a", 64) + ".com", strings.Repeat("a.", 127) + "com", strings.Repeat("ü", 100000), "xn--a.com", "example。com:x",
	} {
		if r, err := ParseHost(in); err == nil {
			t.Errorf("ParseHost(%q) = %+v, want an error", in, r)
		} else if !strings.HasPrefix(err.Error(), "cannot use host ") {
			t.Errorf("ParseHost(%q): %v", in, err)
		}
	}
}

func TestHostMatch(t *testing.T) {
	for _, c := range []struct {
		rule, name string
		port       int
		want       bool
	}{
		{"example.com", "example.com", 443, true},
		{"example.com", "EXAMPLE.com.", 80, true},
		{"example.com:443", "example.com", 80, false},
		{"example.com", "a.example.com", 443, false},
		{"example.com", "example.com.evil.com", 443, false},
		{"example.com", "notexample.com", 443, false},
		{"*.example.com", "a.example.com", 443, true},
		{"*.example.com", "a.b.example.com", 443, true},
		{"*.example.com", "example.com", 443, false},
		{"*.example.com", ".example.com", 443, false},
		{"*.example.com", "evilexample.com", 443, false},
		// A NUL ended the name for the resolver, but not for the rule.
		{"*.example.com", "evil.com\x00.example.com", 443, false},
		{"*.example.com", "evil.com .example.com", 443, false},
		{"*.example.com", "evil.com/.example.com", 443, false},
		{"*.example.com", "evil.com#.example.com", 443, false},
		{"bücher.example", "bücher.example", 443, true},
		{"bücher.example", "xn--bcher-kva.example", 443, true},
		{"192.0.2.1", "192.0.2.1", 1, true},
		{"192.0.2.1", "::ffff:192.0.2.1", 1, true},
		{"192.0.2.1", "192.0.2.10", 1, false},
		{"::1", "0:0::1", 1, true},
		{"::1", "::1%lo", 1, false},
		{"localhost", "127.0.0.1", 1, false},
		{"host.stepbox.internal:80", "host.stepbox.internal", 80, true},
		{"host.stepbox.internal:80", "host.stepbox.internal", 81, false},
		{"example.com", "example.com", 0, false},
		{"example.com", "example.com", 65536, false},
		{"example.com:80-90", "example.com", 85, true},
		{"example.com:80-90", "example.com", 91, false},
		{"192.0.2.0/24", "192.0.2.77", 1, true},
		{"192.0.2.0/24", "::ffff:192.0.2.77", 1, true},
		{"192.0.2.0/24", "192.0.3.1", 1, false},
		{"2001:db8::/32", "2001:db8:1::1", 1, true},
		{"::/0", "192.0.2.1", 1, false},
		{"*", "example.com", 1, true},
		{"*", "com", 1, true},
		{"*", "host.stepbox.internal", 1, false},
		{"*", "192.0.2.1", 1, false},
		{"0.0.0.0/0", "example.com", 1, false},
	} {
		if got := rule(t, c.rule).Match(at(c.name, c.port)); got != c.want {
			t.Errorf("%s matches %q:%d: %v", c.rule, c.name, c.port, got)
		}
	}
	if (HostRule{}).Match(Destination{Port: 1}) || (HostRule{Protocol: TCP}).Match(at("", 1)) {
		t.Error("no rule matches no name")
	}
}

// What is meant for one protocol isn't for another.
func TestHostMatchProtocol(t *testing.T) {
	for text, want := range map[string][]Protocol{
		"example.com": {TCP}, "example.com:443": {TCP}, "example.com/udp": {UDP}, "example.com:443/udp": {UDP}, "example.com/icmp": {ICMP},
		"example.com/any": {TCP, UDP, ICMP}, "example.com:443/any": {TCP, UDP},
	} {
		for _, p := range []Protocol{TCP, UDP, ICMP} {
			d := Destination{Name: "example.com", Port: 443, Protocol: p}
			if p == ICMP {
				d.Port = 0
			}
			if got := rule(t, text).Match(d); got != slices.Contains(want, p) {
				t.Errorf("%s matches %s: %v", text, p, got)
			}
		}
	}
}

func rule(t *testing.T, text string) HostRule {
	t.Helper()
	h, err := ParseHost(text)
	must.OK(t, err)
	return h
}

// at is a TCP destination: an address where the name is one.
func at(name string, port int) Destination {
	d := Destination{Name: name, Port: port, Protocol: TCP}
	if addr, err := netip.ParseAddr(name); err == nil {
		d.Name, d.Addr = "", addr
	}
	return d
}

func TestConnect(t *testing.T) {
	p := asking().With(BuiltinProfiles().Named("claude").Layer(),
		layer(t, "user", "network:\n  - allow: ['*.b.org', 192.0.2.0/24]\n  - {allow: git.example.com:22, programs: [ssh, /opt/*/git]}\n  - {deny: evil.example.com/any, programs: curl, why: x}\n"),
		layer(t, "session", "network:\n  - ask: a.b.org\n  - allow: a.b.org\n  - deny: claude.ai\n  - allow: claude.ai:443\n"))
	for _, c := range []struct {
		name    string
		port    int
		program string
		want    Verdict
	}{
		{"api.anthropic.com", 443, "", Allow}, {"api.anthropic.com", 80, "", Ask}, {"claude.ai", 443, "", Deny}, {"example.com", 443, "", Ask},
		{"b.org", 443, "", Ask}, {"x.b.org", 443, "", Allow}, {"a.b.org", 443, "", Ask}, {"192.0.2.9", 443, "", Allow}, {"192.0.3.9", 443, "", Ask},
		{"git.example.com", 22, "/usr/bin/ssh", Allow}, {"git.example.com", 22, "/opt/x/git", Allow}, {"git.example.com", 22, "/usr/bin/git", Ask}, {"git.example.com", 22, "", Ask},
		{"evil.example.com", 1, "/usr/bin/curl", Deny}, {"evil.example.com", 1, "", Deny}, {"evil.example.com", 1, "/usr/bin/wget", Ask},
	} {
		if j := p.Connect(at(c.name, c.port), c.program); j.Verdict != c.want {
			t.Errorf("%s:%d by %q: %s", c.name, c.port, c.program, j.Explain())
		}
	}
	if j := asking().Connect(at("api.anthropic.com", 443), ""); j.Verdict != Ask {
		t.Errorf("layers leak: %s", j.Explain())
	}
}

func FuzzParseHost(f *testing.F) {
	for _, s := range []string{"a.com:1", "*.b.c", "[::1]:2", "bücher.de", "a\x00b", "1.2.3.4", "xn--", "。", "host.stepbox.internal:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseHost(s)
		if err != nil {
			return
		}
		if again, err := ParseHost(r.String()); err != nil || again != r {
			t.Fatalf("%q became %+v, read back as %+v, %v", s, r, again, err)
		}
		for i := range len(r.Name) {
			if c := r.Name[i]; c <= ' ' || c >= 0x7f || c >= 'A' && c <= 'Z' {
				t.Fatalf("%q became %q", s, r.Name)
			}
		}
		name := strings.Replace(r.Name, "*", "x", 1)
		d := Destination{Name: name, Addr: r.Net.Addr(), Port: max(r.First, 1), Protocol: r.Protocol}
		if r.Protocol == ICMP {
			d.Port = 0
		} else if r.Protocol == Any {
			d.Protocol = UDP
		}
		if !r.Match(d) {
			t.Fatalf("%q doesn't match itself, %v", s, d)
		}
		if d.Name = "evil.org\x00." + name; r.Match(d) {
			t.Fatalf("%q matches a name with a NUL", s)
		}
	})
}

// What has a name that no rule can be about is denied, whatever the rules say.
func TestImproperNames(t *testing.T) {
	for _, rules := range []string{`- allow: "*/any"`, `- deny: "*/any"`, `- allow: "*.example.org"`, `- ask: "*"`, ""} {
		l, err := ParseLayer("test", "test.yaml", []byte("network:\n"+rules))
		must.OK(t, err)
		for _, name := range []string{"xn--0.example.org", "XN--0.example.org.", "a..example.org", "-a.example.org", "a\x00.example.org"} {
			if j := asking().With(l).Connect(at(name, 443), "/usr/bin/curl"); j.Verdict != Deny {
				t.Errorf("%s: %s is %s (%s)", rules, name, j.Verdict, j.Rule)
			}
		}
	}
}

// A network is a place of its own only where it isn't a part of the internet.
func TestSpecial(t *testing.T) {
	for pattern, want := range map[string]bool{
		"192.0.2.7": true, "169.254.169.254": true, "10.0.0.0/8": true, "10.1.0.0/16": true, "192.168.1.0/24:22": true, "fd00::/8": true, "fe80::/64": true,
		"host.stepbox.internal:80": true, "0.0.0.0/0": false, "0.0.0.0/0:80": false, "::/0": false, "8.0.0.0/5": false, "192.168.0.0/15": false, "192.0.2.0/24": false,
		"*": false, "example.org": false,
	} {
		r, err := ParseHost(pattern)
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		if got := r.Special(); got != want {
			t.Errorf("%s: %v, want %v", pattern, got, want)
		}
	}
}
