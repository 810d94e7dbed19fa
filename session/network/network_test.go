package network

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"stepbox/policy"
	"stepbox/policy/policytest"
	"stepbox/runner/egress"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

func TestEventsKeepTheirAction(t *testing.T) {
	var n Network
	owners := map[int]int{7: 3}
	owner := func(pid int) int { return owners[pid] }
	for _, c := range []struct {
		at     egress.Attempt
		kind   string
		action int
	}{
		{egress.Attempt{ID: 1, PID: 7, Open: true, Name: "a\x1b"}, "attempt.opened", 3},
		{egress.Attempt{ID: 2, PID: 8}, "attempt.closed", 0},
		{egress.Attempt{ID: 1, PID: 7, Open: true}, "attempt.changed", 3},
		{egress.Attempt{ID: 1}, "attempt.closed", 3},
	} {
		e := n.Event(c.at, owner)
		if e.Kind != c.kind || e.Attempt.Action != c.action || e.Attempt.Name == "a\x1b" {
			t.Errorf("%+v is told as %s of action %d (%q)", c.at, e.Kind, e.Attempt.Action, e.Attempt.Name)
		}
		clear(owners) // its process has gone
	}
	if n.Last != 2 || len(n.open) != 0 {
		t.Errorf("the last is %d, and %d are open", n.Last, len(n.open))
	}
}

// judged runs Judge with a loop that hands out what it is asked.
func judged(t *testing.T, p *policy.Policy, mode api.Mode) (n *Network, asked, gone chan *Try) {
	t.Helper()
	asked, gone = make(chan *Try, 10), make(chan *Try, 10)
	n = &Network{Ask: func(t *Try) { asked <- t }, Gone: func(t *Try) { gone <- t }}
	n.Rules(p, mode)
	return n, asked, gone
}

// policyOf is a policy of one layer of network rules.
func policyOf(t *testing.T, yaml string) *policy.Policy {
	t.Helper()
	l, err := policytest.ParseLayer("test", "/test.yaml", []byte(yaml))
	must.OK(t, err)
	return policy.Of(l)
}

func attempt(protocol, name, addr string) egress.Attempt {
	return egress.Attempt{Protocol: protocol, Name: name, Address: netip.MustParseAddrPort(addr), Program: "/usr/bin/curl", PID: 7}
}

// A program that resets its connection once it was answered hasn't failed.
func TestResetIsNoFailure(t *testing.T) {
	for received, want := range map[int64]string{0: egress.ProgramReset, 1: ""} {
		var n Network
		e := n.Event(egress.Attempt{ID: 1, Received: received, Failure: egress.ProgramReset}, func(int) int { return 0 })
		if e.Attempt.Failure != want {
			t.Errorf("after %d bytes it is told as %q", received, e.Attempt.Failure)
		}
	}
}

// What rules decide isn't asked about, and what they don't is, but in watch mode.
func TestJudge(t *testing.T) {
	p := policyOf(t, `
network:
  - allow: [example.org:443, host.stepbox.internal:8080, 192.0.2.0/24, 10.0.0.0/8]
  - deny: [bad.example.org]
  - ask: [asked.example.org]
`)
	const synthetic = "198.18.0.1:443"
	for _, c := range []struct {
		at   egress.Attempt
		want string // allow, deny or ask
		priv bool
	}{
		{attempt("tcp", "example.org", synthetic), "allow", false},
		// QUIC to a name whose rule is for TCP.
		{attempt("udp", "example.org", synthetic), "ask", false},
		{attempt("tcp", "example.org", "198.18.0.1:80"), "ask", false},
		{attempt("icmp", "example.org", "198.18.0.1:0"), "ask", false},
		{attempt("tcp", "bad.example.org", synthetic), "deny", false},
		{attempt("tcp", "asked.example.org", synthetic), "ask", false},
		{attempt("tcp", "other.example.org", synthetic), "ask", false},
		{attempt("tcp", "host.stepbox.internal", "198.18.0.2:8080"), "allow", true},
		{attempt("tcp", "host.stepbox.internal", "198.18.0.2:8081"), "ask", false},
		{attempt("tcp", "", "192.0.2.1:22"), "allow", false},
		{attempt("tcp", "", "10.0.2.1:22"), "allow", true},
		{attempt("tcp", "", "203.0.113.1:22"), "ask", false},
	} {
		for _, mode := range []api.Mode{api.ModePolicy, api.ModeWatch} {
			n, asked, _ := judged(t, p, mode)
			name := fmt.Sprintf("%s %s%s in %s mode", c.at.Protocol, c.at.Name, c.at.Address, mode)
			want := c.want
			if mode == api.ModeWatch && want == "ask" {
				want = "allow"
			}
			done := make(chan egress.Verdict, 1)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { done <- n.Judge(ctx, c.at) }()
			select {
			case v := <-done:
				if v.Allow != (want == "allow") || want == "ask" || v.Private != c.priv || v.Rule == "" {
					t.Errorf("%s: %+v, want %s", name, v, want)
				}
			case try := <-asked:
				if want != "ask" || try.Why == "" || try.Key.To.Protocol != policy.Protocol(c.at.Protocol) {
					t.Errorf("%s: asked (%s), want %s", name, try.Why, want)
				}
				cancel()
				<-done
			}
			cancel()
		}
	}
}

