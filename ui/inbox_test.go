package ui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/ui/intent"
)

// liveScene is the scene's live session with n-1 more over the same folder, as agents beside
// each other are.
func liveScene(n int, questions ...api.Question) *fakeClient {
	c := sceneWorkbench(questions...)
	first := newScene().Sessions[0]
	list := []api.Session{first}
	for i := 1; i < n; i++ {
		x := first
		x.ID, x.Name, x.Held = fmt.Sprintf("live%04d", i), fmt.Sprintf("agent-%d", i), 0
		list = append(list, x)
	}
	unlock := c.lock()
	c.list = append(list, newScene().Sessions[2:]...)
	unlock()
	return c
}

func (c *fakeClient) Answers() []string {
	defer c.lock()()
	return slices.Clone(c.answers)
}

// ask has another session ask the same, or something else with other words.
func askIn(c *fakeClient, id string, q api.Question, action int, title string) {
	q.Action = action
	if title != "" {
		cmd := *q.Command
		q.Title, cmd.Line, cmd.Script = title, title, ""
		cmd.Parts = nil
		q.Command = &cmd
	}
	a := api.Action{N: action, Kind: api.KindCommand, State: api.ActionHeld, Title: q.Title, Rule: q.Rule, StartedAt: q.HeldAt}
	c.PutOf(id, api.Event{Action: &a}, api.Event{Question: &q})
}

func plainQuestion() api.Question {
	q := sceneQuestion()
	c := *q.Command
	c.Parts, c.Env, c.Pipeline, c.Written, c.Sends, c.Unpinned, c.Sources = nil, nil, nil, false, nil, nil, nil
	q.Command, q.Same = &c, "s1"
	return q
}

// What is pasted, and a key that lets go of what the mouse selects, are keys to the guard.
func TestInboxWaitsForAQuietKeyboard(t *testing.T) { alone(t, testInboxWaitsForAQuietKeyboard) }

func testInboxWaitsForAQuietKeyboard(t *testing.T) {
	c := liveScene(1, plainQuestion())
	d := drive(t, c, 120, 35, Options{Config: themed("plain")})
	d.shows("$ go get")
	d.press("tab")
	selects := func() {
		x, y := d.place("go get")
		d.send(click(x, y))
		d.send(tea.MouseMotionMsg{X: x + 4, Y: y, Button: tea.MouseLeft})
		d.press("x")
	}
	for what, do := range map[string]func(){"pasted": func() { d.send(tea.PasteMsg{Content: "a"}) }, "let go": selects} {
		d.advance(time.Second)
		do()
		d.advance(300 * time.Millisecond)
		d.press("a")
		d.shows("too soon")
		if n := len(c.Decisions()); n > 0 {
			t.Fatalf("%d answers soon after it was %s", n, what)
		}
	}
	d.calmly("a")
	d.decided(api.AnswerApprove)
}

// Where there is no room for the list of what is held, or to name what is denied, nothing is
// answered.
func TestInboxNeedsRoom(t *testing.T) { alone(t, testInboxNeedsRoom) }

func testInboxNeedsRoom(t *testing.T) {
	c := liveScene(1, plainQuestion())
	d := drive(t, c, 40, 12, Options{Config: themed("plain")})
	d.shows("$ go get")
	d.send(tea.WindowSizeMsg{Width: 30, Height: 8})
	d.calmly("tab", "d", "enter", "o", "d", "enter")
	d.decided()
	d.calmly("o")
	d.shows("too little room")
	d.send(tea.WindowSizeMsg{Width: 60, Height: 20})
	d.calmly("pgdown", "o")
	d.decided(api.AnswerStepOver)
}

// What is held in all sessions is one list, that is answered where it stands: equal ones at
// once, with the quiet time that every answer takes.
func TestInboxAnswersEqualOnes(t *testing.T) { alone(t, testInboxAnswersEqualOnes) }

