package ui

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/screen"
	"stepbox/ui/link"
)

// joined shows a session whose terminal is a real one.
func joined(t *testing.T, o Options) *driver {
	t.Helper()
	return joinedAt(t, 120, 35, o)
}

func joinedAt(t *testing.T, cols, rows int, o Options) *driver {
	t.Helper()
	c := sceneWorkbench()
	c.SetScreen(70, 22, strings.ReplaceAll(newScene().Screen, "\n", "\r\n"))
	o.Session = sceneSession().ID
	o.NewTerminal = func(cols, rows int) link.Emulator { return screen.New(cols, rows) }
	if o.Config == nil {
		o.Config = themed("plain")
	}
	d := drive(t, c, cols, rows, o)
	d.until("the session is shown", func() bool { return d.m.bench != nil && d.m.bench.Arrived() && c.LastTerminal() != nil })
	d.idle()
	d.advance(time.Second)
	return d
}

// prints has the agent print something, and waits until it is drawn.
func (d *driver) prints(text string) {
	d.t.Helper()
	d.c.LastTerminal().Output(text + "\r\n.")
	d.idle()
}

func copying(text string) string {
	return "\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte(text)) + "\a"
}

// An agent's bell rings, at most every two seconds, and its notifications are told as ours,
// few of them and without anything that acts.
func TestAgentSignals(t *testing.T) { alone(t, testAgentSignals) }

func testAgentSignals(t *testing.T) {
	set := themed("plain")
	set.Notify.OSC = "9"
	d := joined(t, Options{Config: set})
	d.send(tea.BlurMsg{})
	d.prints("\a\a\a")
	d.prints("\a")
	if d.raw != "\a" {
		t.Errorf("four bells in a moment send %q", d.raw)
	}
	d.advance(3 * time.Second)
	d.prints("\a")
	if d.raw != "\a\a" {
		t.Errorf("another sends %q", d.raw)
	}
	d.raw = ""
	d.prints("\x1b]777;notify;the agent;needs ;you\x1b\\")
	d.shows("the agent says: the agent: needs ,you")
	if want := "\x1b]9;stepbox: fix-tests › the agent: needs ,you\a"; d.raw != want {
		t.Errorf("the terminal got %q, not %q", d.raw, want)
	}
	d.raw = ""
	for range 20 {
		d.prints("\x1b]9;again\a")
	}
	if n := strings.Count(d.raw, "again"); n != noteBurst-1 {
		t.Errorf("%d notifications in a moment were passed on", n)
	}
	d.advance(time.Minute)
	d.raw = ""
	d.send(tea.FocusMsg{})
	d.prints("\x1b]9;while looking\a")
	d.shows("the agent says: while looking")
	if d.raw != "" {
		t.Errorf("who looks was sent %q", d.raw)
	}
	set.Notify.Agent = false
	d.send(tea.BlurMsg{})
	d.advance(time.Minute)
	d.prints("\a\x1b]9;not wanted\a")
	if d.raw != "" {
		t.Errorf("who doesn't want it was sent %q", d.raw)
	}
}

// What an agent copies is asked about once. The question comes when it is opened, its yes has
// to wait as any, and a no holds.
func TestAgentCopies(t *testing.T) { alone(t, testAgentCopies) }

func testAgentCopies(t *testing.T) {
	d := joined(t, Options{})
	d.prints(copying("some text\n\x1b[31mof the agent"))
	d.shows("the agent wants to copy 2 lines to your clipboard: ctrl+] a shows it")
	d.press("y")
	d.until("the key is the agent's: no question takes it", func() bool { return d.c.LastTerminal().Got() == "y" })
	d.press(leader, "a")
	d.shows("May the agent copy to your clipboard?")
	d.shows("some text")
	d.shows(`\x1b[31mof the agent`)
	d.press("y")
	d.shows("too soon")
	if d.copied != "" {
		t.Fatalf("a key in flight had %q copied", d.copied)
	}
	d.calmly("y")
	d.shows("control characters") // on which a paste could act: not even with a yes
	d.prints(copying("more"))
	d.until("it is copied without a question", func() bool { return d.copied == "more" })
	d.shows("programs copy: 4 characters of the agent's: more")
	for range 20 {
		d.prints(copying("flood"))
	}
	if n := strings.Count(d.raw, "\x1b]52;"); n > copyFlood {
		t.Errorf("%d texts were copied in a moment", n)
	}
	d.prints("\x1b]52;c;?\a")
	if got := d.c.LastTerminal().Got(); got != "y" {
		t.Errorf("the agent was sent %q", got)
	}

	d = joined(t, Options{})
	d.prints(copying("a"))
	d.press(leader, "a")
	d.shows("May the agent copy")
	d.press("esc")
	d.shows("doesn't copy in this session")
	d.advance(time.Minute)
	d.prints(copying("b"))
	d.lacks("wants to copy")
	d.press(leader, "a")
	d.shows("nothing is held")
	d.press(leader, ":")
	d.types("let the agent copy")
	d.press("enter")
	d.shows("May the agent copy")
	d.calmly("y")
	d.shows("✓ the agent may copy")
	d.prints(copying("c"))
	d.until("it is copied", func() bool { return d.copied == "c" })
}

