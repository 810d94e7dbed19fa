package ui

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/ui/display"
	"stepbox/ui/intent"
	"stepbox/ui/state"
)

// hold has a key come again as keyboards do that don't say so: after a while, and then often.
func (d *driver) hold(key string, after time.Duration) {
	d.advance(after)
	for range 20 {
		d.press(key)
		d.advance(33 * time.Millisecond)
	}
	d.idle()
}

// A key that is held down after it answered doesn't answer the next question, nor reach the
// agent, on whatever keyboard.
func TestHeldKeyAnswersOnce(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, 660 * time.Millisecond, 990 * time.Millisecond} {
		for name, tt := range map[string]struct {
			open []string
			key  string
		}{
			"dock":       {[]string{leader, "a"}, "a"},
			"Actions":    {[]string{leader, "4"}, "a"},
			"the leader": {[]string{leader}, "y"},
		} {
			t.Run(name+" "+after.String(), inBubble(func(t *testing.T) {
				d := three(t, 120, 35)
				d.advance(time.Second)
				d.press(tt.open...)
				d.calmly(tt.key)
				d.decided(api.AnswerApprove)
				d.hold(tt.key, after)
				d.decided(api.AnswerApprove)
				if got := d.c.LastTerminal().Got(); got != "" {
					t.Errorf("the agent had %q", got)
				}
				d.advance(time.Second)
			}))
		}
	}
}

// A key that is held down keeps the changes of one action, and makes or takes back one rule.
func TestHeldKeyDecidesOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		to, keys []string
		want     string
	}{
		"keep":   {[]string{leader, "4", "g", "j"}, []string{"y"}, "keep"},
		"rule":   {[]string{leader, "3", "g", "j"}, []string{"a"}, "allow"},
		"forget": {[]string{leader, "3", "g", "j"}, []string{"a", "j", "a", "ctrl+z"}, "take back"},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			d := bench(t, sceneWorkbench(), 120, 35, "plain")
			d.press(tt.to...)
			for _, k := range tt.keys {
				d.calmly(k)
				d.idle()
			}
			d.hold(tt.keys[len(tt.keys)-1], 500*time.Millisecond)
			n := 0
			for _, c := range d.c.Calls() {
				if strings.HasPrefix(c, tt.want) {
					n++
				}
			}
			if n != 1 {
				t.Errorf("it was asked for %q", d.c.Calls())
			}
			d.shows("once only: the key is held down")
		}))
	}
}

// What didn't make a rule, as its key was held down, does so once that is let go.
func TestHeldKeyLeavesTheRule(t *testing.T) { alone(t, testHeldKeyLeavesTheRule) }

func testHeldKeyLeavesTheRule(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.press(leader, "3", "g", "j")
	d.calmly("A")
	d.idle()
	d.press("enter")
	d.shows("too soon")
	d.hold("enter", 500*time.Millisecond)
	d.shows("once only: the key is held down")
	allowed := func() bool {
		return slices.ContainsFunc(d.c.Calls(), func(c string) bool { return strings.HasPrefix(c, "allow") })
	}
	if allowed() {
		t.Errorf("it was asked for %q", d.c.Calls())
	}
	d.calmly("enter")
	d.until("the rule is made", allowed)
}

// Enter, held down since it chose the command, doesn't write what that asks a name for.
func TestHeldKeyWritesNothing(t *testing.T) {
	t.Parallel()
	for name, session := range map[string]string{"home": "", "workbench": sceneSession().ID} {
		t.Run(name, inBubble(func(t *testing.T) {
			var written atomic.Bool
			d := drive(t, sceneWorkbench(), 120, 35, Options{Session: session, Config: themed("plain"), Export: func(context.Context, string, string) error {
				written.Store(true)
				return nil
			}})
			d.shows("fix-tests")
			if d.idle(); session != "" {
				d.press(leader)
			}
			d.press(":", "e", "x", "p", "o", "r", "t", "enter")
			d.shows("Write a patch of")
			d.hold("enter", 500*time.Millisecond)
			d.shows("once only: the key is held down")
			if written.Load() {
				t.Error("it is written")
			}
			d.calmly("2", "enter")
			d.until("it is written", written.Load)
		}))
	}
}