func testInboxAnswersEqualOnes(t *testing.T) {
	q := plainQuestion()
	c := liveScene(3, q)
	askIn(c, "live0001", q, 3, "")
	askIn(c, "live0002", q, 9, "make clean")
	d := drive(t, c, 120, 35, Options{Config: themed("plain")})
	d.shows("2×")
	d.shows("$ make clean")
	inOrder(t, d.text(), "Held in all sessions", q.Title, "$ make clean", "Live", "Past")
	d.press("a") // the list of sessions has the keys
	d.advance(time.Second)
	d.press("tab", "a")
	d.shows("too soon")
	if n := len(c.Decisions()); n > 0 {
		t.Fatalf("%d answers before the quiet time", n)
	}
	d.calmly("a")
	d.decided(api.AnswerApprove, api.AnswerApprove)
	if got := c.Answers(); !slices.Equal(got, []string{sceneSession().ID + "#5", "live0001#5"}) {
		t.Errorf("answered %v", got)
	}
	d.shows("✓ approved")
	d.lacks("2×")
	d.press("a") // at once: it is too soon for the next one
	d.shows("too soon")
	if n := len(c.Decisions()); n != 2 {
		t.Errorf("%d answers", n)
	}
	d.calmly("d")
	d.shows("Deny")
	d.press("n", "o")
	d.advance(time.Second)
	d.press("enter")
	d.decided(api.AnswerApprove, api.AnswerApprove, api.AnswerDeny)
	if x := c.Decisions()[2]; x.Reason != "no" {
		t.Errorf("the reason is %q", x.Reason)
	}
	d.shows("nothing is held: what comes in a moment")
	d.calmly("enter", "a") // the list of sessions doesn't get them
	d.shows("nothing is held: what comes in a moment")
	q.ID += 70
	askIn(c, "live0001", q, 4, "make test")
	d.shows("$ make test")
	d.calmly("a") // and it is answered without going there again
	d.decided(api.AnswerApprove, api.AnswerApprove, api.AnswerDeny, api.AnswerApprove)
	d.shows("nothing is held: what comes in a moment")
	d.advance(4 * time.Second)
	d.until("the list has the keys", func() bool { return !strings.Contains(d.text(), "Held in all") })
	for _, k := range []string{"u", "d"} { // keys that may still be for a question go nowhere
		d.press(k)
		d.idle()
		d.lacks("nothing was put into the trash")
		d.lacks("stepbox run starts a session")
		d.lacks("d does nothing here")
	}
}

// What is on the screen is new to the eye when the window comes back to the front.
func TestInboxAfterAnotherWindow(t *testing.T) { alone(t, testInboxAfterAnotherWindow) }

func testInboxAfterAnotherWindow(t *testing.T) {
	d := drive(t, liveScene(1, plainQuestion()), 120, 35, Options{Config: themed("plain")})
	d.shows("$ go get")
	d.press("tab")
	d.send(tea.BlurMsg{})
	d.advance(time.Second)
	d.send(tea.FocusMsg{})
	d.press("a")
	d.shows("too soon")
	d.decided()
	d.calmly("a")
	d.decided(api.AnswerApprove)
}

// Nothing is merged that reads otherwise anywhere.
func TestInboxMergesNothingElse(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(q *api.Question, x *api.Session){
		"folder":    func(q *api.Question, x *api.Session) { x.Folder = "/home/ada/other" },
		"rule":      func(q *api.Question, _ *api.Session) { q.Rule = "ask *" },
		"contents":  func(q *api.Question, _ *api.Session) { q.Same = "s2" },
		"directory": func(q *api.Question, _ *api.Session) { q.Command.Cwd += "/x" },
		"last time": func(q *api.Question, _ *api.Session) { q.Command.LastTime = "failed" },
		"none":      func(*api.Question, *api.Session) {},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			c := liveScene(2, plainQuestion())
			q := plainQuestion()
			unlock := c.lock()
			change(&q, &c.list[1])
			unlock()
			askIn(c, "live0001", q, 3, "")
			d := drive(t, c, 120, 35, Options{Config: themed("plain")})
			want := "2 questions"
			if name == "none" {
				want = "1 question "
			}
			d.shows(want)
			d.idle()
			if strings.Contains(d.text(), "2×") != (name == "none") {
				t.Errorf("merged wrongly:\n%s", d.text())
			}
		}))
	}
}

