package ui

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/ui/keys"
)

var actionRow = regexp.MustCompile(`^[│┃].\S +#?(\d+) `)

// action is the number of the action whose row is marked as selected, or 0.
func (d *driver) action() int {
	for y, line := range strings.Split(d.text(), "\n") {
		if m := actionRow.FindStringSubmatch(line); m != nil && d.cells.CellAt(1, y).Style.Attrs&uv.AttrReverse != 0 {
			n, _ := strconv.Atoi(m[1])
			return n
		}
	}
	return 0
}

// A list shows what its filter has, and what is held all the same; what is typed decides
// nothing.
func TestActionsAreFiltered(t *testing.T) { alone(t, testActionsAreFiltered) }

func testActionsAreFiltered(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 35}, {200, 50}} {
		d := bench(t, sceneWorkbench(sceneQuestion()), size[0], size[1], "plain")
		d.press(leader, "4", "/")
		d.shows("words, denied")
		d.shows("enter to the list")
		d.advance(time.Second)
		for _, r := range "failed and A" { // each of these decides where the line isn't
			d.advance(500 * time.Millisecond)
			d.press(string(r))
		}
		d.send(tea.PasteMsg{Content: "a\ny\nd"})
		d.shows("Actions  0 of 9")
		d.press("esc")
		d.lacks("Actions  0 of 9")
		d.press("/")
		d.types("failed")
		d.shows("Actions  1 of 9")
		d.shows("go test ./...")
		d.shows("go get github.com/x/y@latest")
		d.lacks("src/parse_test.go ")
		d.press("enter")
		d.shows("/ failed")
		d.press("n")
		if got := d.action(); got != 11 {
			t.Errorf("n leads to #%d", got)
		}
		d.press("n", "N") // there is one, and the held one isn't of it
		if got := d.action(); got != 11 {
			t.Errorf("n and N lead to #%d", got)
		}
		d.press("esc")
		d.shows("7/9")
		if got := d.action(); got != 11 {
			t.Errorf("without the filter #%d is selected", got)
		}
		d.idle()
		if n := len(d.c.Decisions()); n > 0 || d.c.LastTerminal().Got() != "" {
			t.Errorf("%d decisions, and the agent had %q", n, d.c.LastTerminal().Got())
		}
	}
}

// The quiet time of what is held begins anew once the line is left.
func TestFilterIsNoWayPastTheGuard(t *testing.T) { alone(t, testFilterIsNoWayPastTheGuard) }

func testFilterIsNoWayPastTheGuard(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneQuestion()), 120, 35, "plain")
	d.press(leader, "4", "/")
	d.types("no such thing")
	d.shows("Actions  0 of 9")
	d.advance(time.Second)
	d.press("enter", "tab", "a")
	d.idle()
	if n := len(d.c.Decisions()); n > 0 {
		t.Fatal("it was approved at once")
	}
	d.calmly("a")
	d.decided(api.AnswerApprove)
}

// No key that means something anywhere decides, acts or gets to the agent while the line has
// the keys: but for the two that leave it, they are its own.
func TestKeysOfAFilterAreItsOwn(t *testing.T) { everywhere(t, testKeysOfAFilterAreItsOwn) }

func testKeysOfAFilterAreItsOwn(t *testing.T) {
	for _, pane := range []string{"2", "3", "4"} {
		d := bench(t, sceneWorkbench(sceneQuestion(), sceneConnection()), 120, 35, "plain")
		d.press(leader, pane, "/")
		calls := len(d.c.Calls())
		for _, scope := range keys.Scopes {
			for _, b := range keys.In(scope) {
				for _, k := range b.Keys() {
					if k != "enter" && k != "esc" && k != leader {
						d.advance(500 * time.Millisecond)
						d.press(k)
					}
				}
			}
		}
		d.idle()
		d.shows("enter to the list")
		if n := len(d.c.Decisions()); n > 0 || d.quit || d.c.LastTerminal().Got() != "" {
			t.Errorf("%d decisions, quit %v, and the agent had %q", n, d.quit, d.c.LastTerminal().Got())
		}
		for _, call := range d.c.Calls()[calls:] {
			if !strings.HasPrefix(call, "find ") && !strings.HasPrefix(call, "actions") {
				t.Errorf("a key did %q", call)
			}
		}
	}
}

// Of what a filter has in Changes, and of nothing else, all is selected; what is taken back is that.
func TestChangesAreFiltered(t *testing.T) { alone(t, testChangesAreFiltered) }

