package network

import (
	"strings"
	"testing"
	"time"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/ui/internal/cellstest"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

func frame(t testing.TB, dst uv.Screen) paint.Frame {
	f := cellstest.Frame(t, dst)
	f.Now, f.Focused, f.Number = now, true, "3"
	return f
}

func tried(t testing.TB) []api.Attempt {
	var s struct{ Attempts []api.Attempt }
	cellstest.Scene(&s)
	return s.Attempts
}

var (
	now     = session.StartedAt.Add(14 * time.Minute)
	session = api.Session{State: api.SessionRunning, StartedAt: time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC)}
)

func TestFolds(t *testing.T) {
	folds := foldsOf(tried(t))
	if len(folds) != 4 {
		t.Fatalf("%d rows: %+v", len(folds), folds)
	}
	first := folds[0]
	if first.Count != 2 || first.Sent != 17300 || first.Received != 100000 || first.Open != 1 || len(first.IDs) != 2 {
		t.Errorf("the first row is %+v", first)
	}
	// Another verdict for the same host is another row.
	again := append(tried(t), api.Attempt{ID: 9, Protocol: "tcp", Name: "pastebin.com", Port: 443, Program: "/usr/bin/curl", Verdict: api.Allow})
	if n := len(foldsOf(again)); n != 5 {
		t.Errorf("%d rows with another verdict", n)
	}
}

func TestRows(t *testing.T) {
	s := state.State{Session: session}
	for _, a := range tried(t) {
		s.Apply(api.Event{Attempt: &a})
	}
	s.Apply(api.Event{Attempt: &api.Attempt{ID: 19, Protocol: "tcp", Name: "slow.example", Port: 443, Verdict: api.Deny, Failure: api.AttemptGaveUp}})
	s.Apply(api.Event{Attempt: &api.Attempt{ID: 20, Protocol: "udp", Address: "2001:db8::1", Port: 53, Verdict: api.Ask}})
	p := &Pane{State: &s}
	b := uv.NewScreenBuffer(80, 10)
	p.Draw(uv.Rect(0, 0, 80, 10), frame(t, b))
	got := b.String()
	for _, want := range []string{
		"3 denied · 8 attempts", "✓ 01:01 api.anthropic.com:443  node", "17k↑ 98k↓ open ×2", "✗ 01:31 pastebin.com:443", "denied ×2",
		"! 03:20 registry.example:443", "failed", "slow.example:443", "gave up", "◆", "[2001:db8::1]:53 udp", "HELD",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q isn't shown:\n%s", want, got)
		}
	}
	if f, ok := p.Selected(); !ok || f.Last.ID != 20 {
		t.Errorf("following, %+v is selected", f.Last)
	}
}

func FuzzDraw(f *testing.F) {
	f.Add("evil\x1b[2J.example", "198.18.0.1:80", "/bin/\u202esh", "tcp", 60, 8, 443)
	f.Add("", "::1", "漢", "icmp", 30, 3, -1)
	f.Fuzz(func(t *testing.T, name, address, program, protocol string, w, h, port int) {
		w, h = max(0, w%160), max(0, h%40)
		var s state.State
		s.Apply(api.Event{Attempt: &api.Attempt{ID: 1, Name: name, Address: address, Program: program, Protocol: protocol, Port: port, Verdict: api.Verdict(protocol), Failure: name, Sent: int64(port)}})
		s.Apply(api.Event{Attempt: &api.Attempt{ID: 2, Address: address, Program: program, Verdict: api.Allow, Open: true}})
		p := &Pane{State: &s}
		b := uv.NewScreenBuffer(w+4, h+4)
		p.Draw(uv.Rect(2, 2, w, h), frame(t, b))
		cellstest.Check(t, b, uv.Rect(2, 2, w, h))
	})
}

// A screen that began with the newest attempts says so.
func TestNewestOnly(t *testing.T) {
	for first, want := range map[int64]string{1: " 2 attempts", 4001: " newest 2 attempts"} {
		s := state.State{Session: session}
		for id := first; id < first+2; id++ {
			s.Apply(api.Event{Attempt: &api.Attempt{ID: id, Protocol: "tcp", Name: "registry.example", Port: 443}})
		}
		b := uv.NewScreenBuffer(80, 10)
		(&Pane{State: &s}).Draw(b.Bounds(), frame(t, b))
		if got := b.String(); !strings.Contains(got, want) {
			t.Errorf("from %d on it says\n%s", first, got)
		}
	}
}
