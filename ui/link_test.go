package ui

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/ui/link"
)

// nextMessage waits for a message that f accepts.
func nextMessage(t *testing.T, l *link.Link, what string, f func(tea.Msg) bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		got := make(chan tea.Msg, 1)
		go func() { got <- l.Next()() }()
		select {
		case m := <-got:
			if f(m) {
				return
			}
		case <-time.After(patience):
			l.Close() // lets the waiting one go
			<-got
		}
	}
	t.Fatalf("never: %s", what)
}

func openLink(t *testing.T, c *fakeClient) *link.Link {
	t.Helper()
	l := link.Open(t.Context(), c, sceneSession().ID, newFakeEmulator)
	t.Cleanup(l.Close)
	return l
}

func TestEventsArriveOnceAndInOrder(t *testing.T) {
	c := newFake(sceneSession())
	const n = 5000
	for i := range n {
		c.Put(api.Event{Action: &api.Action{N: i + 1}})
	}
	l := openLink(t, c)
	seen := 0
	caught := false
	collect := func(m tea.Msg) bool {
		e, ok := m.(link.Events)
		if !ok {
			return false
		}
		for _, x := range e.Batch {
			seen++
			if int(x.Seq) != seen {
				t.Fatalf("event %d came as the %dth", x.Seq, seen)
			}
		}
		caught = e.Caught
		return seen >= n && caught
	}
	nextMessage(t, l, "the history", collect)

	// Broken and joined again: nothing twice, nothing lost.
	c.Break(errors.New("reset"))
	nextMessage(t, l, "the loss is told", func(m tea.Msg) bool {
		lost, ok := m.(link.Lost)
		return ok && lost.Err != nil && !lost.Terminal
	})
	c.Put(api.Event{Action: &api.Action{N: n + 1}})
	c.Break(nil)
	nextMessage(t, l, "what came meanwhile", func(m tea.Msg) bool {
		collect(m)
		return seen == n+1
	})
}

func TestOverWhenTheSessionEnded(t *testing.T) {
	c := newFake(sceneSession())
	s := sceneSession()
	s.State = api.SessionEnded
	c.Put(api.Event{Session: &s})
	c.End()
	l := openLink(t, c)
	nextMessage(t, l, "it is over", func(m tea.Msg) bool {
		o, ok := m.(link.Over)
		return ok && o.Err == nil && o.Session.State == api.SessionEnded
	})
}

func TestUnknownSessionIsOver(t *testing.T) {
	l := link.Open(t.Context(), newFake(), "none", newFakeEmulator)
	defer l.Close()
	c := newFake()
	c.Break(&api.Problem{Code: api.CodeNotFound, Message: "gone"})
	m := link.Open(t.Context(), c, "none", newFakeEmulator)
	defer m.Close()
	nextMessage(t, m, "it is over", func(msg tea.Msg) bool {
		_, ok := msg.(link.Over)
		return ok
	})
}

// linkText looks at the screen as who draws it does: that it moves on is told again.
func linkText(l *link.Link) (out string) {
	l.Screen.Seen(func(e link.Emulator) { out = strings.Join(e.(*fakeEmulator).Text(), "\n") })
	return out
}

func TestTerminal(t *testing.T) {
	c := newFake(sceneSession())
	c.SetScreen(80, 24, "keyframe\n")
	l := openLink(t, c)
	nextMessage(t, l, "it is joined", func(m tea.Msg) bool { lost, ok := m.(link.Lost); return ok && lost.Terminal && lost.Err == nil })
	if !strings.Contains(linkText(l), "keyframe") {
		t.Error("joined without a keyframe")
	}
	l.Resize(100, 40)
	l.Resize(100, 40)
	if !l.Type([]byte("hello")) || !l.Type(nil) {
		t.Error("typing was refused")
	}
	term := c.LastTerminal()
	term.Output(strings.Repeat("x", 100<<10))
	nextMessage(t, l, "all output", func(tea.Msg) bool { return strings.Count(linkText(l), "x") == 100<<10 })
	poll(t, "input", func() bool { return term.Got() == "hello" })
	poll(t, "one resize", func() bool { s := term.Sizes(); return len(s) == 1 && s[0] == [2]int{100, 40} })

	// The connection breaks: what is typed meanwhile is refused, what comes
	// after the next keyframe is typed to that one, and the size is told anew.
	term.Close()
	nextMessage(t, l, "the loss is told", func(m tea.Msg) bool { lost, ok := m.(link.Lost); return ok && lost.Terminal && lost.Err != nil })
	if l.Type([]byte("lost")) {
		t.Error("typing without a terminal was taken")
	}
	c.SetScreen(80, 24, "second\n")
	nextMessage(t, l, "it is joined again", func(m tea.Msg) bool { lost, ok := m.(link.Lost); return ok && lost.Terminal && lost.Err == nil })
	if got := linkText(l); strings.Contains(got, "x") || !strings.Contains(got, "second") {
		t.Error("the old screen is still there")
	}
	l.Type([]byte("again"))
	poll(t, "input", func() bool { return c.LastTerminal().Got() == "again" })
	poll(t, "the size", func() bool { return len(c.LastTerminal().Sizes()) == 1 })
}

func poll(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		<-time.After(time.Millisecond)
	}
}

func TestTypeIsBounded(t *testing.T) {
	c := newFake(sceneSession())
	l := openLink(t, c)
	nextMessage(t, l, "it is joined", func(m tea.Msg) bool { lost, ok := m.(link.Lost); return ok && lost.Terminal && lost.Err == nil })
	c.LastTerminal().Stick()
	n := 0
	for l.Type([]byte("x")) {
		if n++; n > 10000 {
			t.Fatal("the queue has no end")
		}
	}
	if n < 1000 {
		t.Errorf("only %d pieces were taken", n)
	}
	if l.Type(make([]byte, link.MaxTyped+1)) {
		t.Error("more was taken than the queue may hold")
	}
}

// Closing ends everything, also with the agent stuck and nobody reading.
func TestCloseEndsEverything(t *testing.T) {
	c := newFake(sceneSession())
	for i := range 100000 {
		c.Put(api.Event{Action: &api.Action{N: i + 1}})
	}
	ctx, cancel := context.WithCancel(t.Context())
	l := link.Open(ctx, c, sceneSession().ID, newFakeEmulator)
	poll(t, "a terminal", func() bool { return c.LastTerminal() != nil })
	c.LastTerminal().Stick()
	l.Type([]byte("x"))
	done := make(chan struct{})
	go func() { l.Close(); l.Close(); close(done) }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("Close hangs")
	}
	if l.Type([]byte("x")) {
		t.Error("a closed link takes input")
	}
	cancel()
	if m := l.Next()(); m != nil {
		if _, ok := m.(link.Events); !ok {
			if _, ok := m.(link.Drawn); !ok {
				if _, ok := m.(link.Lost); !ok {
					t.Errorf("got %T", m)
				}
			}
		}
	}
}