// An opened question lies below the list of all; the next one follows by itself, and what is
// answered elsewhere goes with a word.
func TestInboxOpens(t *testing.T) { alone(t, testInboxOpens) }

func testInboxOpens(t *testing.T) {
	c := liveScene(3, sceneEdit())
	askIn(c, "live0001", plainQuestion(), 3, "")
	askIn(c, "live0002", plainQuestion(), 9, "make clean")
	d := drive(t, c, 80, 24, Options{Config: themed("plain")})
	d.shows("3 questions")
	inOrder(t, d.text(), "fix-tests", "agent-1", "agent-2") // an edit goes before commands
	d.press("tab")
	d.calmly("y")
	d.shows("edit held")
	d.shows("return nil, ErrEmpty") // its differences are what is decided on
	d.shows("Held in all sessions")
	if n := len(c.Decisions()); n > 0 {
		t.Fatal("an edit was kept unseen")
	}
	d.press("y")
	d.shows("too soon")
	d.calmly("pgdown", "pgdown", "pgdown", "pgdown", "pgdown", "pgdown", "pgdown", "pgdown")
	d.calmly("y")
	d.decided(api.AnswerKeep)
	d.shows("command held")
	d.shows("kept fix-tests")
	d.press("a")
	d.shows("too soon")
	d.calmly("tab")
	d.shows("make clean")
	q := plainQuestion()
	q.Action, q.Title, q.Closed, q.ClosedBy = 9, "make clean", "allow", "cli"
	c.PutOf("live0002", api.Event{Question: &q})
	d.shows("it was answered elsewhere: allow by cli")
	d.calmly("esc")
	d.shows("1 question ")
	d.calmly("a")
	d.decided(api.AnswerKeep, api.AnswerApprove)
}

// A question that is opened is read once all of it is in view, and then answered.
func TestInboxAnswersWhatIsOpened(t *testing.T) { alone(t, testInboxAnswersWhatIsOpened) }

func testInboxAnswersWhatIsOpened(t *testing.T) {
	d := drive(t, liveScene(2, plainQuestion()), 120, 35, Options{Config: themed("plain")})
	d.shows("1 question ")
	d.press("tab", "enter")
	d.shows("command held")
	d.calmly("a")
	d.decided(api.AnswerApprove)
}

// An edit that is opened can be rolled back there: a reason may be given first.
func TestInboxRollsBackAnEdit(t *testing.T) { alone(t, testInboxRollsBackAnEdit) }

func testInboxRollsBackAnEdit(t *testing.T) {
	d := drive(t, liveScene(2, sceneEdit()), 120, 35, Options{Config: themed("plain")})
	d.shows("1 question ")
	d.press("tab", "enter")
	d.shows("edit held")
	d.calmly("u")
	d.shows("a reason, or nothing")
	d.calmly("enter")
	d.decided(api.AnswerRollback)
}

// The selection stays on its question, whatever else is asked meanwhile.
func TestInboxSelectionStays(t *testing.T) { alone(t, testInboxSelectionStays) }

func testInboxSelectionStays(t *testing.T) {
	q := plainQuestion()
	c := liveScene(3, q)
	d := drive(t, c, 120, 35, Options{Config: themed("plain")})
	d.shows("1 question ")
	d.press("tab")
	early := q
	early.HeldAt = q.HeldAt.Add(-time.Hour)
	askIn(c, "live0001", early, 3, "make clean")
	d.shows("2 questions")
	d.calmly("a")
	d.decided(api.AnswerApprove)
	if got := c.Answers(); got[0] != sceneSession().ID+"#5" {
		t.Errorf("answered %v", got)
	}
}

// Who only watches decides nothing here either.
func TestInboxWatching(t *testing.T) { alone(t, testInboxWatching) }

func testInboxWatching(t *testing.T) {
	c := liveScene(2, plainQuestion())
	d := drive(t, c, 120, 35, Options{Config: themed("plain"), Watching: true})
	d.shows("1 question ")
	d.press("tab")
	for _, k := range []string{"a", "d", "A", "i"} {
		d.calmly(k)
		d.shows("watching only")
	}
	d.calmly("enter", "a", "d")
	d.idle()
	if n := len(c.Decisions()); n > 0 {
		t.Errorf("%d answers", n)
	}
}

