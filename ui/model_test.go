package ui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/kept"
)

func TestHomeAttachesAndComesBack(t *testing.T) { alone(t, testHomeAttachesAndComesBack) }

func testHomeAttachesAndComesBack(t *testing.T) {
	d := drive(t, sceneWorkbench(), 100, 30, Options{Config: themed("plain")})
	d.shows("fix-tests")
	d.press("j", "k", "enter")
	d.shows("1 Terminal")
	d.press(leader, "h")
	d.shows("Past")
	d.press("j", "j", "enter")
	d.shows("ENDED")
	d.press("q")
	d.shows("Past")
	d.press("q")
	d.idle()
	if !d.quit {
		t.Error("q didn't leave")
	}
}

// A new session is chosen from lists; enter at once starts one in this folder, as the last
// one there was.
func TestNewSession(t *testing.T) { alone(t, testNewSession) }

func testNewSession(t *testing.T) {
	begun := make(chan intent.Begin, 8)
	o := Options{Config: themed("plain"), Here: "/home/ada/src/parser", Start: func(_ context.Context, b intent.Begin) (string, error) {
		begun <- b
		if b.Folder == "/none" {
			return "", errors.New("no user\x1b[2J namespaces")
		}
		return sceneSession().ID, nil
	}, Agents: func(context.Context) []dialog.Choice {
		return []dialog.Choice{{Value: "claude", Words: "Claude Code", Argv: []string{"claude"}}, {Value: "codex", Argv: []string{"codex"}}}
	}}
	open := func() *driver {
		c := sceneWorkbench()
		unlock := c.lock()
		c.list[0].Folder, c.list[1].Folder = o.Here, "/home/ada/src/docs"
		unlock()
		d := drive(t, c, 100, 30, o)
		d.shows("fix-tests")
		d.until("it is known which agents there are", func() bool { d.idle(); return true })
		d.press("n")
		d.shows("New session")
		return d
	}
	d := open()
	d.shows("/home/ada/src/docs")
	d.press("enter")
	d.shows("1 Terminal")
	if b := <-begun; b.Folder != o.Here || len(b.Argv) != 1 || b.Argv[0] != "claude" || b.Mode != api.ModeStep || b.Name != "" {
		t.Errorf("began %+v", b)
	}

	d = open()
	d.press("down", "tab", "down", "tab", "down", "tab", "x", "q", "enter")
	d.until("it began", func() bool { return len(begun) > 0 })
	if b := <-begun; b.Folder != "/home/ada/src/docs" || b.Argv[0] != "codex" || b.Mode != api.ModePolicy || b.Name != "xq" {
		t.Errorf("began %+v", b)
	}

	dir := t.TempDir()
	for _, name := range []string{"alpha", "beta", "beast", ".hidden"} {
		must.OK(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	d = open()
	d.send(tea.PasteMsg{Content: dir + "/be"})
	d.shows("/beast")
	d.lacks("alpha")
	d.press("down", "down", "tab")
	d.shows("beta/")
	d.press("enter")
	d.until("it began", func() bool { return len(begun) > 0 })
	if b := <-begun; filepath.Clean(b.Folder) != filepath.Join(dir, "beta") {
		t.Errorf("began in %q", b.Folder)
	}

	d = open()
	d.send(tea.PasteMsg{Content: "/none"})
	d.press("enter")
	d.shows(`! no user\x1b[2J namespaces`)
	d.press("esc")
	d.lacks("New session")
}

// Where there is no session at all, a key starts the demo.
func TestDemoIsOffered(t *testing.T) { alone(t, testDemoIsOffered) }

func testDemoIsOffered(t *testing.T) {
	asked := make(chan bool, 2)
	o := Options{Config: themed("plain"), Start: func(context.Context, intent.Begin) (string, error) { return "", nil }, Demo: func(context.Context) (string, error) {
		asked <- true
		return "", errors.New("no room")
	}}
	d := drive(t, newFake(), 80, 24, o)
	d.shows("d shows a demo")
	d.press("d")
	d.shows("can't start: no room")
	if len(asked) != 1 {
		t.Error("it wasn't started")
	}
	d = drive(t, sceneWorkbench(), 80, 24, o)
	d.shows("fix-tests")
	d.lacks("demo")
}

func TestDetachSaysSo(t *testing.T) { alone(t, testDetachSaysSo) }

func testDetachSaysSo(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneQuestion()), 120, 35, "plain")
	d.press(leader, "d")
	d.until("it quits", func() bool { return d.quit })
	if want := "stepbox attach k3v7qpxa"; !strings.Contains(d.m.farewell, want) {
		t.Errorf("said %q, want %q in it", d.m.farewell, want)
	}
}

// What is said once the screens are left is for a terminal that may not be in UTF-8.
func TestDetachSaysSoInASCII(t *testing.T) { alone(t, testDetachSaysSoInASCII) }