// Enter, held down since it chose the command, begins no session with the form that opens.
func TestHeldKeyBeginsNothing(t *testing.T) { alone(t, testHeldKeyBeginsNothing) }

func testHeldKeyBeginsNothing(t *testing.T) {
	var begun atomic.Int64
	d := drive(t, sceneWorkbench(), 120, 35, Options{Config: themed("plain"), Here: "/home/ada/src/parser", Start: func(context.Context, intent.Begin) (string, error) {
		begun.Add(1)
		return sceneSession().ID, nil
	}})
	d.shows("fix-tests")
	d.idle()
	d.press(":", "n", "e", "w", "enter")
	d.shows("New session")
	d.hold("enter", 500*time.Millisecond)
	d.shows("once only: the key is held down")
	if n := begun.Load(); n != 0 {
		t.Errorf("%d began", n)
	}
	d.calmly("enter")
	d.until("it began", func() bool { return begun.Load() == 1 })
	d.shows("1 Terminal")
}

// Held down, the key that puts a session into the trash doesn't go on with the next ones.
func TestHeldKeyTrashesOne(t *testing.T) { alone(t, testHeldKeyTrashesOne) }

func testHeldKeyTrashesOne(t *testing.T) {
	c := many(7)
	unlock := c.lock()
	for i := range c.list {
		c.list[i].Unapplied = 0
	}
	unlock()
	d := drive(t, c, 100, 30, Options{Config: themed("plain")})
	d.shows("bump-deps-0")
	d.press("j", "D")
	d.shows("u brings it back")
	d.hold("D", 500*time.Millisecond)
	n := 0
	for i := range 7 {
		if trashed(c, fmt.Sprintf("p%07d", i)) {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d were put there", n)
	}
	d.shows("once only: the key is held down")
	d.press("j", "k", "D")
	d.until("one more is", func() bool { return trashed(c, "p0000001") })
}

// Pressed again, soon, the same key answers the next question.
func TestSameKeyAnswersTheNext(t *testing.T) { alone(t, testSameKeyAnswersTheNext) }

func testSameKeyAnswersTheNext(t *testing.T) {
	d := three(t, 120, 35)
	d.press(leader, "a")
	d.calmly("a")
	d.decided(api.AnswerApprove)
	d.calmly("a")
	d.decided(api.AnswerApprove, api.AnswerApprove)
	d.calmly("a")
	d.decided(api.AnswerApprove, api.AnswerApprove, api.AnswerApprove)
}

// What is pressed right after an answer that waited isn't the agent's either, however long it did.
func TestNothingAfterAnAnswerThatWaited(t *testing.T) { alone(t, testNothingAfterAnAnswerThatWaited) }

func testNothingAfterAnAnswerThatWaited(t *testing.T) {
	d := three(t, 120, 35)
	d.press(leader, "4")
	d.calmly("a")
	d.decided(api.AnswerApprove)
	d.calmly("a")
	d.press("esc")
	d.advance(450 * time.Millisecond) // the machine is busy
	d.decided(api.AnswerApprove, api.AnswerApprove)
	d.press("x")
	d.idle()
	if got := d.c.LastTerminal().Got(); got != "" {
		t.Errorf("the agent had %q", got)
	}
}

// The key that found a row too narrow to answer in doesn't go on to answer what it opened.
func TestHeldKeyDoesNotAnswerWhatItOpened(t *testing.T) {
	alone(t, testHeldKeyDoesNotAnswerWhatItOpened)
}

func testHeldKeyDoesNotAnswerWhatItOpened(t *testing.T) {
	d := bench(t, sceneWorkbench(), 80, 24, "plain")
	put(d, ask(20, 20, "make a-target-with-a-name-that-no-row-of-this-screen-has-the-room-for-at-all"))
	d.advance(time.Second)
	d.press(leader, "4")
	d.calmly("a")
	d.shows("command held")
	d.hold("a", 500*time.Millisecond)
	d.decided()
	d.calmly("a")
	d.decided(api.AnswerApprove)
}

func TestHeldKeyInTheInbox(t *testing.T) { alone(t, testHeldKeyInTheInbox) }

func testHeldKeyInTheInbox(t *testing.T) {
	c := liveScene(3, plainQuestion())
	askIn(c, "live0001", plainQuestion(), 3, "make one")
	askIn(c, "live0002", plainQuestion(), 9, "make two")
	d := drive(t, c, 120, 35, Options{Config: themed("plain")})
	d.shows("$ make two")
	d.press("tab")
	d.calmly("a")
	d.decided(api.AnswerApprove)
	d.hold("a", 500*time.Millisecond)
	d.decided(api.AnswerApprove)
	d.calmly("a")
	d.decided(api.AnswerApprove, api.AnswerApprove)
}

// What isn't drawn isn't answered, however it was when it was drawn last.
func TestNothingIsAnsweredUnseen(t *testing.T) {
	t.Parallel()
	for name, press := range map[string]func(d *driver){
		"Actions": func(d *driver) { d.press(leader, "4"); d.calmly("a") },
		"quick":   func(d *driver) { d.press(leader, "y") },
		"the dock": func(d *driver) {
			d.press(leader, "a")
			d.send(tea.WindowSizeMsg{Width: 120, Height: 35})
			d.advance(time.Second)
			d.send(tea.WindowSizeMsg{Width: 19, Height: 4})
			d.calmly("a")
		},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			d := bench(t, sceneWorkbench(), 120, 35, "plain")
			d.send(tea.WindowSizeMsg{Width: 19, Height: 4})
			d.shows("stepbox needs")
			q, a := ask(20, 20, "npm publish"), held(20, "npm publish")
			d.c.Put(api.Event{Action: &a}, api.Event{Question: &q})
			d.until("held", func() bool { return d.m.bench.Held() > 0 })
			d.advance(time.Second)
			press(d)
			d.advance(time.Second)
			d.decided()
		}))
	}
}

