package workbench

import (
	"testing"
	"time"

	"github.com/charmbracelet/colorprofile"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/link"
	"stepbox/ui/paint"
	"stepbox/ui/pane/actions"
	"stepbox/ui/pane/changes"
	"stepbox/ui/state"
)

// now is the moment that the scene shows.
var now = time.Date(2026, 11, 20, 14, 14, 9, 0, time.UTC)

// question is one that is held.
var question = api.Question{
	ID: 5, Action: 13, Subject: api.SubjectCommand, Title: "go get x", Hash: "h5", HeldAt: now,
	Command: &api.Command{Line: "go get x", Argv: []string{"go", "get", "x"}, Cwd: "/p", Program: "/usr/bin/go", Before: 13},
}

func TestArrangement(t *testing.T) {
	for _, c := range []struct {
		name       string
		cols, rows int
		do         []intent.Intent
		focus      intent.Pane
		shown      []intent.Pane
	}{
		{"wide", 120, 35, nil, intent.Terminal, []intent.Pane{intent.Terminal, intent.Changes, intent.Network, intent.Actions}},
		{"forwards", 120, 35, []intent.Intent{intent.FocusStep{By: 1}, intent.FocusStep{By: 1}}, intent.Network, []intent.Pane{intent.Network, intent.Changes}},
		{"backwards goes round", 120, 35, []intent.Intent{intent.FocusStep{By: -1}}, intent.Actions, []intent.Pane{intent.Terminal}},
		{"to the right", 120, 35, []intent.Intent{intent.FocusTo{DX: 1}}, intent.Changes, []intent.Pane{intent.Terminal}},
		{"down", 120, 35, []intent.Intent{intent.FocusTo{DY: 1}}, intent.Actions, nil},
		{"nothing above", 120, 35, []intent.Intent{intent.FocusTo{DY: -1}}, intent.Terminal, nil},
		{"zoomed", 120, 35, []intent.Intent{intent.Focus{Pane: intent.Network}, intent.Zoom{}}, intent.Network, []intent.Pane{intent.Network, intent.Actions}},
		{"no longer", 120, 35, []intent.Intent{intent.Zoom{}, intent.Zoom{}}, intent.Terminal, []intent.Pane{intent.Changes}},
		{"the other side pane", 100, 30, []intent.Intent{intent.SideCycle{}}, intent.Terminal, []intent.Pane{intent.Terminal, intent.Network}},
		{"and back", 100, 30, []intent.Intent{intent.SideCycle{}, intent.SideCycle{}}, intent.Terminal, []intent.Pane{intent.Changes}},
		{"the focus goes with it", 100, 30, []intent.Intent{intent.Focus{Pane: intent.Changes}, intent.SideCycle{}}, intent.Network, []intent.Pane{intent.Network}},
		{"one at a time", 60, 30, []intent.Intent{intent.Focus{Pane: intent.Changes}}, intent.Changes, []intent.Pane{intent.Changes, intent.Actions}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := arrangement{cols: c.cols, rows: c.rows, focus: intent.Terminal, side: intent.Changes}
			a.arrange(false, func(int) int { return 0 })
			for _, i := range c.do {
				if !a.handle(i) {
					t.Fatalf("%T isn't handled", i)
				}
				a.arrange(false, func(int) int { return 0 })
			}
			if a.focus != c.focus {
				t.Errorf("%v has the focus", a.focus)
			}
			for _, p := range c.shown {
				if a.panes.Of(p).Empty() {
					t.Errorf("%v isn't shown", p)
				}
			}
		})
	}
	a := arrangement{cols: 120, rows: 35, focus: intent.Terminal}
	a.arrange(false, func(int) int { return 0 })
	before := a.panes.Of(intent.Terminal).Dx()
	if a.panes.Border(a.panes.Of(intent.Terminal).Max.X, 5) != intent.Columns || a.panes.Border(5, 5) != intent.NoBorder {
		t.Error("the border between the columns isn't where it is drawn")
	}
	for range 50 {
		a.handle(intent.Resize{DX: -1})
		a.arrange(false, func(int) int { return 0 })
	}
	if w := a.panes.Of(intent.Terminal).Dx(); w >= before || w < 30 {
		t.Errorf("the Terminal was %d wide and is %d", before, w)
	}
	if a.handle(intent.Approve{}) {
		t.Error("it approves")
	}
}