func testChangesAreFiltered(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.press(leader, "2", "/")
	d.types("m")
	d.press("backspace")
	d.types("M")
	d.shows("Changes  2 of 5")
	d.shows("logo.png")
	d.lacks("notes.txt")
	d.press("enter", "a")
	d.shows("2 selected")
	d.press("n", "space")
	d.shows("1 selected")
	d.press("esc")
	d.shows("notes.txt")
	d.shows("1 selected")
	d.press("/")
	d.types("no such")
	d.shows("no changed file has that: no such")
	d.press("enter", "u")
	d.idle()
	d.press("esc", "esc")
	d.shows("notes.txt")
}

func TestNetworkIsFiltered(t *testing.T) { alone(t, testNetworkIsFiltered) }

func testNetworkIsFiltered(t *testing.T) {
	c := sceneWorkbench()
	c.Put(api.Event{Attempt: &api.Attempt{ID: 7, Action: 11, At: sceneNow, Program: "/usr/bin/go", Protocol: "tcp", Name: "sum.example", Port: 443, Verdict: api.Deny}})
	d := bench(t, c, 120, 35, "plain")
	put(d, sceneConnection())
	d.press(leader, "3", "/")
	d.types("denied port:443")
	d.shows("Network  3 of 7")
	d.shows("pastebin.com")
	d.lacks("169.254.169.254")
	d.shows(sceneConnection().Connection.Host) // it is held
	d.press("enter", "n")
	d.press("#") // of no action
	d.shows("known which action did this")
	d.press("n", "#")
	d.shows("┏ 4 Actions")
	if got := d.action(); got != 11 {
		t.Errorf("its action is #%d", got)
	}
	d.press("S")
	d.shows("┏ 3 Network  1 of 7")
	d.shows("/ #11")
	d.press("ctrl+o", "ctrl+o")
	d.shows("┏ 3 Network  3 of 7")
	d.press("ctrl+o")
	d.shows("nothing has led elsewhere yet")
}

// Actions lead to their files, files to the actions that wrote them, and back.
func TestActionsAndTheirFiles(t *testing.T) { alone(t, testActionsAndTheirFiles) }

func testActionsAndTheirFiles(t *testing.T) {
	c := sceneWorkbench()
	changed, _ := sceneChanges()
	c.SetChanges(10, api.Changes{Files: changed.Files[1:2], Total: 1, Final: true})
	c.SetRecord(func(r *record) {
		r.found = []api.Hit{{Kind: api.HitAction, Action: 5, Text: "cat src/parse.go"}, {Kind: api.HitPath, Action: 10, Text: "src/parse.go"}}
	})
	d := bench(t, c, 120, 35, "plain")
	d.press(leader, "2", "#")
	d.shows("┏ 4 Actions  1 of 9")
	d.shows(`/ file:"src/parse.go"`)
	d.press("n")
	if got := d.action(); got != 10 {
		t.Errorf("#%d wrote it", got)
	}
	d.press("M")
	d.shows("┏ 2 Changes")
	d.until("its file", func() bool { return !strings.Contains(d.text(), "notes.txt") })
	d.press("M")
	d.shows("that is what is shown here")
	d.press("#")
	d.shows("┏ 4 Actions")
	d.press("ctrl+o")
	d.shows("┏ 2 Changes")
	d.press("ctrl+o", "ctrl+o")
	d.shows("┏ 2 Changes")
	d.shows("notes.txt")
	d.shows("9/9")
}

// longSession is a session of which the screen has the newest of 1,200 actions.
func longSession(c *fakeClient) {
	for n := 1; n <= 1200; n++ {
		a := api.Action{N: n, Kind: api.KindCommand, State: api.ActionEnded, Title: fmt.Sprintf("step %d of it", n), Exit: &api.Exit{Code: n % 2}, StartedAt: sceneNow}
		if c.all = append(c.all, a); n > 1000 {
			c.Put(api.Event{Action: &a})
		}
	}
}

// An action is gone to by its number, also one that isn't on the screen.
func TestNumbersLeadToActions(t *testing.T) { alone(t, testNumbersLeadToActions) }

