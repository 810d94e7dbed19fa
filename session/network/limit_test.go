package network

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"stepbox/policy"
	"stepbox/policy/policytest"
	"stepbox/runner/egress"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

const synthetic = "198.18.0.1:443"

// A limit that denies ends what goes beyond it, and says which it is, once.
func TestLimitDenies(t *testing.T) {
	for _, c := range []struct{ text, name, want string }{
		{`network: [{allow: example.org, limit: {sent: 1000, at: deny}}]`, "sent", "the limit of allow example.org is used up: sent 1000 (test, /test.yaml:1)"},
		{`network: [{allow: example.org, limit: {received: 1000, at: deny}}]`, "received", "the limit of allow example.org is used up: received 1000 (test, /test.yaml:1)"},
		{`{network: [{allow: example.org}], limits: {sent: 1000, at: deny}}`, "sent", "the limit of this session is used up: sent 1000 (test, /test.yaml:1)"},
	} {
		n, _, _ := judged(t, policyOf(t, c.text), api.ModePolicy)
		var told []string
		n.Reached = func(why string) { told = append(told, why) }
		at := attempt("tcp", "example.org", synthetic)
		first, second := n.Judge(t.Context(), at), n.Judge(t.Context(), at)
		if !first.Allow || !second.Allow || first.Meter == nil {
			t.Fatalf("%s: %+v, %+v", c.text, first, second)
		}
		move := func(v egress.Verdict, k int) (int, error) {
			if c.name == "sent" {
				return v.Meter.Sent(t.Context(), k, false)
			}
			return v.Meter.Received(t.Context(), k, false)
		}
		if k, err := move(first, 900); k != 900 || err != nil {
			t.Errorf("%s: %d, %v", c.text, k, err)
		}
		if k, err := move(second, 100); k != 100 || err != nil {
			t.Errorf("%s: the rest: %d, %v", c.text, k, err)
		}
		if _, err := move(first, 1); err == nil || err.Error() != "stopped: "+c.want {
			t.Errorf("%s: beyond it: %v", c.text, err)
		}
		v := n.Judge(t.Context(), at)
		if v.Allow {
			t.Errorf("%s: a further connection: %+v", c.text, v)
		}
		if v.Rule != c.want || len(told) != 1 || told[0] != c.want {
			t.Errorf("%s: %q, and told %q", c.text, v.Rule, told)
		}
	}
}

// Where nobody looks into connections, each is a request.
func TestAConnectionIsARequest(t *testing.T) {
	n, _, _ := judged(t, policyOf(t, `network: [{allow: example.org, limit: {requests: 2/min, at: deny}}]`), api.ModePolicy)
	for i := range 3 {
		if v := n.Judge(t.Context(), attempt("tcp", "example.org", synthetic)); v.Allow != (i < 2) {
			t.Errorf("connection %d: %+v", i, v)
		}
	}
}

// Without limits nothing is metered.
func TestNoLimitNoMeter(t *testing.T) {
	n, _, _ := judged(t, policyOf(t, `network: [{allow: example.org}]`), api.ModePolicy)
	if v := n.Judge(t.Context(), attempt("tcp", "example.org", synthetic)); !v.Allow || v.Meter != nil {
		t.Errorf("%+v", v)
	}
}

// In watch mode limits are told of, and end nothing.
func TestLimitsAreWatched(t *testing.T) {
	n, _, _ := judged(t, policyOf(t, `limits: {sent: 10, connections: 1/min, at: deny}`), api.ModeWatch)
	told := 0
	n.Reached = func(string) { told++ }
	for range 3 {
		v := n.Judge(t.Context(), attempt("tcp", "example.org", synthetic))
		if !v.Allow || v.Meter == nil {
			t.Fatalf("%+v", v)
		}
		if k, err := v.Meter.Sent(t.Context(), 100, true); k != 100 || err != nil {
			t.Errorf("%d, %v", k, err)
		}
	}
	if told != 2 {
		t.Errorf("told %d times", told)
	}
}

// What counts by a rule counts though the rule's line or its limit becomes another.
func TestLimitsThatChange(t *testing.T) {
	n, _, _ := judged(t, policyOf(t, `network: [{allow: example.org, limit: {sent: 1000, at: deny}}]`), api.ModePolicy)
	at := attempt("tcp", "example.org", synthetic)
	v := n.Judge(t.Context(), at)
	if k, err := v.Meter.Sent(t.Context(), 5000, false); k != 1000 || err != nil {
		t.Fatalf("%d, %v", k, err)
	}
	n.Rules(policyOf(t, "network:\n\n  - allow: example.org\n    limit: {sent: 1500, at: deny}"), api.ModePolicy)
	again := n.Judge(t.Context(), at)
	if k, err := again.Meter.Sent(t.Context(), 5000, false); k != 500 || err != nil {
		t.Errorf("with more to send: %d, %v", k, err)
	}
	n.Rules(policyOf(t, "network: [{allow: example.org, limit: {sent: 10, at: deny}}]"), api.ModePolicy)
	if v := n.Judge(t.Context(), at); v.Allow {
		t.Errorf("with less: %+v", v)
	}
}

// loop answers as a session's loop does: what is held waits until it is told to give more.
type loop struct {
	n     *Network
	calls chan func()
	asked int
}

func newLoop(t *testing.T, n *Network) *loop {
	l := &loop{n: n, calls: make(chan func(), 100)}
	n.Tries.Admit = n.Admit
	n.Ask = func(try *Try) { l.calls <- func() { l.tried(try) } }
	n.Gone = func(try *Try) { l.calls <- func() { n.Tries.Leave(try) } }
	go func() {
		for f := range l.calls {
			f()
		}
	}()
	t.Cleanup(func() { close(l.calls) })
	return l
}

