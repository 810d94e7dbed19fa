package ui

import (
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/ui/link"
)

// One key after the leader answers what the strip shows whole, if that was there, and the
// keyboard quiet, before the leader was pressed.
func TestQuickAnswers(t *testing.T) {
	t.Parallel()
	long := ask(20, 20, "make a-target-with-a-name-that-no-row-of-this-screen-has-the-room-for-however-wide-it-may-be-and-some-more-of-it-for-120-columns")
	for name, tt := range map[string]struct {
		q     api.Question
		do    func(d *driver)
		want  []api.Answer
		shows string
		typed string // what the agent got
	}{
		"yes":           {ask(20, 20, "npm publish"), func(d *driver) { d.press(leader, "y") }, []api.Answer{api.AnswerApprove}, "approved #20", ""},
		"no":            {ask(20, 20, "npm publish"), func(d *driver) { d.press(leader, "x") }, []api.Answer{api.AnswerDeny}, "denied #20", ""},
		"from Changes":  {ask(20, 20, "npm publish"), func(d *driver) { d.press(leader, "2"); d.calmly(leader); d.press("y") }, []api.Answer{api.AnswerApprove}, "approved #20", ""},
		"later":         {ask(20, 20, "npm publish"), func(d *driver) { d.press(leader); d.calmly("y") }, []api.Answer{api.AnswerApprove}, "approved #20", ""},
		"while typing":  {ask(20, 20, "npm publish"), func(d *driver) { d.press("l", leader, "y", leader, "y") }, nil, "too soon", "l"},
		"after a paste": {ask(20, 20, "npm publish"), func(d *driver) { d.send(tea.PasteMsg{Content: "x"}); d.press(leader, "y") }, nil, "too soon", "x"},
		"held down": {ask(20, 20, "npm publish"), func(d *driver) {
			d.press(leader)
			k := key("y")
			k.IsRepeat = true
			d.send(k)
		}, nil, "too soon", ""},
		"it changed since": {ask(20, 20, "npm publish"), func(d *driver) {
			d.press(leader)
			q, a := ask(20, 20, "npm unpublish"), held(20, "npm unpublish")
			d.c.Put(api.Event{Action: &a}, api.Event{Question: &q})
			d.shows("npm unpublish")
			d.press("y")
		}, nil, "too soon", ""},
		"the window came back": {ask(20, 20, "npm publish"), func(d *driver) {
			d.send(tea.BlurMsg{})
			d.send(tea.FocusMsg{})
			d.press(leader, "y")
		}, nil, "too soon", ""},
		"another is selected": {ask(20, 20, "npm publish"), func(d *driver) { d.press(leader, "4", "k"); d.calmly("1", leader); d.press("y") }, nil, "isn't held: ctrl+] a", ""},
		"it is open":          {ask(20, 20, "npm publish"), func(d *driver) { d.press(leader, "a"); d.calmly(leader); d.press("y") }, nil, "its own keys answer", ""},
		"not whole":           {long, func(d *driver) { d.press(leader, "y"); d.lacks("✓ approved"); d.press("y", "y") }, nil, "command held", ""},
		"an edit, yes":        {sceneEdit(), func(d *driver) { d.lacks("ctrl+] y approve"); d.press(leader, "y"); d.shows("edit held") }, nil, "not kept yet: look at what it changed, then y keeps it", ""},
		"an edit, no":         {sceneEdit(), func(d *driver) { d.press(leader, "x") }, nil, "Roll back what #10 changed?", ""},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			d := bench(t, sceneWorkbench(), 120, 35, "plain")
			if tt.q.Subject == api.SubjectEdit {
				d.c.Put(api.Event{Question: &tt.q})
				d.until("held", func() bool { return d.m.bench.Held() > 0 })
			} else {
				put(d, tt.q)
			}
			d.advance(time.Second)
			tt.do(d)
			d.shows(tt.shows)
			d.decided(tt.want...)
			if got := d.c.LastTerminal().Got(); got != tt.typed {
				t.Errorf("the agent had %q", got)
			}
		}))
	}
}

// One that has just come isn't answered.
func TestQuickAnswersNothingNew(t *testing.T) { alone(t, testQuickAnswersNothingNew) }

func testQuickAnswersNothingNew(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	put(d, ask(20, 20, "npm publish"))
	d.press(leader, "y")
	d.shows("too soon")
	d.decided()
}

// The same goes for the first moment after what had the keys closed by itself, as a plan does
// once it was carried out.
func TestNothingAfterADialogClosedIsTheAgents(t *testing.T) {
	alone(t, testNothingAfterADialogClosedIsTheAgents)
}