// The same in the inbox.
func TestNothingIsAnsweredUnseenInTheInbox(t *testing.T) {
	alone(t, testNothingIsAnsweredUnseenInTheInbox)
}

func testNothingIsAnsweredUnseenInTheInbox(t *testing.T) {
	c := liveScene(2, plainQuestion())
	askIn(c, "live0001", plainQuestion(), 3, "make one")
	d := drive(t, c, 120, 35, Options{Config: themed("plain")})
	d.shows("$ make one")
	d.press("tab")
	d.send(tea.WindowSizeMsg{Width: 120, Height: 9})
	d.lacks("$ make one")
	d.calmly("a", "a")
	d.send(tea.WindowSizeMsg{Width: 120, Height: 3})
	d.calmly("a", "a")
	d.decided()
}

// A key that did something here isn't the agent's while it is held down, whatever it did.
func TestHeldKeyIsNotTheAgents(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][]string{
		"a refused answer": {leader, "y"},
		"zoom":             {leader, "z"},
		"leaving a dialog": {leader, "a", "esc"},
		"leaving a pane":   {leader, "4", "esc"},
		"copy mode":        {leader, "[", "q"},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			d := three(t, 120, 35)
			d.press(keys...)
			d.hold(keys[len(keys)-1], 500*time.Millisecond)
			for range 5 { // the machine is busy
				d.advance(300 * time.Millisecond)
				d.press(keys[len(keys)-1])
			}
			d.idle()
			if got := d.c.LastTerminal().Got(); got != "" {
				t.Errorf("the agent had %q", got)
			}
			d.shows("not sent: it may be held down")
			d.advance(time.Second)
			d.press("l", "l")
			d.until("the keys are the agent's", func() bool { return d.c.LastTerminal().Got() == "ll" })
		}))
	}
}

// What came behind the list of commands isn't answered there.
func TestPaletteOpensWhatIsHeld(t *testing.T) { alone(t, testPaletteOpensWhatIsHeld) }

func testPaletteOpensWhatIsHeld(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.press(leader, ":", "s", "t", "e", "p", " ", "i")
	d.advance(time.Second)
	put(d, ask(20, 20, "npm publish"))
	d.press("enter")
	d.shows("command held")
	d.calmly("i")
	d.decided(api.AnswerStepInto)
}