// A session that ends while the list is shown says so, with the next steps.
func TestHomeTellsOfAnEnd(t *testing.T) { alone(t, testHomeTellsOfAnEnd) }

func testHomeTellsOfAnEnd(t *testing.T) {
	c := liveScene(2)
	d := drive(t, c, 200, 50, Options{Config: themed("plain")})
	d.shows("fix-tests")
	s := sceneSession()
	s.State, s.EndedAt, s.Exit, s.Held, s.Unapplied = api.SessionEnded, sceneNow, &api.Exit{Code: 3}, 0, 2
	c.Put(api.Event{Session: &s})
	d.shows("fix-tests ended: exit 3; 2 to apply · enter review · w apply…")
	d.shows("R replay")
	c.SetApply(func(r api.ApplyRequest) api.ApplyPlan { return scenePlan(r, 1) })
	d.press("w")
	d.shows("4 to write")
}

// severalHeld are live sessions in which something is held, some of it the same.
func severalHeld() *fakeClient {
	q := plainQuestion()
	c := liveScene(6, q, sceneConnection())
	for i := 1; i < 6; i++ {
		id := fmt.Sprintf("live%04d", i)
		c.PutOf(id, api.Event{Usage: &api.Usage{CPU: float64(i) / 3, Memory: int64(i) << 28, Pids: i, Sent: 900, Received: int64(i) << 20, Unapplied: i, Printed: 1, Last: fmt.Sprintf("ok  	parser/part%d  0.0%ds", i, i)}})
	}
	askIn(c, "live0001", q, 3, "")
	askIn(c, "live0002", q, 9, "make clean")
	edit := sceneEdit()
	c.PutOf("live0003", api.Event{Question: &edit})
	return c
}

// The screens of home: with the golden ones of TestGoldenHome, every state of it.
func TestGoldenInbox(t *testing.T) {
	t.Parallel()
	for _, s := range []struct {
		name  string
		c     func() *fakeClient
		keys  []string
		shows string
	}{
		{"one", func() *fakeClient { return liveScene(1) }, nil, "412M"},
		{"many", severalHeld, []string{"tab", "j"}, "2×"},
		{"command", severalHeld, []string{"tab", "j", "j", "enter"}, "equal one elsewhere"},
		{"edit", severalHeld, []string{"tab", "j", "enter"}, "edit held"},
		{"new", func() *fakeClient { return liveScene(1) }, []string{"n"}, "New session"},
		{"ended", func() *fakeClient { return liveScene(2) }, nil, "· w apply…"},
	} {
		for _, size := range sizes {
			t.Run(fmt.Sprintf("%s-%dx%d", s.name, size[0], size[1]), inBubble(func(t *testing.T) {
				d := drive(t, s.c(), size[0], size[1], Options{Config: themed("dark"), Version: "v0.1.0", Here: "/home/ada/src/parser",
					Start: func(context.Context, intent.Begin) (string, error) { return "", nil }})
				d.shows("fix-tests")
				if slices.Contains(s.keys, "tab") {
					d.shows("4 questions")
				}
				known := func() { // what is beside, or below, comes after a pause
					if size[0] >= 120 {
						d.shows("Last actions")
					} else if s.c().list[1].Live() == (s.name == "ended") {
						d.shows("Screen of")
					}
					d.idle()
					d.advance(time.Second)
				}
				known()
				if s.name == "ended" {
					x := sceneSession()
					x.State, x.EndedAt, x.Exit, x.Held, x.Unapplied = api.SessionEnded, sceneNow, &api.Exit{Code: 3}, 0, 2
					d.c.Put(api.Event{Session: &x})
				}
				for i, k := range s.keys {
					d.press(k)
					if i < len(s.keys)-1 {
						known()
					}
				}
				d.shows(s.shows)
				if len(s.keys) == 0 || s.name == "many" {
					known()
				}
				d.idle()
				d.advance(time.Second)
				d.idle()
				d.golden()
			}))
		}
	}
}