// copyFlood is how many of a flood of copies may come through.
const copyFlood = 4

// Who only watches is told nothing of it.
func TestSignalsToWhoWatches(t *testing.T) { alone(t, testSignalsToWhoWatches) }

func testSignalsToWhoWatches(t *testing.T) {
	d := joined(t, Options{Watching: true})
	d.send(tea.BlurMsg{})
	d.prints("\a\x1b]9;words\a" + copying("text"))
	d.lacks("words")
	d.lacks("wants to copy")
	if d.raw != "" {
		t.Errorf("the terminal got %q", d.raw)
	}
}

// An agent that wants to know is told when its pane and the window have the keys, once, and
// nothing when it doesn't.
func TestAgentFocus(t *testing.T) { alone(t, testAgentFocus) }

func testAgentFocus(t *testing.T) {
	d := joined(t, Options{})
	got := func(want string) {
		t.Helper()
		d.until("the agent got it", func() bool { return len(d.c.LastTerminal().Got()) >= len(want) })
		d.idle()
		if got := d.c.LastTerminal().Got(); got != want {
			t.Fatalf("the agent got %q, not %q", got, want)
		}
	}
	d.send(tea.BlurMsg{})
	d.send(tea.FocusMsg{})
	got("")
	d.prints("\x1b[?1004h")
	got("\x1b[I")
	d.send(tea.BlurMsg{})
	d.send(tea.BlurMsg{})
	got("\x1b[I\x1b[O")
	d.send(tea.FocusMsg{})
	d.press(leader, "4")
	got("\x1b[I\x1b[O\x1b[I\x1b[O")
	d.press("1")
	got("\x1b[I\x1b[O\x1b[I\x1b[O\x1b[I")
	d.prints("\x1b[?1004l")
	d.press(leader, "4")
	got("\x1b[I\x1b[O\x1b[I\x1b[O\x1b[I")
}

// A mouse that reports presses alone doesn't leave a button held down, for the agent or here.
func TestMouseOfPressesAlone(t *testing.T) { alone(t, testMouseOfPressesAlone) }

func testMouseOfPressesAlone(t *testing.T) {
	d := joined(t, Options{})
	d.prints("\x1b[?1000h\x1b[?1006h")
	top := strings.Split(d.text(), "\n")[1]
	border := utf8.RuneCountInString(top[:strings.IndexAny(top, "┓")])
	const x, y = 3, 5 // in the Terminal, whose corner is at 1, 2
	d.send(click(x, y))
	d.send(click(x, y))
	want := "\x1b[<0;3;4M\x1b[<0;3;4m\x1b[<0;3;4M"
	d.until("the agent got it", func() bool { return len(d.c.LastTerminal().Got()) >= len(want) })
	if got := d.c.LastTerminal().Got(); got != want {
		t.Errorf("the agent got %q", got)
	}
	d.send(click(border, 5)) // the border between panes, never let go of
	d.send(click(x, y))
	d.send(tea.MouseMotionMsg{X: 20, Y: 5, Button: tea.MouseLeft})
	if strings.Split(d.text(), "\n")[1] != top {
		t.Errorf("the panes were moved:\n%s", d.text())
	}
}

// Of what an agent wants to copy it is said when that isn't all of it.
func TestAgentCopiesMoreThanIsShown(t *testing.T) { alone(t, testAgentCopiesMoreThanIsShown) }

func testAgentCopiesMoreThanIsShown(t *testing.T) {
	for text, which := range map[string]string{
		strings.Repeat("a", 100):              "which is:",
		strings.Repeat("a", 1800) + "; rm -r": "which begins so:",
		strings.Repeat("\n", 30) + "rm -r":    "which begins so:",
	} {
		d := joined(t, Options{})
		d.prints(copying(text))
		d.press(leader, "a")
		d.shows(which)
	}
}