// A leader key that nothing followed is over once something else happened.
func TestLeaderIsOver(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(d *driver){
		"a paste": func(d *driver) { d.send(tea.PasteMsg{Content: ""}) },
		"a click": func(d *driver) { d.send(click(5, 5)) },
		"another window": func(d *driver) {
			d.send(tea.BlurMsg{})
			d.advance(time.Minute)
			d.send(tea.FocusMsg{})
		},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			d := three(t, 120, 35)
			d.advance(time.Second)
			d.press(leader)
			between(d)
			d.press("y")
			d.decided()
			d.until("the agent has the key", func() bool { return d.c.LastTerminal().Got() == "y" })
		}))
	}
}

// What the panel of the leader's keys lay over is new to the eye once that is gone.
func TestLeaderPanelCovers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		open   []string
		ends   tea.Msg
		answer string
		want   api.Answer
	}{
		"a click":        {nil, click(5, 5), "a", api.AnswerApprove},
		"another window": {nil, tea.BlurMsg{}, "a", api.AnswerApprove},
		"a key":          {[]string{"d"}, key("esc"), "enter", api.AnswerDeny},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			d := three(t, 120, 35)
			d.press(leader, "a")
			d.calmly(append(tt.open, leader)...)
			d.advance(time.Second)
			d.shows("and then")
			d.send(tt.ends)
			d.lacks("and then")
			d.press(tt.answer)
			d.decided()
			d.calmly(tt.answer)
			d.decided(tt.want)
		}))
	}
}

// A key that did something here is the agent's again once another was pressed, however fast:
// some terminals paste as if it were typed.
func TestTypedFastAfterTheLeader(t *testing.T) { alone(t, testTypedFastAfterTheLeader) }

func testTypedFastAfterTheLeader(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.press(leader, "1", "x", "1")
	d.until("the agent has both", func() bool { return d.c.LastTerminal().Got() == "x1" })
}

// What follows the leader isn't the agent's on a terminal that is late, as slow ones are again
// and again; it answers nothing, but leaves.
func TestLeaderOnALateTerminal(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]func(d *driver){
		"late":    func(d *driver) { d.m.Restart() },
		"a stall": func(d *driver) { d.now.Add(int64(time.Hour)) },
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			d := three(t, 120, 35)
			d.advance(time.Second)
			d.press(leader)
			late(d)
			d.press("y")
			d.decided()
			d.press(leader)
			late(d)
			d.press("d")
			d.until("the session is left", func() bool { return d.quit })
			if got := d.c.LastTerminal().Got(); got != "" {
				t.Errorf("the agent had %q", got)
			}
		}))
	}
}

// On a terminal that is late again and again, what was seen before it was can be answered,
// and nothing else.
func TestLateAgainAndAgain(t *testing.T) { alone(t, testLateAgainAndAgain) }

func testLateAgainAndAgain(t *testing.T) {
	for _, place := range []string{"1", "4"} {
		for _, seen := range []bool{false, true} {
			d := bench(t, sceneWorkbench(), 120, 35, "plain")
			d.press(leader, place)
			put(d, ask(20, 20, "npm publish"))
			d.advance(time.Second)
			keys, want := []string{leader, "y"}, []api.Answer{api.AnswerApprove}
			if place == "4" {
				keys = []string{"a"}
			}
			if d.m.Drawn(!seen, false); !seen {
				want = nil
			}
			for _, k := range keys {
				d.m.Drawn(true, false)
				d.press(k)
			}
			d.decided(want...)
		}
	}
}

// While a frame is drawn, slowly, no key is heard: what is typed fast meanwhile came after no
// silence.
func TestTypedWhileAFrameIsDrawn(t *testing.T) { alone(t, testTypedWhileAFrameIsDrawn) }

