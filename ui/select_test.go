package ui

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/ui/link"
)

// place is where words begin on the screen.
func (d *driver) place(words string) (x, y int) {
	d.t.Helper()
	for y := range d.cells.Height() {
		var line strings.Builder
		var cols []int
		for x := range d.cells.Width() {
			if c := d.cells.CellAt(x, y); c.Width > 0 {
				for range len(c.Content) {
					cols = append(cols, x)
				}
				line.WriteString(c.Content)
			}
		}
		if i := strings.Index(line.String(), words); i >= 0 {
			return cols[i], y
		}
	}
	d.t.Fatalf("%q isn't on the screen\n%s", words, d.text())
	return 0, 0
}

// pull presses the button, moves and lets go.
func (d *driver) pull(mod tea.KeyMod, fromX, fromY, toX, toY int) {
	d.advance(time.Second) // it goes on no click
	d.copied = ""
	d.send(tea.MouseClickMsg{X: fromX, Y: fromY, Button: tea.MouseLeft, Mod: mod})
	d.send(tea.MouseMotionMsg{X: (fromX + toX) / 2, Y: (fromY + toY) / 2, Button: tea.MouseLeft, Mod: mod})
	d.send(tea.MouseMotionMsg{X: toX, Y: toY, Button: tea.MouseLeft, Mod: mod})
	d.send(tea.MouseReleaseMsg{X: toX, Y: toY, Button: tea.MouseLeft, Mod: mod})
}

// selects waits for what a selection copied.
func (d *driver) selects(want string) {
	d.t.Helper()
	d.until("it is copied: "+want, func() bool { return d.copied != "" })
	if d.copied != want {
		d.t.Errorf("copied is %q, want %q\n%s", d.copied, want, d.text())
	}
}

// The mouse selects text within the pane that it is dragged in, without its border, and
// copies it.
func TestDragSelects(t *testing.T) { alone(t, testDragSelects) }

func testDragSelects(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	between := func(mod tea.KeyMod, from, to, want string) {
		t.Helper()
		fromX, fromY := d.place(from)
		toX, toY := d.place(to)
		d.pull(mod, fromX, fromY, toX, toY)
		d.selects(want)
		d.shows("sent to your terminal")
		d.lacks("copy mode  ")
	}
	between(0, "look at", "the failing", "look at t")
	between(0, "go test ./...)", "FAIL: T", "go test ./...)\n  ⎿  --- F")
	between(tea.ModAlt, "Bash(go test", "FAIL: T", "Bash(go\n⎿  --- F")
	between(0, "if len(s)", "nil, ErrEmpty   ", "if len(s) == 0 {\n        return n")
	between(0, "parse.go      ", "notes.txt", "parse.go                         +12   −3\n  A parse_test.go                    +30\n D n")
	between(0, "parse_test.go  ", "M parse", "M parse.go                         +12   −3\n  A p")
	between(0, "pastebin", "169.254.169.254", "pastebin.com:443  curl     denied ×2\n ✗ 02:00 1")
	x, y := d.place("go test ./...   ")
	d.pull(0, x, y, 119, y)
	d.selects("go test ./...                                                        exit 1                 3.2s")
	if got := d.c.LastTerminal().Got(); got != "" {
		t.Errorf("the agent got %q", got)
	}
}

// On the list of sessions too, and in what lies over it.
func TestDragSelectsAtHome(t *testing.T) { alone(t, testDragSelectsAtHome) }

func testDragSelectsAtHome(t *testing.T) {
	d := drive(t, many(3), 120, 35, Options{Config: themed("plain")})
	between := func(from, to, want string) {
		t.Helper()
		d.shows(to)
		fromX, fromY := d.place(from)
		toX, toY := d.place(to)
		d.pull(0, fromX, fromY, toX, toY)
		d.selects(want)
		d.shows("programs copy: 1 line")
	}
	between("shell-1", "-1 ", "shell-")
	x, y := d.place("shell-1")
	d.send(click(x, y))
	d.send(tea.MouseMotionMsg{X: x + 3, Y: y, Button: tea.MouseLeft})
	d.copied = ""
	d.press("j")
	d.send(tea.MouseReleaseMsg{X: x + 3, Y: y, Button: tea.MouseLeft})
	d.idle()
	if d.copied != "" {
		t.Errorf("a key didn't let go: copied is %q", d.copied)
	}
	d.clicks(2, "shell-1", "shell-1")
	d.press("?")
	between("attach to a live", "session, or open", "attach to a live s")
}

// clicks clicks so often where words begin, which selects.
func (d *driver) clicks(n int, words, want string) {
	d.t.Helper()
	x, y := d.place(words)
	d.advance(time.Second)
	d.copied = ""
	for i := range n {
		d.send(click(x, y))
		if i == n-1 {
			d.copied = ""
		}
		d.send(tea.MouseReleaseMsg{X: x, Y: y, Button: tea.MouseLeft})
		d.advance(100 * time.Millisecond)
	}
	d.selects(want)
}

