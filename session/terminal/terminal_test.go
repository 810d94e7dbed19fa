package terminal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/store"
	"stepbox/store/storetest"
)

// patience bounds waits for what should happen at once: on a busy machine it
// takes long, and only a test that fails waits for all of it.
const patience = 2 * time.Minute

// pipeTerminal is a terminal whose agent is the test.
type pipeTerminal struct {
	testing.TB
	*Terminal
	agent  *os.File
	failed chan error
	closed sync.Once
}

// close ends the agent and the terminal, which writes until then.
func (p *pipeTerminal) close() {
	p.closed.Do(func() {
		p.agent.Close()
		p.Terminal.Close()
	})
}

func newPipeTerminal(t testing.TB, how ...func(*Config)) *pipeTerminal {
	t.Helper()
	st := storetest.New(t)
	const id = "aaaaaaaa"
	storetest.Begin(t, st, id, map[string]any{"started_at": time.Now().UTC()})
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	must.OK(t, err)
	p := &pipeTerminal{TB: t, agent: os.NewFile(uintptr(fds[1]), "agent"), failed: make(chan error, 4)}
	c := Config{
		Store: st, Session: id, PTY: os.NewFile(uintptr(fds[0]), "pty"), Cols: 80, Rows: 24,
		Failed: func(err error) { p.failed <- err },
	}
	for _, set := range how {
		set(&c)
	}
	p.Terminal, err = Open(c)
	must.OK(t, err)
	t.Cleanup(p.close)
	return p
}

// say is what the agent prints.
func (p *pipeTerminal) say(s string) {
	p.Helper()
	if _, err := io.WriteString(p.agent, s); err != nil {
		p.Fatal(err)
	}
}

// over ends the agent and then the terminal.
func (p *pipeTerminal) over() {
	p.Helper()
	p.agent.Close()
	arrives(p.TB, "the end of the output", p.eof)
	p.close()
}

func arrives(t testing.TB, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s didn't come", what)
	}
}

// all reads a follower to its end.
func all(t *testing.T, f *follower) string {
	t.Helper()
	defer f.leave()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out bytes.Buffer
	for {
		frames, err := f.next(ctx.Done())
		if errors.Is(err, io.EOF) && ctx.Err() == nil {
			return out.String()
		}
		if err != nil || ctx.Err() != nil {
			t.Fatalf("after %d bytes: %v, %v", out.Len(), err, ctx.Err())
		}
		for _, f := range frames {
			out.Write(f.Data)
		}
	}
}

func TestFollowersGetAllOutputWheneverTheyCome(t *testing.T) {
	p := newPipeTerminal(t)
	first := p.follow()
	p.say("one ")
	if frames, err := first.next(t.Context().Done()); err != nil || string(frames[0].Data) != "one " {
		t.Fatalf("the first follower read %v, %v", frames, err)
	}
	second := p.follow()
	p.say("two ")
	got := make(chan string, 1)
	go func() { got <- all(t, second) }()
	p.agent.Close()
	arrives(t, "the end of the output", p.eof)
	third := p.follow() // the terminal is at its end but not closed
	p.close()
	fourth := p.follow() // it is closed
	if s := <-got; s != "one two " {
		t.Errorf("who came in the middle read %q", s)
	}
	if s := all(t, first); s != "two " {
		t.Errorf("who came first read %q after the first word", s)
	}
	for _, f := range []*follower{third, fourth} {
		if s := all(t, f); s != "one two " {
			t.Errorf("who came late read %q", s)
		}
	}
}

func TestFollowerThatDoesNotReadSlowsTheAgent(t *testing.T) {
	p := newPipeTerminal(t)
	f := p.follow()
	const size = 3 * backlog
	said := make(chan error, 1)
	go func() {
		_, err := io.WriteString(p.agent, strings.Repeat("x", size))
		said <- err
	}()
	var total int64
	for behind := false; !behind; {
		p.do(func() { behind, total = p.behind(), p.total })
		select {
		case err := <-said:
			t.Fatal("the agent was never slowed:", err)
		default:
		}
	}
	if total > backlog+64<<10 {
		t.Errorf("%d bytes were taken from the agent for a follower that read nothing", total)
	}
	got := make(chan string, 1)
	go func() { got <- all(t, f) }()
	must.OK(t, <-said)
	p.over()
	if s := <-got; len(s) != size {
		t.Errorf("it read %d bytes, want %d", len(s), size)
	}
}

// What a viewer hasn't read holds the agent up, so that little is in front of
// what the agent answers, and comes in one piece.
func TestViewerThatReadsSlowsTheAgent(t *testing.T) {
	p := newPipeTerminal(t)
	v := p.join()
	const size = 3 * backlog
	said := make(chan error, 1)
	go func() {
		_, err := io.WriteString(p.agent, strings.Repeat("x", size))
		said <- err
	}()
	for got := 0; got < size; {
		frames, err := v.next(t.Context().Done())
		must.OK(t, err)
		for i, f := range frames {
			if f.Kind == api.FrameKeyframe && got > 0 {
				t.Skip("the machine is too busy to read in time")
			}
			if f.Kind == api.FrameOutput {
				got += len(f.Data)
			}
			if i == 0 && len(frames)*len(f.Data) > 4*window {
				t.Fatalf("%d frames like one of %d bytes were in front of it", len(frames), len(f.Data))
			}
		}
	}
	must.OK(t, <-said)
}