// One request at a time, and none when nothing is lacking.
func TestFetcher(t *testing.T) {
	f := fetcher{core: &core{}, pane: changes.Pane{Loading: true}}
	if f.idle() || f.catchUp() == nil {
		t.Fatal("nothing is fetched at the start")
	}
	if f.catchUp() != nil || !f.running {
		t.Error("a second request while one is under way")
	}
	f.running = false
	f.pane.SetChanges(api.Scope{}, changes.NewTree(api.Changes{Version: 3, Files: []api.Change{{Key: "a", Path: "a"}}}))
	f.st.Changes = 3
	if f.catchUp() != nil {
		t.Error("fetched though nothing is newer")
	}
	if f.wantDiff(0) == nil || f.wantDiff(0) != nil || f.idle() {
		t.Error("the selected file's diff is fetched once")
	}
	f.diffRunning = false
	f.st.Changes = 4
	if f.catchUp() == nil || !f.waiting {
		t.Error("what is newer isn't fetched, or without a pause")
	}
	f.waiting = false
	f.failed = true
	f.scope(7, false)
	if f.failed || f.pane.Action != 7 || f.catchUp() == nil {
		t.Error("another scope isn't fetched at once")
	}
	if f.scope(9, true); f.pane.Action != 0 {
		t.Error("from its own pane the session's changes don't come back")
	}
}

// held is a session in which some actions are held.
func held(t *testing.T, actionsHeld ...int) (*asking, *time.Time) {
	now := now
	clock := func() time.Time { return now }
	k := &core{notices: notices{clock: clock}, cfg: Config{Now: clock, Method: func() ansi.Method { return ansi.WcWidth }, Signs: func() paint.Signs { return paint.Unicode }}}
	k.link = &link.Link{ID: "k3v7qpxa"}
	k.st.Session = api.Session{ID: "k3v7qpxa", Name: "fix-tests", State: api.SessionRunning}
	a := &asking{core: k, find: &finding{}, list: actions.Pane{State: &k.st}}
	a.desk.Screen = a.screen()
	for n := range 9 {
		k.st.Apply(api.Event{Action: &api.Action{N: n + 1, Title: "echo", State: api.ActionEnded}})
	}
	for _, n := range actionsHeld {
		k.st.Apply(api.Event{Action: &api.Action{N: n, Title: "rm", State: api.ActionHeld}})
		k.st.Apply(api.Event{Question: &api.Question{ID: int64(100 + n), Action: n, Title: "rm", Hash: "h", HeldAt: now}})
	}
	a.list.Draw(uv.Rect(0, 0, 80, 12), frame(t, uv.NewScreenBuffer(80, 12)))
	return a, &now
}

func TestAskingFollowsWhatIsHeld(t *testing.T) {
	a, _ := held(t, 4, 6)
	a.follow(intent.Terminal)
	if q, ok := a.question(); !ok || q.Action != 4 || !a.auto {
		t.Fatalf("the selection is on %+v", q)
	}
	a.walk(1, false, intent.Actions)
	if q, _ := a.question(); q.Action != 6 || a.auto {
		t.Errorf("the next one is #%d", q.Action)
	}
	a.walk(1, false, intent.Actions)
	if q, _ := a.question(); q.Action != 4 {
		t.Errorf("after the last comes #%d", q.Action)
	}
	a.walk(1, false, intent.Terminal)
	if q, _ := a.question(); q.Action != 4 {
		t.Error("coming from elsewhere the selected one was passed over")
	}
	a.walk(-1, true, intent.Actions)
	if a.dialogs.Top() == nil || a.dialogs.Top().Target().Question != 106 {
		t.Error("the one walked to isn't open")
	}
	a.follow(intent.Actions)
	if q, _ := a.question(); q.Action != 6 {
		t.Error("the selection left what is held")
	}
}

func TestAskingDecidesWhatIsHeld(t *testing.T) {
	a, now := held(t, 4)
	nowhere := func() intent.Pane { return intent.Terminal }
	for _, d := range []intent.Decide{{Question: 5, Hash: "h"}, {Question: 104, Hash: "another"}} {
		a.open(question)
		if a.decide(d, nowhere) != nil || a.notice.text == "" {
			t.Errorf("%+v was sent", d)
		}
	}
	if a.decide(intent.Decide{Question: 104, Hash: "h"}, nowhere) == nil || !a.pending(api.Question{ID: 104}) || !a.Busy() {
		t.Error("the answer wasn't sent")
	}
	if a.decide(intent.Decide{Question: 104, Hash: "h"}, nowhere) != nil {
		t.Error("it was sent twice")
	}
	target := state.Target{Question: 104, Place: "strip"}
	if a.desk.Watch(target) == nil || a.desk.Watch(target) != nil {
		t.Error("the end of the quiet time is waited for once")
	}
	if a.desk.Guard.Takes(target, state.Quiet, *now) {
		t.Error("a key counts at once")
	}
	*now = now.Add(time.Second)
	if !a.desk.Guard.Takes(target, state.Quiet, *now) {
		t.Error("no key counts")
	}
}

func frame(t *testing.T, dst uv.Screen) paint.Frame {
	t.Helper()
	th, err := themes.Load("plain", "")
	must.OK(t, err)
	return paint.Frame{Screen: dst, P: paint.NewPalette(th, colorprofile.TrueColor), Now: now}
}
