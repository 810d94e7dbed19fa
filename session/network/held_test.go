package network

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stepbox/policy"
	"stepbox/runner/egress"
	"stepbox/session/api"
)

// The record has a program that gave up as the screens know it.
func TestGaveUp(t *testing.T) {
	if egress.GaveUp != api.AttemptGaveUp {
		t.Errorf("%q isn't %q", egress.GaveUp, api.AttemptGaveUp)
	}
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func try(program, name string, port int, protocol policy.Protocol, pid, action int) *Try {
	return &Try{
		At:      egress.Attempt{PID: pid, Program: program, Name: name},
		Key:     Key{Program: program, To: policy.Destination{Name: name, Port: port, Protocol: protocol}},
		Action:  action,
		verdict: make(chan egress.Verdict, 1),
	}
}

// verdict is what a try was given, if it was.
func (t *Try) given() (egress.Verdict, bool) {
	select {
	case v := <-t.verdict:
		return v, true
	default:
		return egress.Verdict{}, false
	}
}

// Tries share a question when program, name, port and protocol are the same.
func TestHeldByKey(t *testing.T) {
	var l Tries
	first, isNew := l.Hold(try("curl", "example.org", 443, policy.TCP, 1, 0), start)
	if !isNew || first.Waiting() != 1 {
		t.Fatalf("the first: new %v, %d wait", isNew, first.Waiting())
	}
	for _, c := range []struct {
		what   string
		try    *Try
		shares bool
	}{
		{"another process", try("curl", "example.org", 443, policy.TCP, 2, 5), true},
		{"another program", try("wget", "example.org", 443, policy.TCP, 1, 0), false},
		{"another name", try("curl", "www.example.org", 443, policy.TCP, 1, 0), false},
		{"another port", try("curl", "example.org", 80, policy.TCP, 1, 0), false},
		{"another protocol", try("curl", "example.org", 443, policy.UDP, 1, 0), false},
		{"echo", try("curl", "example.org", 0, policy.ICMP, 1, 0), false},
	} {
		h, isNew := l.Hold(c.try, start)
		if (h == first) != c.shares || isNew == c.shares {
			t.Errorf("%s: shares %v, new %v", c.what, h == first, isNew)
		}
	}
	if first.Tries != 2 || first.Waiting() != 2 || first.Last.At.PID != 2 {
		t.Errorf("the first question: %+v", first)
	}
	l.Answer(first, egress.Verdict{Allow: true}, false, start)
	if l.held[Key{}] != nil || len(l.held) != 5 {
		t.Errorf("%d questions are left", len(l.held))
	}
}

// A question stands ten minutes after its last try, longer while a program waits.
func TestHeldForTenMinutes(t *testing.T) {
	var l Tries
	a := try("curl", "example.org", 443, policy.TCP, 1, 0)
	h, _ := l.Hold(a, start)
	if h.Stale(start.Add(time.Hour)) {
		t.Error("stale while it waits")
	}
	if l.Leave(a) != h || l.Leave(a) != nil {
		t.Error("a program leaves once")
	}
	if h.Stale(start.Add(Patience-1)) || !h.Stale(start.Add(Patience)) {
		t.Error("not ten minutes")
	}
	b := try("curl", "example.org", 443, policy.TCP, 2, 0)
	if again, isNew := l.Hold(b, start.Add(Patience-1)); again != h || isNew || h.Tries != 2 {
		t.Error("the retry is another question")
	}
	l.Leave(b)
	if h.Stale(start.Add(2*Patience-2)) || !h.Stale(start.Add(2*Patience)) {
		t.Error("not ten minutes after the last try")
	}
	l.Drop(h)
	if _, isNew := l.Hold(try("curl", "example.org", 443, policy.TCP, 3, 0), start); !isNew {
		t.Error("a question that was dropped is still there")
	}
}

// An answer that isn't made a rule serves those who asked when they try again, and
// nobody else.
func TestAnswersServeRetries(t *testing.T) {
	yes := egress.Verdict{Allow: true, Rule: "approved"}
	retry := func(pid, action int) *Try { return try("curl", "example.org", 443, policy.TCP, pid, action) }
	for _, c := range []struct {
		what     string
		asked    *Try
		left     bool // before the answer
		remember bool
		retry    *Try
		after    time.Duration
		served   bool
	}{
		{"the same action, another process", retry(1, 5), false, true, retry(2, 5), time.Minute, true},
		{"another action", retry(1, 5), false, true, retry(1, 6), time.Minute, false},
		{"the same process without action", retry(1, 0), false, true, retry(1, 0), time.Minute, true},
		{"another process without action", retry(1, 0), false, true, retry(2, 0), time.Minute, false},
		{"later", retry(1, 5), false, true, retry(1, 5), Patience + 1, false},
		{"a rule instead", retry(1, 5), false, false, retry(1, 5), time.Minute, false},
		{"it gave up, another comes", retry(1, 5), true, true, retry(9, 8), time.Minute, true},
		{"another host", retry(1, 5), false, true, try("curl", "example.com", 443, policy.TCP, 1, 5), time.Minute, false},
		{"another program", retry(1, 5), false, true, try("wget", "example.org", 443, policy.TCP, 1, 5), time.Minute, false},
		{"who knows whose it was, or is", retry(0, 0), false, true, retry(0, 0), time.Minute, false},
	} {
		var l Tries
		h, _ := l.Hold(c.asked, start)
		if c.left {
			l.Leave(c.asked)
		}
		l.Answer(h, yes, c.remember, start)
		if _, ok := c.asked.given(); ok == c.left {
			t.Errorf("%s: the first was answered: %v", c.what, ok)
		}
		v, served := l.Answered(c.retry, start.Add(c.after))
		if served != c.served || served && v != yes {
			t.Errorf("%s: %v %+v", c.what, served, v)
		}
	}
}

// An answer for whoever comes next becomes that one's.
func TestAnswerForTheNext(t *testing.T) {
	var l Tries
	gone := try("curl", "example.org", 443, policy.TCP, 1, 0)
	h, _ := l.Hold(gone, start)
	l.Leave(gone)
	l.Answer(h, egress.Verdict{Allow: true}, true, start)
	for _, c := range []struct {
		pid    int
		served bool
	}{{2, true}, {2, true}, {3, false}} {
		if _, ok := l.Answered(try("curl", "example.org", 443, policy.TCP, c.pid, 0), start); ok != c.served {
			t.Errorf("process %d: %v", c.pid, ok)
		}
	}

	// Where it isn't known whose the next is, it is for that one alone.
	unknown := func() *Try { return try("", "example.org", 443, policy.TCP, 0, 0) }
	gone = unknown()
	h, _ = l.Hold(gone, start)
	l.Leave(gone)
	l.Answer(h, egress.Verdict{Allow: true}, true, start)
	for i, served := range []bool{true, false} {
		if _, ok := l.Answered(unknown(), start); ok != served {
			t.Errorf("unknown %d: %v", i, ok)
		}
	}
}

// A question has one answer: a second one at the same moment changes nothing.
func TestTwoAnswersAtOnce(t *testing.T) {
	var l Tries
	a := try("curl", "example.org", 443, policy.TCP, 1, 5)
	h, _ := l.Hold(a, start)
	l.Answer(h, egress.Verdict{Rule: "denied"}, true, start)
	l.Answer(h, egress.Verdict{Allow: true, Rule: "approved"}, true, start)
	if v, _ := a.given(); v.Allow {
		t.Errorf("the program got %+v", v)
	}
	if v, ok := l.Answered(try("curl", "example.org", 443, policy.TCP, 1, 5), start); !ok || v.Allow {
		t.Errorf("its retry gets %v %+v", ok, v)
	}
	if len(l.given) != 1 {
		t.Errorf("%d answers are remembered", len(l.given))
	}
}

// Of a thousand names one question is left, which says so; but what a person is just
// answering stays with that.
func TestFloodOfNames(t *testing.T) {
	var l Tries
	var all []*Try
	var over []*Held
	for i := range 1000 {
		a := try("npm", fmt.Sprintf("n%d.example.org", i), 443, policy.TCP, 1, 0)
		all = append(all, a)
		if h, first := l.Hold(a, start); first && h.Flood() {
			over = l.Absorb(h, func(h *Held) bool { return h.Last != all[7] })
		}
	}
	flood := l.held[Key{}]
	if flood == nil || !flood.Flood() || flood.Tries != 999 || flood.Waiting() != 999 || len(flood.Others) != MaxFlood {
		t.Fatalf("flood %+v", flood)
	}
	if len(over) != MaxHeld-1 || len(l.held) != 2 || l.held[all[7].Key] == nil {
		t.Errorf("%d questions are over, %d left", len(over), len(l.held))
	}
	if l.Leave(all[0]) != flood {
		t.Error("what was absorbed left another question")
	}
	l.Answer(flood, egress.Verdict{Rule: "denied"}, true, start)
	answered := 0
	for _, a := range all {
		if _, ok := a.given(); ok {
			answered++
		}
	}
	if answered != 998 || len(l.given) != 0 {
		t.Errorf("%d are answered, %d remembered", answered, len(l.given))
	}
}

// Whatever happens in whatever order: a try has at most one verdict, nobody has one
// that wasn't given for its key, questions are bounded, and what waits is in exactly
// one of them.
func TestTriesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Tries
		now := start
		waits := make(map[*Try]*Held)
		allowed := make(map[Key]bool) // an answer or a rule has ever allowed it
		settle := func() {
			for a := range waits {
				v, ok := a.given()
				if !ok {
					continue
				}
				delete(waits, a)
				if v.Allow && !allowed[a.Key] {
					t.Fatalf("%+v was let through unasked", a.Key)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"try": func(t *rapid.T) {
				a := try(rapid.SampledFrom([]string{"", "curl", "npm"}).Draw(t, "program"),
					fmt.Sprintf("n%d.example.org", rapid.IntRange(0, 40).Draw(t, "name")), 443,
					rapid.SampledFrom([]policy.Protocol{policy.TCP, policy.UDP}).Draw(t, "protocol"),
					rapid.IntRange(0, 3).Draw(t, "pid"), rapid.IntRange(0, 2).Draw(t, "action"))
				if v, ok := l.Answered(a, now); ok {
					if v.Allow && !allowed[a.Key] {
						t.Fatalf("%+v was let through unasked", a.Key)
					}
					return
				}
				h, first := l.Hold(a, now)
				if !h.Flood() && h.Key != a.Key {
					t.Fatalf("%+v waits with %+v", a.Key, h.Key)
				}
				if first != (h.Tries == 1) {
					t.Fatalf("first is %v at try %d", first, h.Tries)
				}
				waits[a] = h
				if first && h.Flood() {
					for _, over := range l.Absorb(h, func(*Held) bool { return rapid.Bool().Draw(t, "may") }) {
						for b, of := range waits {
							if of == over {
								waits[b] = h
							}
						}
					}
				}
			},
			"leave": func(t *rapid.T) {
				for a, h := range waits { // any one
					if l.Leave(a) != h {
						t.Fatal("it left another question")
					}
					delete(waits, a)
					return
				}
			},
			"answer": func(t *rapid.T) {
				for k, h := range l.held {
					v := egress.Verdict{Allow: !h.Flood() && rapid.Bool().Draw(t, "allow")}
					allowed[k] = allowed[k] || v.Allow
					l.Answer(h, v, rapid.Bool().Draw(t, "remember"), now)
					settle()
					for a, of := range waits {
						if of == h {
							t.Fatalf("%+v still waits", a.Key)
						}
					}
					return
				}
			},
			"rule": func(t *rapid.T) {
				port := rapid.SampledFrom([]policy.Protocol{policy.TCP, policy.UDP}).Draw(t, "protocol")
				for _, h := range l.held {
					h.Rejudge(func(a *Try) (egress.Verdict, bool) {
						if a.Key.To.Protocol == port {
							allowed[a.Key] = true
						}
						return egress.Verdict{Allow: true}, a.Key.To.Protocol == port
					})
				}
				settle()
			},
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 900).Draw(t, "seconds")) * time.Second)
			},
			"": func(t *rapid.T) {
				if len(l.held) > MaxHeld+1 || len(l.given) > maxOnce {
					t.Fatalf("%d questions, %d answers", len(l.held), len(l.given))
				}
				total := 0
				for _, h := range l.held {
					total += h.Waiting()
					if h.Waiting() > 0 && h.Stale(now) {
						t.Fatal("a question is stale that a program waits for")
					}
					if len(h.Others) > MaxFlood || h.Flood() == (len(h.Others) == 0) {
						t.Fatalf("%d others", len(h.Others))
					}
				}
				if total != len(waits) {
					t.Fatalf("%d wait in questions, %d in all", total, len(waits))
				}
			},
		})
	})
}

// What is kept of a question doesn't grow with who tries: an agent starts as many programs,
// of as many names, as it likes.
func TestHeldIsBounded(t *testing.T) {
	var l Tries
	for i := range 20_000 {
		for _, t := range []*Try{
			try(fmt.Sprintf("/p/%d", i), fmt.Sprintf("%d.example.org", i), 443, policy.TCP, i+1, 0),
			try("/p/0", "0.example.org", 443, policy.TCP, i+1, 0),
		} {
			l.Hold(t, start)
			l.Leave(t)
		}
	}
	for _, h := range l.held {
		if len(h.all) > maxOnce || len(h.programs) > MaxFlood || len(h.Others) > MaxFlood {
			t.Errorf("kept of %v are %d who tried, %d programs and %d names", h.Key, len(h.all), len(h.programs), len(h.Others))
		}
	}
}
