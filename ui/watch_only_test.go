package ui

import (
	"context"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
)

// Who only watches sees all, and no key decides, types or sizes anything; each
// says why.
func TestWatchingDecidesNothing(t *testing.T) { alone(t, testWatchingDecidesNothing) }

func testWatchingDecidesNothing(t *testing.T) {
	c := sceneWorkbench(sceneQuestion())
	d := drive(t, c, 120, 35, Options{Session: sceneSession().ID, Config: themed("plain"), Watching: true,
		Export: func(context.Context, string, string) error { t.Error("a patch was written"); return nil }})
	d.until("the session is shown", func() bool { return d.m.bench != nil && d.m.bench.Arrived() && c.LastTerminal() != nil })
	d.idle()
	d.advance(time.Second)
	d.shows("WATCHING ONLY")
	d.press("x")
	d.press("4")
	for _, key := range []string{"a", "d", "i", "o", "y", "u", "U", "K", "w", "Z", "p", "c", "ctrl+k", "ctrl+r", "r", "x"} {
		d.advance(7 * time.Second)
		d.press(key)
		d.shows("you are watching only")
	}
	// Nor does an opened question offer what it refuses.
	d.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	d.press("enter")
	d.shows("! you are watching only: attach without --read-only decides")
	d.lacks("approve once")
	d.lacks("deny…")
	for _, key := range []string{"a", "b", "d", "i", "o"} {
		d.advance(7 * time.Second)
		d.calmly(key)
		d.until("all of why is said below", func() bool { return strings.Count(d.text(), "attach without --read-only decides") >= 2 })
	}
	d.press("?")
	d.shows("approve once")
	d.shows("you are watching only")
	d.press("esc", "esc")
	d.idle()
	if n := len(c.Decisions()); n > 0 {
		t.Errorf("%d decisions", n)
	}
	if term := c.LastTerminal(); term.Got() != "" || len(term.Sizes()) > 0 {
		t.Errorf("typed %q, sized %v", term.Got(), term.Sizes())
	}
}