func TestViewerThatDoesNotReadIsSkipped(t *testing.T) {
	p := newPipeTerminal(t)
	v := p.join()
	if _, err := io.WriteString(p.agent, strings.Repeat("x", 3*backlog)+"\rthe end"); err != nil {
		t.Fatal(err)
	}
	for first := true; ; first = false {
		frames, err := v.next(t.Context().Done())
		if err != nil || first && frames[0].Kind != api.FrameKeyframe {
			t.Fatalf("it reads %v, %v", frames, err)
		}
		if strings.Contains(string(frames[len(frames)-1].Data), "the end") {
			return
		}
	}
}

// The size is that of the viewer who was active last, of those who are there.
func TestSizeOfThoseWhoAreThere(t *testing.T) {
	p := newPipeTerminal(t)
	is := func(cols, rows int) {
		t.Helper()
		p.do(func() {
			if p.Cols != cols || p.Rows != rows {
				t.Errorf("the terminal is %d×%d, not %d×%d", p.Cols, p.Rows, cols, rows)
			}
		})
	}
	large, small, silent := p.Join(), p.Join(), p.Join()
	large.Resize(120, 35)
	small.Resize(80, 24)
	is(80, 24)
	silent.Close()
	is(80, 24)
	large.Resize(110, 30) // its panes moved
	is(80, 24)
	large.Resize(110, 30) // it says so itself
	is(110, 30)
	small.Input([]byte("x"))
	is(80, 24)
	watching := p.Join()
	watching.Input([]byte("x"))
	is(80, 24) // who never asked for a size sets none
	watching.Close()
	large.Input([]byte("x")) // small's connection hangs, say
	is(110, 30)
	small.Resize(90, 20)
	is(110, 30)
	small.Input([]byte("x"))
	is(90, 20)
	small.Close()
	is(110, 30)
	small = p.Join()
	small.Resize(60, 15)
	small.Resize(70, 20)
	is(70, 20)
	small.Close()
	is(110, 30)
	large.Close()
	is(110, 30) // nobody is left to say otherwise
}

func TestFollowerThatLeavesIsNotWaitedFor(t *testing.T) {
	p := newPipeTerminal(t)
	f := p.follow()
	said := make(chan error, 1)
	go func() {
		_, err := io.WriteString(p.agent, strings.Repeat("x", 2*backlog))
		said <- err
	}()
	for behind := false; !behind; {
		p.do(func() { behind = p.behind() })
	}
	f.leave()
	must.OK(t, <-said)
	p.over()
}

func TestTheEndWaitsForNoReader(t *testing.T) {
	p := newPipeTerminal(t)
	f := p.follow()
	var want strings.Builder
	p.Hurry() // the agent has ended, what is in the PTY is all there will be
	for range 3 * backlog >> 16 {
		line := strings.Repeat("x", 1<<16-1) + "\n"
		want.WriteString(line)
		p.say(line)
	}
	p.over()
	if s := all(t, f); s != want.String() {
		t.Errorf("who read nothing until the end then read %d bytes, want %d", len(s), want.Len())
	}
}

func TestLiveFollowerLosesNothingInAFlood(t *testing.T) {
	p := newPipeTerminal(t)
	f := p.follow()
	p.say("first\n")
	if _, err := f.next(t.Context().Done()); err != nil {
		t.Fatal(err)
	}
	if p, err := f.recorded(); p != nil || err != nil { // that was all: it is handed what comes from here on
		t.Fatal(p, err)
	}
	p.Hurry()
	var want strings.Builder
	for range 3 * backlog >> 16 {
		line := strings.Repeat("y", 1<<16-1) + "\n"
		want.WriteString(line)
		p.say(line)
	}
	p.over()
	f.mu.Lock()
	held := f.size
	f.mu.Unlock()
	if held > 2*backlog {
		t.Errorf("%d bytes are held for a reader that is gone", held)
	}
	if s := all(t, f); s != want.String() {
		t.Errorf("it read %d bytes, want %d", len(s), want.Len())
	}
}

// A record that can't be written ends everything that waits for output.
func TestBrokenRecordEndsViewers(t *testing.T) {
	p := newPipeTerminal(t)
	v, f := p.join(), p.follow()
	if _, err := v.next(t.Context().Done()); err != nil {
		t.Fatal(err)
	}
	if err := p.journal.Close(); err != nil { // every write fails from here on
		t.Fatal(err)
	}
	p.say("unrecorded")
	arrives(t, "the end of the output", p.eof)
	if err := <-p.failed; !errors.Is(err, store.ErrClosed) {
		t.Errorf("it failed with %v", err)
	}
	if frames, err := v.next(t.Context().Done()); !errors.Is(err, io.EOF) {
		t.Errorf("the viewer got %v, %v", frames, err)
	}
	if s := all(t, f); s != "" {
		t.Errorf("the follower read %q, which isn't recorded", s)
	}
	p.say(strings.Repeat("more", 1<<20)) // the agent isn't held up
	if f := p.Last(); f.Cols != 80 || bytes.Contains(f.Data, []byte("unrecorded")) {
		t.Errorf("the last screen is %d columns wide with %q", f.Cols, f.Data)
	}
	v = p.join()
	if frames, err := v.next(t.Context().Done()); err != nil || len(frames) != 1 || frames[0].Kind != api.FrameKeyframe {
		t.Errorf("who comes later gets %v, %v, want the last screen", frames, err)
	}
	p.agent.Close()
	p.close()
}
