package ui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/ui/config"
)

// The title line says where the keys go, and of a zoomed pane that it is.
func TestTitleSaysWhere(t *testing.T) { alone(t, testTitleSaysWhere) }

func testTitleSaysWhere(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.press(leader, "4", "k")
	d.shows("fix-tests · claude › Actions › #12")
	d.press("z")
	d.shows("4 Actions · zoomed")
	d.press("2")
	d.shows("› Changes › src/parse.go")
	d.press("enter")
	d.idle()
	d.shows("› Changes › src/parse.go › hunk 1/2")
	d.press("]")
	d.shows("› hunk 2/2")
	d.shows("2 Changes · zoomed")
	d.send(tea.WindowSizeMsg{Width: 60, Height: 20}) // the end of the way gives way first
	d.shows("› Changes")
	d.lacks("hunk 2/2")
	d.press("esc")
	d.lacks("zoomed")
}

// ? shows the keys of every place that doesn't take text, named in the same corner of
// the screen; again, or esc, is the way back.
func TestHelpEverywhere(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][]string{
		"actions":      {leader, "4"},
		"changes":      {leader, "2"},
		"details":      {leader, "4", "enter"},
		"facts":        {leader, "i"},
		"rules":        {leader, "4", "P"},
		"applies":      {leader, "4", "Z"},
		"confirmation": {leader, "4", "ctrl+k"},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			d := bench(t, sceneWorkbench(), 80, 24, "plain")
			a := sceneApplied()
			d.c.SetApplied(a)
			d.c.Put(api.Event{Apply: &a})
			d.idle()
			d.press(keys...)
			d.idle()
			lines := strings.Split(d.text(), "\n")
			if last := lines[len(lines)-1]; !strings.Contains(last, "? help") {
				t.Errorf("the last line is %q", last)
			}
			d.press("?")
			d.shows("━ Keys ")
			d.press("?")
			d.lacks("━ Keys ")
		}))
	}
}

// The last line names no key that has nothing to do: in empty lists there is nothing to
// open or to select.
func TestNothingIsOfferedForNothing(t *testing.T) { alone(t, testNothingIsOfferedForNothing) }

func testNothingIsOfferedForNothing(t *testing.T) {
	c := newFake(newScene().Sessions...)
	ses := sceneSession()
	c.Put(api.Event{Session: &ses})
	c.SetChanges(0, api.Changes{Version: 1})
	d := bench(t, c, 200, 50, "plain")
	for _, pane := range []string{"2", "3", "4"} {
		d.press(leader, pane)
		for _, words := range []string{"enter details", "enter read", "space select", "v view", "what broke it"} {
			d.lacks(words)
		}
		d.shows("z zoom")
	}
}

// What the window's title says reaches it whole: as ASCII within GNU screen, as words for
// a reader.
func TestWindowTitle(t *testing.T) { alone(t, testWindowTitle) }

func testWindowTitle(t *testing.T) {
	for _, tt := range []struct {
		sty, want string
		plain     bool
	}{
		{"", "◆ 1 held — fix-tests · stepbox", false},
		{"123.pts-0.host", "* 1 held - fix-tests - stepbox", false},
		{"", "1 held - fix-tests, stepbox", true},
		{"123.pts-0.host", "1 held - fix-tests, stepbox", true},
	} {
		d := drive(t, sceneWorkbench(), 120, 35, Options{Session: sceneSession().ID, Config: &config.Config{Plain: tt.plain, Notify: config.Notify{Title: true}},
			Getenv: func(k string) string { return map[string]string{"STY": tt.sty}[k] }})
		d.until("the session is shown", func() bool { return d.m.bench != nil && d.m.bench.Arrived() && d.c.LastTerminal() != nil })
		put(d, ask(6, 14, "rm x"))
		d.until("it is told", func() bool { return strings.Contains(d.frame.Title, "held") })
		if d.frame.Title != tt.want {
			t.Errorf("STY=%s: the title is %q, want %q", tt.sty, d.frame.Title, tt.want)
		}
	}
}
