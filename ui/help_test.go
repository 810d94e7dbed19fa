package ui

import (
	"testing"
	"time"
)

// After the leader a panel lists what can follow, a moment later; it takes no key.
func TestWhatFollowsTheLeader(t *testing.T) { alone(t, testWhatFollowsTheLeader) }

func testWhatFollowsTheLeader(t *testing.T) {
	d := bench(t, sceneWorkbench(), 80, 24, "plain")
	d.press(leader)
	d.lacks("and then")
	d.advance(400 * time.Millisecond)
	d.shows("ctrl+] and then")
	d.shows("detach")
	d.shows("look back")
	d.press("2")
	d.lacks("and then")
	d.shows("┏ 2 Changes")
}

// Help has the keys of the focused pane first, then others; what is searched is found in
// all places and pages.
func TestHelpIsSearched(t *testing.T) { alone(t, testHelpIsSearched) }

func testHelpIsSearched(t *testing.T) {
	d := bench(t, sceneWorkbench(), 80, 24, "plain")
	d.press(leader, "2", "?")
	inOrder(t, d.text(), "Keys", "Changes", "next row")
	d.press("/")
	d.types("blame")
	inOrder(t, d.text(), "Changes", "with the")
	d.lacks("select the file or folder")
	d.press("enter", "esc")
	d.shows("select the file or folder")
	d.press("/", "z", "z", "z")
	d.shows("nothing has that")
	d.press("esc", "tab")
	d.shows("Help: keys  2/11")
	d.press("shift+tab", "shift+tab")
	d.shows("Help: themes  11/11")
	d.press("x")
	d.shows("x does nothing here")
	d.press("esc")
	d.lacks("Help:")
	d.shows("┏ 2 Changes")
	if got := d.c.LastTerminal().Got(); got != "" {
		t.Errorf("the agent got %q", got)
	}
}

// The palette names the keys from where the person is, and the command of a shell.
func TestPaletteNamesKeysAndCommands(t *testing.T) { alone(t, testPaletteNamesKeysAndCommands) }

func testPaletteNamesKeysAndCommands(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	for _, c := range []struct {
		from []string
		keys string
	}{{[]string{leader}, "ctrl+] 4 u"}, {[]string{leader, "4"}, " u "}, {[]string{leader, "2"}, "4 u"}} {
		d.press(append(c.from, ":")...)
		for _, k := range "roll back this" {
			if k == ' ' {
				d.press("space")
				continue
			}
			d.press(string(k))
		}
		inOrder(t, d.text(), "▸ roll back this", c.keys, "stepbox rollback --action")
		d.press("esc", leader, "1")
	}
}

// Esc after the leader takes it back, and nothing else.
func TestLeaderIsTakenBack(t *testing.T) { alone(t, testLeaderIsTakenBack) }

func testLeaderIsTakenBack(t *testing.T) {
	c := sceneWorkbench(sceneQuestion())
	d := drive(t, c, 120, 35, Options{Session: sceneSession().ID, Config: themed("plain")})
	d.shows("held")
	d.press(leader, "2")
	d.shows("› Changes")
	d.press(leader)
	d.shows("nothing")
	d.press("esc")
	d.lacks("ctrl+] then")
	d.shows("› Changes")
}

// Home's help begins with what has the focus.
func TestHomesHelp(t *testing.T) { alone(t, testHomesHelp) }

func testHomesHelp(t *testing.T) {
	d := drive(t, liveScene(1, plainQuestion()), 120, 50, Options{Config: themed("plain")})
	d.shows("Held in all sessions")
	d.press("?")
	inOrder(t, d.text(), "Keys", "attach to a live session")
	d.lacks("open the question beside its evidence")
	d.press("esc", "tab", "?")
	inOrder(t, d.text(), "Keys", "open the question beside its evidence", "attach to a live session")
}
