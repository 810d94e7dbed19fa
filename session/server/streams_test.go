package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/terminal"
	"stepbox/store/storetest"
)

// agent is a terminal whose agent is the test.
type agent struct {
	*terminal.Terminal
	tty *os.File
}

func newTerminal(t *testing.T) agent {
	t.Helper()
	st := storetest.New(t)
	storetest.Begin(t, st, "one", json.RawMessage(`{}`))
	master, tty, err := pty.Open()
	must.OK(t, err)
	term, err := terminal.Open(terminal.Config{
		Store: st, Session: "one", PTY: master, Cols: 80, Rows: 24, NoEcho: true, Failed: func(err error) { t.Error(err) },
	})
	must.OK(t, err)
	t.Cleanup(func() {
		tty.Close()
		term.Close()
	})
	return agent{term, tty}
}

// reads gives all output up to some text, or to the end.
func reads(t *testing.T, conn *api.TerminalConn, until string) (out string, end error) {
	t.Helper()
	for until == "" || !strings.Contains(out, until) {
		f, err := conn.Read()
		switch {
		case err != nil:
			return out, err
		case f.Kind == api.FrameEnd:
			return out, nil
		}
		out += string(f.Data)
	}
	return out, nil
}

// serveFake is a client of a fake session's server.
func serveFake(t *testing.T, f *fakeSession) *api.Client {
	t.Helper()
	return hub(t, f, Supervisor{Socket: supervisor(t, New(f, f, f.control))}, answerTime)
}

func TestTerminalOfALiveSession(t *testing.T) {
	f, a := live(), newTerminal(t)
	f.term = a.Terminal
	c := serveFake(t, f)
	if _, err := io.WriteString(a.tty, "before "); err != nil {
		t.Fatal(err)
	}
	all, err := c.Output(t.Context(), "one")
	must.OK(t, err)
	defer all.Close()
	if out, err := reads(t, all, "before"); err != nil || out != "before " {
		t.Errorf("who follows read %q, %v", out, err)
	}
	seen, err := c.Terminal(t.Context(), "one")
	must.OK(t, err)
	defer seen.Close()
	if k, err := seen.Read(); err != nil || k.Kind != api.FrameKeyframe || k.Cols != 80 || k.Rows != 24 || !strings.Contains(string(k.Data), "before") {
		t.Errorf("the first frame is %c of %d×%d, %v", k.Kind, k.Cols, k.Rows, err)
	}
	must.OK(t, seen.Resize(100, 30), seen.Input([]byte("typed\n")))
	line := make([]byte, 64)
	n, err := a.tty.Read(line)
	if err != nil || string(line[:n]) != "typed\n" {
		t.Errorf("the agent read %q, %v", line[:n], err)
	}
	if size, err := pty.GetsizeFull(a.tty); err != nil || size.Cols != 100 || size.Rows != 30 {
		t.Errorf("its terminal is %+v, %v", size, err)
	}
	if r, err := seen.Read(); err != nil || r.Kind != api.FrameResize || r.Cols != 100 || r.Rows != 30 {
		t.Errorf("the viewer is told of %c %d×%d, %v", r.Kind, r.Cols, r.Rows, err)
	}
	if _, err := io.WriteString(a.tty, "after"); err != nil {
		t.Fatal(err)
	}
	a.tty.Close()
	if out, err := reads(t, seen, ""); !errors.Is(err, io.EOF) || out != "after" {
		t.Errorf("who watches read %q, %v", out, err)
	}
	if out, err := reads(t, all, ""); err != nil || out != "after" {
		t.Errorf("who follows read %q, %v, and no end", out, err)
	}
}

func TestTerminalOfAPastSession(t *testing.T) {
	f := &fakeSession{info: api.Session{ID: "one", State: api.SessionEnded}}
	c := serveFake(t, f)
	for name, c := range map[string]struct {
		join func(context.Context, string) (*api.TerminalConn, error)
		fail error
		out  string
		end  error
	}{
		"its last screen":      {c.Terminal, nil, "last screen", io.EOF},
		"all that it printed":  {c.Output, nil, "all of it", nil},
		"what can be read yet": {c.Output, errFake, "all of it", io.EOF}, // without an end: it isn't all
	} {
		f.after = c.fail
		conn, err := c.join(t.Context(), "one")
		if err != nil {
			t.Fatal(name, err)
		}
		if out, err := reads(t, conn, ""); out != c.out || !errors.Is(err, c.end) {
			t.Errorf("%s is %q, %v", name, out, err)
		}
		conn.Close()
	}
}

// A list that breaks off isn't taken for all of it; an event stream that does is
// joined again.
func TestBrokenStreams(t *testing.T) {
	f := live()
	f.after = errFake
	c := serveFake(t, f)
	n, failed := 0, error(nil)
	for _, err := range c.Diffs(t.Context(), "one", api.Scope{}) {
		if err != nil {
			failed = err
			break
		}
		n++
	}
	if failed == nil {
		t.Errorf("%d differences and then %v", n, failed)
	}
	n = 0
	for _, err := range c.Recorded(t.Context(), "one", 4) {
		if err != nil {
			t.Error(err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d events", n)
	}
}

// Everyone who follows a session gets its events and leaves as he likes.
func TestEventsUntilTheReaderLeaves(t *testing.T) {
	f := live()
	c := serveFake(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var kinds []string
	for e, err := range c.EventsFromNow(ctx, "one", 5) {
		if err != nil {
			t.Error(err)
			break
		}
		if kinds = append(kinds, e.Kind); len(kinds) == 3 {
			cancel()
			break
		}
	}
	if got := strings.Join(kinds, " "); got != "session.now question.now live" {
		t.Errorf("the events are %s", got)
	}
}