func testTypedWhileAFrameIsDrawn(t *testing.T) {
	for _, keys := range [][]string{{"4", "z", "a"}, {"1", "z", leader, "y"}} {
		d := bench(t, sceneWorkbench(), 120, 35, "plain")
		d.press(leader, keys[0])
		put(d, ask(20, 20, "npm publish"))
		d.advance(time.Second)
		p := program{Model: d.m}
		own, drawn := make(chan tea.Msg, 10), 0
		var err error
		p.display, err = display.Open(strings.NewReader(""), io.Discard, []string{"TERM=xterm-256color"}, func(dst uv.ScreenBuffer) display.Frame {
			drawn++
			d.now.Add(int64(2 * state.QuietTime))
			return d.m.Draw(dst)
		}, func(m tea.Msg) { own <- m })
		must.OK(t, err)
		defer p.display.Close()
		p.Update(tea.ColorProfileMsg{Profile: colorprofile.TrueColor})
		p.Update(tea.WindowSizeMsg{Width: 120, Height: 35})
		p.Update(<-own)
		calm := func() {
			for range 2 * beatFor / beatEach {
				d.now.Add(int64(beatEach))
				p.Update(beat{})
			}
		}
		calm()
		typed := func(keys ...string) {
			for _, k := range keys {
				before := drawn
				_, cmd := p.Update(key(k))
				for d.run(cmd); drawn == before; {
					p.Update(<-own)
				}
			}
		}
		typed(keys[1:]...)
		d.decided()
		calm()
		typed(keys[1])
		d.now.Add(int64(2 * state.QuietTime)) // the program stood still
		typed(keys[2:]...)
		d.decided()
		calm()
		typed(keys[2:]...)
		d.now.Add(int64(2 * state.QuietTime))
		typed("n") // is for what was decided
		d.decided(api.AnswerApprove)
		if got := d.c.LastTerminal().Got(); strings.Contains(got, "n") {
			t.Errorf("the agent had %q", got)
		}
	}
}

// Who types while the next question is awaited doesn't have the end of it typed into the agent.
func TestTypingIsNotCutInTwo(t *testing.T) { alone(t, testTypingIsNotCutInTwo) }

func testTypingIsNotCutInTwo(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	put(d, ask(20, 20, "npm publish"))
	d.press(leader, "a")
	d.calmly("a")
	d.decided(api.AnswerApprove)
	d.shows("Nothing waits")
	for range 30 { // five and more seconds of it
		d.press("x")
		d.advance(180 * time.Millisecond)
	}
	d.idle()
	if got := d.c.LastTerminal().Got(); got != "" {
		t.Errorf("the agent had %q", got)
	}
	d.advance(time.Second)
	d.lacks("Nothing waits")
	d.advance(time.Second)
	d.press("l")
	d.until("the agent has the keys", func() bool { return d.c.LastTerminal().Got() == "l" })
}

// The key that opened a session isn't its agent's while it is held down.
func TestHeldKeyOpensOnly(t *testing.T) { alone(t, testHeldKeyOpensOnly) }

func testHeldKeyOpensOnly(t *testing.T) {
	d := drive(t, liveScene(3, plainQuestion()), 120, 35, Options{Config: themed("plain")})
	d.idle()
	d.advance(time.Second)
	d.press("enter")
	d.until("it is open", func() bool { return d.m.bench != nil && d.m.bench.Arrived() })
	d.hold("enter", 500*time.Millisecond)
	d.advance(time.Second)
	d.press("l", "s", "enter")
	d.until("the agent has the keys", func() bool { return d.c.LastTerminal().Got() == "ls\r" })
}

// A key that lets go of what the mouse selects is one all the same: the next one is too soon.
func TestKeyWhileSelectingInTheInbox(t *testing.T) { alone(t, testKeyWhileSelectingInTheInbox) }

func testKeyWhileSelectingInTheInbox(t *testing.T) {
	c := liveScene(3, plainQuestion())
	askIn(c, "live0001", plainQuestion(), 3, "make one")
	d := drive(t, c, 120, 35, Options{Config: themed("plain")})
	d.shows("$ make one")
	d.press("tab")
	d.advance(time.Second)
	d.send(click(5, 12))
	d.send(tea.MouseMotionMsg{X: 40, Y: 12, Button: tea.MouseLeft})
	d.press("b", "a")
	d.decided()
	d.shows("too soon")
}