func testDetachSaysSoInASCII(t *testing.T) {
	c := sceneWorkbench()
	s := sceneSession()
	s.Name = "Л2J"
	c.Put(api.Event{Session: &s})
	d := drive(t, c, 120, 35, Options{Session: s.ID, Config: themed("plain"), Getenv: func(name string) string { return map[string]string{"LANG": "de_DE.ISO-8859-1"}[name] }})
	d.until("its name is shown", func() bool { return d.m.bench != nil && d.m.bench.Name() == s.Name })
	d.press(leader, "d")
	d.until("it quits", func() bool { return d.quit })
	if want := "Detached from ?2J;"; !strings.Contains(d.m.farewell, want) {
		t.Errorf("said %q, want %q in it", d.m.farewell, want)
	}
}

func TestUnknownSession(t *testing.T) { alone(t, testUnknownSession) }

func testUnknownSession(t *testing.T) {
	d := drive(t, newFake(), 100, 30, Options{Session: "none"})
	d.until("it quits", func() bool { return d.quit })
	if err := d.m.err; err == nil || !strings.Contains(err.Error(), `cannot open session "none"`) {
		t.Errorf("got %v", err)
	}
}

func TestLeaderTwiceSendsOne(t *testing.T) { alone(t, testLeaderTwiceSendsOne) }

func testLeaderTwiceSendsOne(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.press(leader, leader, "x")
	d.until("the agent got it", func() bool { return d.c.LastTerminal().Got() == "\x1dx" })
}

func TestBellAndTitleTell(t *testing.T) { alone(t, testBellAndTitleTell) }

func testBellAndTitleTell(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	if d.raw != "" || strings.Contains(d.frame.Title, "held") {
		t.Errorf("rang without a reason: %q, %q", d.raw, d.frame.Title)
	}
	put(d, ask(6, 14, "rm x"))
	d.until("it rings", func() bool { return d.raw == "\a" })
	if !strings.HasPrefix(d.frame.Title, "◆ 1 held") {
		t.Errorf("the title is %q", d.frame.Title)
	}
	put(d, ask(7, 15, "rm y")) // at once: it isn't told at once, too
	d.idle()
	if d.raw != "\a" {
		t.Errorf("rang %q", d.raw)
	}
	d.advance(bellEvery)
	d.send(clock{})
	d.until("it rings again", func() bool { return d.raw == "\a\a" }) // the first may be answered by now
	d.advance(bellEvery)
	d.send(clock{})
	d.idle()
	if d.raw != "\a\a" {
		t.Errorf("rang %q", d.raw)
	}
}

func TestHeldNeverStealsTheFocus(t *testing.T) { alone(t, testHeldNeverStealsTheFocus) }

func testHeldNeverStealsTheFocus(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.press(leader, "2")
	put(d, ask(6, 14, "rm x"))
	d.press("j")
	d.shows("◆ #14 held")
	d.lacks("command held")
	d.press("1", "z")
	d.until("typed", func() bool { return d.c.LastTerminal().Got() == "z" })
}

func TestTabWalksWhatIsHeld(t *testing.T) { alone(t, testTabWalksWhatIsHeld) }

func testTabWalksWhatIsHeld(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	for i := range 3 {
		put(d, ask(int64(6+i), 14+i, fmt.Sprintf("rm %d", i)))
	}
	d.press(leader, "2", "tab")
	d.shows("1 of 3 held")
	d.press("tab")
	d.shows("2 of 3 held")
	d.press("tab", "tab")
	d.shows("1 of 3 held")
	d.press("shift+tab")
	d.shows("3 of 3 held")
	d.calmly("d", "enter")
	d.decided(api.AnswerDeny)
	if got := d.c.Decisions()[0].Question; got != 8 {
		t.Errorf("question %d was answered, want the third", got)
	}
}

// Keys, pastes and resizes reach the agent whole and in the order of typing,
// also while it floods its terminal and keys come faster than frames.
func TestKeysKeepTheirOrderUnderFlood(t *testing.T) { alone(t, testKeysKeepTheirOrderUnderFlood) }

func testKeysKeepTheirOrderUnderFlood(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	term := d.c.LastTerminal()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				term.Output("flooding the terminal with lines\n")
			}
		}
	}()
	var want strings.Builder
	var slowest time.Duration
	for i := range 400 {
		k := string(rune('a' + i%26))
		want.WriteString(k)
		began := time.Now()
		d.press(k)
		slowest = max(slowest, time.Since(began))
		if i%50 == 0 {
			d.send(tea.PasteMsg{Content: "<paste>"})
			want.WriteString("<paste>")
			d.take(0)
		}
	}
	d.until("all arrived", func() bool { return len(term.Got()) >= want.Len() })
	close(stop)
	for waiting := true; waiting; {
		select {
		case <-done:
			waiting = false
		default:
			d.take(time.Millisecond)
		}
	}
	if got := term.Got(); got != want.String() {
		t.Errorf("the agent got %q, want %q", got, want.String())
	}
	t.Logf("slowest key, its frame included: %v", slowest)
}

func TestAgentThatDoesNotRead(t *testing.T) { alone(t, testAgentThatDoesNotRead) }