func testNumbersLeadToActions(t *testing.T) {
	for _, pressed := range []string{"4 / # 1 2 enter", "4 / : 1 2 enter", "4 # 1 2 enter", "4 : 1 2 enter", "2 : # 1 2 enter", "4 / o d d esc / # 1 2 enter"} {
		c := newFake(sceneSession())
		ses := sceneSession()
		c.Put(api.Event{Session: &ses})
		longSession(c)
		d := bench(t, c, 120, 35, "plain")
		d.press(append([]string{leader}, strings.Fields(pressed)...)...)
		d.shows("step 12 of it")
		if got := d.action(); got != 12 {
			t.Errorf("%s leads to #%d", pressed, got)
		}
		d.press("g")
		d.lacks("earlier action")
		d.press("#")
		d.types("1150")
		d.press("enter")
		d.shows("step 1150 of it")
		d.press("#")
		d.types("4711")
		d.press("enter")
		d.shows("there is no #4711 here")
		d.press("ctrl+o", "ctrl+o")
		if got := d.action(); got != 1 {
			t.Errorf("back at #%d", got)
		}
		d.press("/")
		d.types("exit≠0")
		d.shows("Actions  600 of 1200")
		d.press("enter", "g", "n")
		if got := d.action(); got != 3 {
			t.Errorf("n leads to #%d", got)
		}
		d.press("#")
		d.types("2")
		d.press("enter")
		if got := d.action(); got != 2 {
			t.Errorf("a number that the filter hasn't leads to #%d", got)
		}
	}
}

// The row that says that there are more of them brings them.
func TestEarlierActionsAreRead(t *testing.T) { alone(t, testEarlierActionsAreRead) }

func testEarlierActionsAreRead(t *testing.T) {
	c := newFake(sceneSession())
	ses := sceneSession()
	c.Put(api.Event{Session: &ses})
	longSession(c)
	d := bench(t, c, 120, 35, "plain")
	d.press(leader, "4", "g")
	d.shows("1000 earlier actions aren't on this screen: # goes to one")
	d.press("enter")
	d.shows("step 1000 of it")
	d.until("they are there", func() bool { return d.action() == 1000 })
	d.press("g")
	d.shows("step 1 of it")
}

// From an action to where it began on the terminal and back to now, and to an action from there.
func TestActionsAndTheTerminal(t *testing.T) { alone(t, testActionsAndTheTerminal) }

func testActionsAndTheTerminal(t *testing.T) {
	for _, live := range []bool{true, false} {
		d := bench(t, sceneRecord(live), 120, 35, "plain")
		if live {
			d.press(leader)
		}
		d.press("4", "#")
		d.types("11")
		d.press("enter", "/")
		d.types("exit≠0")
		d.press("enter", "@") // when it began it had not ended
		d.at("00:12:40")
		if got := d.action(); got != 11 {
			t.Errorf("#%d began", got)
		}
		d.shows("/ filter")
		d.lacks("/ search") // which is the Terminal's here
		d.press("1", "#")
		d.shows("┏ 4 Actions")
		if got := d.action(); got != 11 {
			t.Errorf("#%d ran then", got)
		}
		d.press("/")
		d.types("go")
		d.shows("Actions ")
		d.press("enter", "#")
		d.types("12") // which hasn't begun
		d.press("enter")
		d.at("00:13:20")
		d.press("ctrl+o")
		d.at("00:12:40")
		d.press("ctrl+o")
		d.at("00:12:40")
		d.press("ctrl+o")
		d.shows("/ exit≠0")
		d.until("it is now again", func() bool { return !strings.Contains(d.text(), "REPLAY") })
		if got := d.action(); got != 11 {
			t.Errorf("back at #%d", got)
		}
	}
}

// BenchmarkFilterKey is a key in a filter until it is drawn, with a long session.
func BenchmarkFilterKey(b *testing.B) {
	c := newFake(sceneSession())
	ses := sceneSession()
	c.Put(api.Event{Session: &ses})
	longSession(c)
	var files []api.Change
	for i := range 5000 {
		files = append(files, api.Change{Path: fmt.Sprintf("Internal/Package%d/File%d.go", i%50, i), Key: fmt.Sprint(i), Status: "M", Counted: true, Added: 1})
	}
	c.SetChanges(0, api.Changes{Files: files, Total: 5000, Final: true})
	for _, pane := range []string{"2", "4"} {
		b.Run(pane, func(b *testing.B) {
			t := &testing.T{}
			d := bench(t, c, 200, 50, "plain")
			defer d.m.Close()
			d.press(leader, pane, "/")
			d.types("pack")
			for b.Loop() {
				d.press("a", "backspace")
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(2*b.N), "µs/key")
		})
	}
}