// A word by two clicks, a line by three; what was wrapped is one line.
func TestClicksSelect(t *testing.T) { alone(t, testClicksSelect) }

func testClicksSelect(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneLongQuestion()), 80, 24, "plain")
	d.clicks(2, "failing", "failing")
	d.clicks(2, "test.go:14", "parse_test.go:14:")
	d.clicks(3, "failing", "● I'll look at the failing test first.")
}

// Beyond an edge it scrolls, and what was in view is selected too.
func TestDragScrolls(t *testing.T) { alone(t, testDragScrolls) }

func testDragScrolls(t *testing.T) {
	d := printed(t, 200)
	x, y := d.place("line 190 here")
	d.send(click(x, y))
	d.send(tea.MouseMotionMsg{X: x, Y: 1, Button: tea.MouseLeft})
	d.until("it scrolls", func() bool { return strings.Contains(d.text(), "line 160 here") })
	d.send(tea.MouseMotionMsg{X: x, Y: 5, Button: tea.MouseLeft})
	d.send(tea.MouseReleaseMsg{X: x, Y: 5, Button: tea.MouseLeft})
	d.until("it is copied", func() bool { return strings.HasSuffix(d.copied, "line 188 here\nline 189 here\nl") })
	if !strings.Contains(d.copied, "line 166 here\n") {
		t.Errorf("copied is %q", d.copied)
	}
	d.shows("line 199 here")
}

// While the agent has the mouse, dragging is the agent's, which is said; copy mode has it
// for the person.
func TestDragIsTheAgents(t *testing.T) { alone(t, testDragIsTheAgents) }

func testDragIsTheAgents(t *testing.T) {
	d := printed(t, 40)
	d.m.bench.Link().Screen.With(func(e link.Emulator) {
		if fake, ok := e.(*fakeEmulator); ok {
			fake.Mouse = uv.MouseModeDrag
		}
	})
	x, y := d.place("line 30 here")
	d.pull(0, x, y, x+6, y)
	d.shows("the agent has the mouse: ctrl+] [ selects here")
	d.until("the agent has it", func() bool { return strings.Count(d.c.LastTerminal().Got(), "<") == 4 })
	d.press(leader, "[")
	d.pull(0, x, y, x+6, y)
	d.selects("line 30")
	d.shows("copy mode  ")
	if got := d.c.LastTerminal().Got(); strings.Count(got, "<") != 4 {
		t.Errorf("the agent got %q", got)
	}
}

// A key lets go of what the mouse selects, and is nobody else's; y copies it.
func TestKeyWhileDragging(t *testing.T) { alone(t, testKeyWhileDragging) }

func testKeyWhileDragging(t *testing.T) {
	d := printed(t, 40)
	x, y := d.place("line 30 here")
	down := func() {
		d.advance(time.Second)
		d.send(click(x, y))
		d.send(tea.MouseMotionMsg{X: x + 6, Y: y, Button: tea.MouseLeft})
		d.shows("copy mode  ")
	}
	down()
	d.press("x")
	d.lacks("copy mode  ")
	d.send(tea.MouseReleaseMsg{X: x, Y: y, Button: tea.MouseLeft})
	if d.copied != "" {
		t.Errorf("copied is %q", d.copied)
	}
	down()
	d.press("y")
	d.selects("line 30")
	if got := d.c.LastTerminal().Got(); got != "" {
		t.Errorf("the agent got %q", got)
	}
}

// Text that a dialog wrapped is one line again.
func TestDragInDialog(t *testing.T) { alone(t, testDragInDialog) }

func testDragInDialog(t *testing.T) {
	q := sceneQuestion()
	q.Command.Line = "echo " + strings.Repeat("word ", 30) + "end"
	q.Title, q.Command.Parts = q.Command.Line, []api.Part{{Text: q.Command.Line, Verdict: api.Ask}}
	d := bench(t, sceneWorkbench(q), 80, 24, "plain")
	d.press(leader, "a")
	d.shows("$ echo word")
	fromX, fromY := d.place("$ echo word")
	toX, toY := d.place("word end")
	d.pull(0, fromX+2, fromY, toX+7, toY)
	d.selects(q.Command.Line)
}

// The leader ends what the mouse selects, and what follows it is the leader's.
func TestLeaderEndsASelection(t *testing.T) { alone(t, testLeaderEndsASelection) }

func testLeaderEndsASelection(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.send(click(5, 4))
	d.send(tea.MouseMotionMsg{X: 30, Y: 5, Button: tea.MouseLeft})
	d.press(leader, "4", "k")
	if !strings.Contains(d.text(), "┏ 4 Actions") {
		t.Errorf("the leader didn't lead\n%s", d.text())
	}
	d.idle()
	if got := d.c.LastTerminal().Got(); got != "" {
		t.Errorf("the agent got %q", got)
	}
}
