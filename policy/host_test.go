package policy

import (
	"strings"
	"testing"
)

func TestParseHost(t *testing.T) {
	for in, want := range map[string]HostRule{
		"example.com":                 {"example.com", 0},
		"Example.COM.":                {"example.com", 0},
		"example.com:443":             {"example.com", 443},
		"*.example.com":               {"*.example.com", 0},
		"*.Example.com.:8443":         {"*.example.com", 8443},
		"bücher.example":              {"xn--bcher-kva.example", 0},
		"BÜCHER.example:1":            {"xn--bcher-kva.example", 1},
		"*.bücher.example":            {"*.xn--bcher-kva.example", 0},
		"_sip._tcp.example.com":       {"_sip._tcp.example.com", 0},
		"localhost:3000":              {"localhost", 3000},
		"192.0.2.1":                   {"192.0.2.1", 0},
		"192.0.2.1:65535":             {"192.0.2.1", 65535},
		"::1":                         {"::1", 0},
		"[::1]":                       {"::1", 0},
		"[2001:DB8:0::1]:443":         {"2001:db8::1", 443},
		"::ffff:192.0.2.1":            {"192.0.2.1", 0},
		"host.stepbox.internal:11434": {HostService, 11434},
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
		"", ".", ":443", "*", "*.", "*.com", "*.stepbox.internal", "a.*.com", "*a.com", "**.a.com", "a*.com", "example.com:", "example.com:0", "example.com:65536", "example.com:+1", "example.com:0443", "example.com: 443",
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
		{"::1", "[::1]", 1, true},
		{"::1", "::1%lo", 1, false},
		{"localhost", "127.0.0.1", 1, false},
		{"host.stepbox.internal:80", "host.stepbox.internal", 80, true},
		{"host.stepbox.internal:80", "host.stepbox.internal", 81, false},
		{"example.com", "example.com", 0, false},
		{"example.com", "example.com", 65536, false},
	} {
		r, err := ParseHost(c.rule)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Match(c.name, c.port); got != c.want {
			t.Errorf("%s matches %q:%d: %v", c.rule, c.name, c.port, got)
		}
	}
	if (HostRule{}).Match("", 1) {
		t.Error("no rule matches no name")
	}
}

func TestPolicyHost(t *testing.T) {
	claude := profileNamed("claude")
	p := Builtin().With(claude.Layer(), Layer{Name: "session", Deny: []HostRule{{"claude.ai", 0}}, Allow: []HostRule{{"claude.ai", 443}}})
	for _, c := range []struct {
		name string
		port int
		want Verdict
	}{
		{"api.anthropic.com", 443, Allow}, {"api.anthropic.com", 80, Ask}, {"claude.ai", 443, Deny}, {"example.com", 443, Ask},
	} {
		if j := p.Host(c.name, c.port); j.Verdict != c.want {
			t.Errorf("%s:%d: %s", c.name, c.port, j.Explain())
		}
	}
	if j := Builtin().Host("api.anthropic.com", 443); j.Verdict != Ask {
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
		if !r.Match(name, max(r.Port, 1)) {
			t.Fatalf("%q doesn't match itself, %q", s, name)
		}
		if r.Match("evil.org\x00."+name, max(r.Port, 1)) {
			t.Fatalf("%q matches a name with a NUL", s)
		}
	})
}