// What a rule denies of addresses is denied by whatever name.
func TestDeniedByAddress(t *testing.T) {
	n, _, _ := judged(t, policyOf(t, `
network:
  - deny: ["203.0.113.0/24:1-443", "2001:db8::/32/any", "127.0.0.0/8"]
  - allow: ["*/any", "host.stepbox.internal:443"]
`), api.ModePolicy)
	for _, c := range []struct {
		protocol, name, resolved string
		denied                   bool
	}{
		{"tcp", "example.org", "", false},
		{"tcp", "example.org", "via proxy.corp:8080", false},
		{"tcp", "example.org", "198.51.100.1:443", false},
		{"tcp", "example.org", "203.0.113.1:443", true},
		{"tcp", "example.org", "[::ffff:203.0.113.1]:443", true},
		{"tcp", "example.org", "203.0.113.1:444", false},
		{"udp", "example.org", "203.0.113.1:443", false},
		{"udp", "example.org", "[2001:db8::1]:443", true},
		{"icmp", "example.org", "2001:db8::1", true},
		{"icmp", "example.org", "[2001:db8::1]:0", true},
		{"tcp", "host.stepbox.internal", "127.0.0.1:443", false},
	} {
		port := ":443"
		if c.protocol == "icmp" {
			port = ":0"
		}
		at := attempt(c.protocol, c.name, "198.18.0.1"+port)
		at.Resolved = c.resolved
		if rule, is := n.Denied(at); is != c.denied || is && rule == "" {
			t.Errorf("%s %s at %q: %v %q", c.protocol, c.name, c.resolved, is, rule)
		}
	}
}

// What an agent needs lets nobody else through. In step mode a rule that stood there before
// lets no connection through unasked either.
func TestJudgeInModes(t *testing.T) {
	layer := func(name string, origin policy.Origin, rules string) policy.Layer {
		l, err := policytest.ParseLayer(name, name+".yaml", []byte("network:\n  - "+rules+"\n"))
		must.OK(t, err)
		l.Origin = origin
		return l
	}
	p := policy.Of(
		layer("needs", policy.Needs, "allow: [api.example.org:443]"),
		layer("user", policy.Standing, "allow: [www.example.org:443]\n    deny: [bad.example.org]"),
		layer("session", policy.Given, "allow: [here.example.org:443]"))
	for _, c := range []struct {
		name         string
		own          bool
		policy, step string
	}{
		{"api.example.org", true, "allow", "allow"},
		{"api.example.org", false, "ask", "ask"},
		{"www.example.org", true, "allow", "ask"},
		{"here.example.org", false, "allow", "allow"},
		{"bad.example.org", true, "deny", "deny"},
		{"other.example.org", true, "ask", "ask"},
	} {
		for mode, want := range map[api.Mode]string{api.ModePolicy: c.policy, api.ModeStep: c.step} {
			var n Network
			n.Rules(p, mode)
			at := attempt("tcp", c.name, "198.18.0.1:443")
			try := newTry(at)
			try.Own = c.own
			v, ok := n.Ruled(try)
			got := "ask"
			if ok && v.Allow {
				got = "allow"
			} else if ok {
				got = "deny"
			}
			if got != want || got == "ask" && try.Why == "" {
				t.Errorf("%s (own: %v) in %s mode: %s (%s), want %s", c.name, c.own, mode, got, try.Why, want)
			}
		}
	}
}

// What was answered once for a command that sends nothing, or something else, isn't an
// answer for one that sends something.
func TestWhatIsSentIsAskedAbout(t *testing.T) {
	var n Network
	n.Rules(policy.Of(), api.ModePolicy)
	try := func(sends ...string) *Try {
		t := newTry(attempt("tcp", "example.org", "198.18.0.1:443"))
		t.Action, t.Sends = 7, sends
		return t
	}
	now := time.Now()
	fetch := try()
	if _, ok := n.Settled(fetch, now); ok {
		t.Fatal("no rule is about it, and it is settled")
	}
	h, _ := n.Tries.Hold(fetch, now)
	n.Tries.Answer(h, egress.Verdict{Allow: true}, true, now)
	for name, c := range map[string]struct {
		try  *Try
		asks bool
	}{"again": {try(), false}, "a push": {try("pushes main to origin"), true}} {
		if _, ok := n.Settled(c.try, now); ok == c.asks {
			t.Errorf("%s: asked about: %v", name, !ok)
		}
	}
	push := try("pushes main to origin")
	n.Settled(push, now)
	h, first := n.Tries.Hold(push, now)
	if !first {
		t.Error("it shares a question with what sends nothing")
	}
	n.Tries.Answer(h, egress.Verdict{Allow: true}, true, now)
	if _, ok := n.Settled(try("pushes other to origin"), now); ok {
		t.Error("something else is sent unasked")
	}
	if _, ok := n.Settled(try("pushes main to origin"), now); !ok {
		t.Error("the same is asked about again")
	}
}