func (l *loop) tried(try *Try) {
	if v, ok := l.n.Settled(try, start); ok {
		try.Answer(v)
		return
	}
	if _, first := l.n.Tries.Hold(try, start); first {
		l.asked++
	}
}

// do runs something in the loop.
func (l *loop) do(f func()) {
	done := make(chan struct{})
	l.calls <- func() { f(); close(done) }
	<-done
}

// only is the one question that is open.
func (l *loop) only(t *testing.T) (h *Held) {
	if len(l.n.Tries.held) != 1 {
		t.Fatalf("%d questions are open", len(l.n.Tries.held))
	}
	for _, h = range l.n.Tries.held {
	}
	return h
}

// Ten thousand connections with a limit of ten: one question, and each yes is for ten.
func TestManyConnectionsBeyondALimit(t *testing.T) {
	n, _, _ := judged(t, policyOf(t, `network: [{allow: example.org, limit: {connections: 10/min}}]`), api.ModePolicy)
	l := newLoop(t, n)
	const many = 10_000
	var all sync.WaitGroup
	var allowed, denied atomic.Int64
	verdict := make(chan struct{}, many)
	for range many {
		all.Go(func() {
			if v := n.Judge(t.Context(), attempt("tcp", "example.org", synthetic)); v.Allow {
				allowed.Add(1)
			} else if strings.HasPrefix(v.Rule, "denied by") {
				denied.Add(1)
			}
			verdict <- struct{}{}
		})
	}
	for want := int64(10); want <= 30; want += 10 {
		for range 10 {
			<-verdict
		}
		for waiting := false; !waiting; {
			l.do(func() { waiting = len(n.Tries.held) > 0 && l.only(t).Waiting() == many-int(want) })
		}
		if allowed.Load() != want || l.asked != int(want/10) || len(n.accounts.all) != 1 {
			t.Fatalf("%d were let through after %d questions", allowed.Load(), l.asked)
		}
		if want == 30 {
			break
		}
		l.do(func() {
			h := l.only(t)
			if h.Limit() != "connections 10/min" || h.Flood() {
				t.Errorf("it is about %q", h.Limit())
			}
			n.More(h)
			for _, try := range n.Tries.Take(h) {
				l.tried(try)
			}
		})
	}
	l.do(func() { n.Tries.Answer(l.only(t), egress.Verdict{Rule: "denied by cli"}, true, start) })
	all.Wait()
	if allowed.Load() != 30 || denied.Load() != many-30 {
		t.Errorf("%d were let through, and %d denied", allowed.Load(), denied.Load())
	}
}

// Flows that stand still at a limit share a question; a yes lets as much through once more.
func TestFlowsBeyondALimit(t *testing.T) {
	n, _, _ := judged(t, policyOf(t, `network: [{allow: example.org, limit: {sent: 100K}}]`), api.ModePolicy)
	l := newLoop(t, n)
	const flows, limit = 20, 100 << 10
	ctx, cancel := context.WithCancel(t.Context())
	var sent atomic.Int64
	var all sync.WaitGroup
	var open []egress.Verdict
	for range flows {
		v := n.Judge(ctx, attempt("tcp", "example.org", synthetic))
		if !v.Allow {
			t.Fatalf("%+v", v)
		}
		open = append(open, v)
	}
	for _, v := range open {
		all.Go(func() {
			for {
				k, err := v.Meter.Sent(ctx, 1000, false)
				if err != nil {
					return
				}
				sent.Add(int64(k))
			}
		})
	}
	for round := int64(1); round <= 3; round++ {
		for waiting := 0; waiting < flows; {
			l.do(func() {
				if waiting = 0; len(n.Tries.held) > 0 {
					waiting = l.only(t).Waiting()
				}
			})
		}
		if sent.Load() != round*limit || l.asked != int(round) {
			t.Fatalf("%d bytes went out after %d questions, not %d", sent.Load(), l.asked, round*limit)
		}
		if round == 3 {
			break
		}
		l.do(func() {
			h := l.only(t)
			n.More(h)
			for _, try := range n.Tries.Take(h) {
				l.tried(try)
			}
		})
	}
	// A further connection is asked about with them, and one that gives up leaves.
	given, giveUp := context.WithCancel(t.Context())
	done := make(chan egress.Verdict)
	go func() { done <- n.Judge(given, attempt("tcp", "example.org", synthetic)) }()
	for waiting := 0; waiting != flows+1; {
		l.do(func() { waiting = l.only(t).Waiting() })
	}
	giveUp()
	<-done
	l.do(func() {
		if w := l.only(t).Waiting(); w != flows {
			t.Errorf("%d wait", w)
		}
	})
	cancel()
	all.Wait()
	l.do(func() {
		if w := l.only(t).Waiting(); w != 0 {
			t.Errorf("%d wait for nothing", w)
		}
	})
}

func BenchmarkMeter(b *testing.B) {
	l, err := policytest.ParseLayer("test", "", []byte("limits: {sent: 8000T}\nnetwork: [{allow: example.org, limit: {sent: 8000T}}]"))
	must.OK(b, err)
	var n Network
	n.Rules(policy.Of(l), api.ModePolicy)
	v := n.Judge(b.Context(), attempt("tcp", "example.org", synthetic))
	for b.Loop() {
		if _, err := v.Meter.Sent(b.Context(), 1, false); err != nil {
			b.Fatal(err)
		}
	}
}