func testNothingAfterADialogClosedIsTheAgents(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.press(leader, "4", "k", "k", "k", leader, "1", leader, ":")
	d.types("roll back this")
	d.calmly("enter")
	d.shows("ends nothing")
	d.calmly("y")
	d.advance(time.Second) // it takes a while
	d.shows("rolled back: 2 files")
	d.press("y", "enter")
	d.advance(500 * time.Millisecond)
	d.press("l")
	d.until("the keys are the agent's again", func() bool { return d.c.LastTerminal().Got() == "l" })
}

// What is pressed, pasted or clicked in the first moment after a decision is nobody's,
// wherever that was made and however the focus came to the Terminal.
func TestNothingAfterADecisionIsTheAgents(t *testing.T) {
	t.Parallel()
	runs := held(14, "sleep 1000")
	runs.State = api.ActionRunning
	toTerminal := func(d *driver) { d.press("esc") }
	for name, tt := range map[string]struct {
		q      api.Question
		decide func(d *driver)
		then   func(d *driver) // goes to the Terminal
		ask    bool            // the dock awaits the next question
	}{
		"dock":           {sceneQuestion(), func(d *driver) { d.press(leader, "a"); d.calmly("a") }, nil, true},
		"dock, a rule":   {sceneQuestion(), func(d *driver) { d.press(leader, "a"); d.calmly("A"); d.idle(); d.calmly("enter") }, nil, true},
		"dock, a denial": {sceneQuestion(), func(d *driver) { d.press(leader, "a"); d.calmly("d", "enter") }, nil, true},
		"dock, taken back": {sceneEdit(), func(d *driver) {
			d.press(leader, "a")
			d.calmly("u")
			d.shows("ends nothing")
			d.calmly("y")
		}, nil, true},
		"Actions":    {sceneQuestion(), func(d *driver) { d.press(leader, "4"); d.calmly("a") }, toTerminal, false},
		"the mouse":  {sceneQuestion(), func(d *driver) { d.press(leader, "4"); d.calmly("a") }, func(d *driver) { d.send(click(5, 5)) }, false},
		"Network":    {sceneConnection(), func(d *driver) { d.press(leader, "3"); d.calmly("a") }, toTerminal, false},
		"the leader": {sceneQuestion(), func(d *driver) { d.press(leader, "y") }, nil, false},
		"a mode":     {sceneQuestion(), func(d *driver) { d.press(leader, "4"); d.calmly("c", "y") }, toTerminal, false},
		"a confirmation": {sceneQuestion(), func(d *driver) {
			d.c.Put(api.Event{Action: &runs})
			d.idle()
			d.press(leader, "4", "G")
			d.calmly("K", "y")
		}, toTerminal, false},
		"a plan": {sceneQuestion(), func(d *driver) {
			d.press(leader, "4", "k", "k", "k")
			d.calmly("u")
			d.shows("ends nothing")
			d.calmly("y")
			d.shows("rolled back: 2 files")
		}, toTerminal, false},
		"keeping": {sceneQuestion(), func(d *driver) {
			d.press(leader, "4", "k", "k", "k")
			d.calmly("y")
		}, toTerminal, false},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			d := bench(t, sceneWorkbench(tt.q), 120, 35, "plain")
			d.m.bench.Link().Screen.With(func(e link.Emulator) { e.(*fakeEmulator).Mouse = uv.MouseModeClick })
			d.advance(time.Second)
			tt.decide(d)
			soon := func() {
				d.press("y", "enter")
				d.send(tea.PasteMsg{Content: "pasted"})
				d.send(click(5, 5))
				d.send(tea.MouseWheelMsg{X: 5, Y: 5, Button: tea.MouseWheelUp})
				d.press(leader, leader)
			}
			if tt.then != nil {
				tt.then(d)
			}
			soon()
			d.idle()
			d.advance(399 * time.Millisecond)
			if tt.ask {
				d.shows("Nothing waits")
				d.press("y")
				d.advance(time.Second)
				soon()
				d.press("esc")
			} else {
				soon()
				for range 10 { // held down since
					d.press("y")
					d.advance(50 * time.Millisecond)
				}
			}
			d.idle()
			if got := d.c.LastTerminal().Got(); got != "" {
				t.Errorf("the agent had %q", got)
			}
			d.advance(time.Second)
			d.press("l")
			d.until("the keys are the agent's again", func() bool { return d.c.LastTerminal().Got() == "l" })
		}))
	}
}