func testAgentThatDoesNotRead(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.c.LastTerminal().Stick()
	for range 5000 {
		d.m.bench.Key(key("x"))
	}
	d.press("x")
	d.shows("not sent: the agent isn't reading")
	d.press(leader, "d")
	d.until("it can still be left", func() bool { return d.quit })
}

func TestDisconnectedIsVisible(t *testing.T) { alone(t, testDisconnectedIsVisible) }

func testDisconnectedIsVisible(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneQuestion()), 120, 35, "plain")
	d.c.Break(errors.New("connection reset"))
	d.shows("DISCONNECTED")
	d.c.Break(nil)
	d.until("joined again", func() bool { return !strings.Contains(d.text(), "DISCONNECTED") })
	put(d, ask(6, 14, "rm x"))
	d.shows("of 2 held")
}

func TestEndedSessionIsReadOnly(t *testing.T) { alone(t, testEndedSessionIsReadOnly) }

func testEndedSessionIsReadOnly(t *testing.T) {
	c := sceneWorkbench(sceneQuestion())
	d := bench(t, c, 120, 35, "plain")
	s := sceneSession()
	s.State, s.EndedAt, s.Exit = api.SessionEnded, sceneNow, &api.Exit{}
	c.Put(api.Event{Session: &s})
	c.End()
	d.shows("ENDED: exit 0")
	d.press("4")
	d.calmly("a", "p", "ctrl+k")
	d.decided()
	d.shows("the session has ended")
	if d.frame.Cursor != nil {
		t.Error("a past session has a cursor")
	}
}

func TestThemeFollowsTheBackground(t *testing.T) { alone(t, testThemeFollowsTheBackground) }

func testThemeFollowsTheBackground(t *testing.T) {
	d := drive(t, newFake(), 80, 24, Options{})
	dark := d.m.palette.Theme.Name
	d.send(tea.BackgroundColorMsg{Color: white{}})
	if light := d.m.palette.Theme.Name; dark != "dark" || light != "light" {
		t.Errorf("themes are %s and %s", dark, light)
	}
}

type white struct{}

func (white) RGBA() (r, g, b, a uint32) { return 0xffff, 0xffff, 0xffff, 0xffff }

// The real program, with bytes for a terminal: it starts, answers, and leaves
// nothing behind.
func TestRun(t *testing.T) {
	t.Parallel()
	in, feed := io.Pipe()
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	done := make(chan error, 1)
	c := sceneWorkbench()
	go func() {
		done <- Run(ctx, Options{Client: c, NewTerminal: newFakeEmulator, Session: sceneSession().ID, In: in, Out: &out, Config: themed("dark"), Kept: kept.Folder(t.TempDir()), NoTour: true,
			Environ: []string{"TERM=xterm-256color"}})
	}()
	deadline := time.Now().Add(patience)
	for i := 0; time.Now().Before(deadline.Add(-10 * time.Second)); i++ { // the program reads until then
		if s := c.LastTerminal(); s != nil && s.Got() != "" {
			break
		}
		fmt.Fprint(feed, string(rune('a'+i%26))) // one key alone would be one that is held down
		<-time.After(50 * time.Millisecond)
	}
	fmt.Fprint(feed, "\x1d")
	fmt.Fprint(feed, "d")
	must.OK(t, <-done)
	feed.Close()
	if !strings.Contains(out.String(), "Detached from fix-tests") {
		t.Error("leaving wasn't told")
	}
	if err := Run(ctx, Options{}); err == nil {
		t.Error("ran without a client")
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	in, feed := io.Pipe()
	defer feed.Close()
	err := Run(ctx, Options{Client: sceneWorkbench(), NewTerminal: newFakeEmulator, In: in, Out: io.Discard, Config: themed("dark"), Kept: kept.Folder(t.TempDir()), Environ: []string{"TERM=xterm"}})
	if err != nil {
		t.Error(err)
	}
}

// What takes long is said, with a mark that turns until it is done; then nothing ticks.
func TestLongWorkIsSaid(t *testing.T) { alone(t, testLongWorkIsSaid) }

func testLongWorkIsSaid(t *testing.T) {
	c := sceneWorkbench()
	d := bench(t, c, 120, 35, "plain")
	hold := make(chan struct{})
	c.Wait(hold)
	d.press(leader, "p")
	d.shows(" pausing")
	frame := d.text()
	d.until("it turns", func() bool { return d.text() != frame && strings.Contains(d.text(), " pausing") })
	close(hold)
	d.shows("paused: p goes on")
	d.until("it stands still", func() bool { return d.m.spin.String() == "" })

	hold = make(chan struct{})
	starts := 0
	d = drive(t, sceneWorkbench(), 100, 30, Options{Config: themed("plain"), Start: func(context.Context, intent.Begin) (string, error) {
		starts++
		<-hold
		return sceneSession().ID, nil
	}})
	d.shows("bump-deps")
	d.press("n", "enter", "enter")
	d.shows("⠹ starting")
	close(hold)
	d.until("it is joined", func() bool { return d.m.bench != nil })
	if starts != 1 {
		t.Errorf("%d sessions were started", starts)
	}
}