// An answer is the verdict; a program that gives up gets none, and the loop is told.
func TestJudgeWaits(t *testing.T) {
	n, asked, gone := judged(t, policyOf(t, "network: []"), api.ModePolicy)
	done := make(chan egress.Verdict, 1)
	go func() { done <- n.Judge(t.Context(), attempt("tcp", "example.org", "198.18.0.1:443")) }()
	want := egress.Verdict{Allow: true, Rule: "approved"}
	(<-asked).Answer(want)
	if v := <-done; v != want {
		t.Errorf("answered %+v, got %+v", want, v)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- n.Judge(ctx, attempt("udp", "example.org", "198.18.0.1:443")) }()
	try := <-asked
	cancel()
	if v := <-done; v.Allow || v.Rule == "" {
		t.Errorf("given up: %+v", v)
	}
	if g := <-gone; g != try {
		t.Errorf("%+v is gone, not %+v", g, try)
	}
}

// What the gateway may decide without a program is what Judge would say, and nothing
// once a rule names programs.
func TestKnown(t *testing.T) {
	const plain = "network: [{allow: ['example.org:443']}, {deny: [bad.example.org]}]"
	for _, c := range []struct {
		yaml string
		name string
		mode api.Mode
		want string // allow, deny, or "" for not known
	}{
		{plain, "example.org", api.ModePolicy, "allow"},
		{plain, "bad.example.org", api.ModePolicy, "deny"},
		{plain, "other.example.org", api.ModePolicy, ""},
		{plain, "other.example.org", api.ModeWatch, "allow"},
		{"network: [{allow: ['example.org:443']}, {deny: [example.org], programs: [curl]}]", "example.org", api.ModePolicy, ""},
		{"network: [{allow: ['example.org:443'], programs: [curl]}]", "other.example.org", api.ModeWatch, ""},
	} {
		n, _, _ := judged(t, policyOf(t, c.yaml), c.mode)
		at := attempt("tcp", c.name, "198.18.0.1:443")
		at.Program, at.PID = "", 0
		v, ok := n.Known(at)
		if ok != (c.want != "") || v.Allow != (c.want == "allow") || ok && v.Rule == "" {
			t.Errorf("%s of %s in %s mode: %v %+v", c.name, c.yaml, c.mode, ok, v)
		}
	}
}

// A name that no rule can be about is reached in no mode.
func TestImproperNames(t *testing.T) {
	for _, mode := range []api.Mode{api.ModeWatch, api.ModePolicy, api.ModeStep} {
		n, _, _ := judged(t, policyOf(t, "network:\n  - allow: '*/any'\n"), mode)
		if v, ok := n.Known(attempt("tcp", "xn--0.example.org", "198.18.0.1:443")); !ok || v.Allow {
			t.Errorf("%s: %+v, decided: %v", mode, v, ok)
		}
	}
}

// A program that the session wrote has no rule for a program, whatever it is called; rules
// for all hold for it, and what is denied to others isn't denied to it.
func TestWrittenProgramsHaveNoRulesOfTheirOwn(t *testing.T) {
	n, _, _ := judged(t, policyOf(t, `
network:
  - allow: db.example.org
    programs: [psql]
  - allow: www.example.org
  - deny: www.example.org
    programs: [curl]
`), api.ModePolicy)
	n.Wrote = func(program string, _ time.Time) bool { return program == "/project/psql" }
	n.Ask = func(t *Try) { t.verdict <- egress.Verdict{Rule: "asked"} }
	for _, c := range []struct{ program, name, rule string }{
		{"/usr/bin/psql", "db.example.org", ""}, {"/project/psql", "db.example.org", "asked"},
		{"/usr/bin/psql", "www.example.org", ""}, {"/project/psql", "www.example.org", ""},
	} {
		a := attempt("tcp", c.name, "198.18.0.1:443")
		a.Program = c.program
		if v := n.Judge(context.Background(), a); v.Allow != (c.rule == "") || !v.Allow && v.Rule != c.rule {
			t.Errorf("%s to %s: %+v", c.program, c.name, v)
		}
	}
}

// An answer on a program isn't one on what the session has put in its place since.
func TestAnAnswerIsNotForAWrittenProgram(t *testing.T) {
	n, asked, _ := judged(t, policyOf(t, "network: []"), api.ModePolicy)
	written := false
	n.Wrote = func(string, time.Time) bool { return written }
	next := func() *Try {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan egress.Verdict, 1)
		go func() { done <- n.Judge(ctx, attempt("tcp", "example.org", "198.18.0.1:443")) }()
		t.Cleanup(func() { cancel(); <-done })
		return <-asked
	}
	now := time.Now()
	first := next()
	if _, ok := n.Settled(first, now); ok {
		t.Fatal("nobody was asked")
	}
	h, _ := n.Tries.Hold(first, now)
	n.Tries.Answer(h, egress.Verdict{Allow: true}, true, now)
	if _, ok := n.Settled(next(), now); !ok {
		t.Error("its next try is asked about")
	}
	written = true
	if v, ok := n.Settled(next(), now); ok {
		t.Errorf("another program has its answer: %+v", v)
	}
}
