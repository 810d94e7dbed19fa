package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
	"stepbox/session/screen"
)

// patience is how long anything is waited for. It is long because the machine
// may be busy; what doesn't come at all is what it is for.
const patience = 2 * time.Minute

// Keys as terminals send them.
const (
	leader   = "\x1d" // ctrl+]
	enter    = "\r"
	escape   = "\x1b"
	pageDown = "\x1b[6~"
	ctrlC    = "\x03"
	ctrlZ    = "\x1a"
)

// trickle is how many bytes a slow line carries in a second.
const trickle = 10_000

// terminal is a person's terminal in which the program runs.
type terminal struct {
	t    testing.TB
	cmd  *exec.Cmd
	pty  *os.File
	done chan struct{} // closed when all has been read
	slow atomic.Bool   // what is printed comes over a line that takes all, and lets through a trickle

	mu      sync.Mutex
	screen  *screen.Screen // guarded by mu
	seen    []string       // guarded by mu; the rows of the last whole frame
	raw     bytes.Buffer   // guarded by mu; all that was printed
	changed chan struct{}  // guarded by mu; closed at the next change
	exit    error          // set before done is closed
}

// open starts the program in a terminal of its own.
func (p *person) open(cols, rows int, args ...string) *terminal {
	p.t.Helper()
	return p.start(cols, rows, func(ctx context.Context) *exec.Cmd { return p.command(ctx, args...) })
}

// start starts a command in a terminal of its own.
func (p *person) start(cols, rows int, command func(context.Context) *exec.Cmd) *terminal {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	tm := &terminal{t: p.t, cmd: command(ctx), done: make(chan struct{}), screen: screen.New(cols, rows), seen: make([]string, rows), changed: make(chan struct{})}
	tm.screen.At(0) // its clock stands: a frame is whole when its end came, however busy the machine
	master, err := pty.StartWithSize(tm.cmd, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)})
	if err == nil {
		tm.pty, err = closable(master)
	}
	if err != nil {
		cancel()
		p.t.Fatal(err)
	}
	go tm.read()
	p.t.Cleanup(func() {
		cancel() // kills it, if it still runs
		<-tm.done
		tm.pty.Close()
	})
	return tm
}

// closable is a terminal's master that is closed at once, also while it is read.
func closable(master *os.File) (*os.File, error) {
	defer master.Close()
	fd, err := unix.FcntlInt(master.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "terminal"), nil
}

// read feeds the screen until the program is gone, and answers what it asks.
func (tm *terminal) read() {
	defer close(tm.done)
	var replies []byte
	tm.screen.OnReply(func(p []byte) { replies = append(replies, p...) })
	buf := make([]byte, 32<<10)
	var line []byte // what is on its way
	came := time.Now()
	for {
		if tm.slow.Load() || len(line) > 0 {
			tm.pty.SetReadDeadline(time.Now().Add(time.Second / 50))
		} else {
			tm.pty.SetReadDeadline(time.Time{})
		}
		n, err := tm.pty.Read(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = nil
		}
		line = append(line, buf[:n]...)
		n = len(line)
		if tm.slow.Load() && err == nil {
			n = min(n, int(time.Since(came)*trickle/time.Second))
		}
		came = time.Now()
		replies = replies[:0]
		tm.mu.Lock()
		if n > 0 {
			tm.show(line[:n])
			line = line[n:]
		}
		close(tm.changed)
		tm.changed = make(chan struct{})
		tm.mu.Unlock()
		if len(replies) > 0 {
			tm.pty.Write(replies) // few and short: a terminal holds thousands of bytes
		}
		if err != nil {
			break // EIO: nobody has the other end any more
		}
	}
	tm.exit = tm.cmd.Wait()
}

// show feeds the screen, and notes what a person sees then: frames that are whole.
func (tm *terminal) show(p []byte) {
	tm.raw.Write(p)
	for len(p) > 0 {
		n := len(p)
		if i := bytes.Index(p, []byte(ansi.ResetModeSynchronizedOutput)); i >= 0 {
			n = i + len(ansi.ResetModeSynchronizedOutput)
		}
		tm.screen.Write(p[:n])
		if _, whole := tm.screen.Seen(); whole {
			tm.seen = tm.screen.Text()
		}
		p = p[n:]
	}
}

// look calls f with the screen.
func (tm *terminal) look(f func(s *screen.Screen)) {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	f(tm.screen)
}

// rows is what is on the screen.
func (tm *terminal) rows() (out []string) {
	tm.look(func(*screen.Screen) { out = tm.seen })
	return out
}

func (tm *terminal) text() string { return strings.Join(tm.rows(), "\n") }

// first and last are the title line and the held line.
func (tm *terminal) first() string { return tm.rows()[0] }

func (tm *terminal) last() string { r := tm.rows(); return r[len(r)-1] }

// until waits for a condition of the screen.
func (tm *terminal) until(what string, cond func() bool) {
	tm.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		tm.mu.Lock()
		changed := tm.changed
		tm.mu.Unlock()
		if cond() {
			return
		}
		select {
		case <-changed:
		case <-tm.done:
			if cond() {
				return
			}
			tm.t.Fatalf("the program ended (%v) before: %s\n%s", tm.exit, what, tm.text())
		case <-deadline.C:
			tm.t.Fatalf("never: %s\n%s", what, tm.text())
		}
	}
}

// shows waits for words anywhere on the screen.
func (tm *terminal) shows(words ...string) {
	tm.t.Helper()
	for _, w := range words {
		tm.until("shows "+w, func() bool { return strings.Contains(tm.text(), w) })
	}
}

// gone waits until words are nowhere on the screen.
func (tm *terminal) gone(words string) {
	tm.t.Helper()
	tm.until("shows no more "+words, func() bool { return !strings.Contains(tm.text(), words) })
}

// held waits until the held line begins with words.
func (tm *terminal) held(words string) {
	tm.t.Helper()
	tm.until("the held line says "+words, func() bool { return strings.HasPrefix(tm.last(), " ◆ "+words+" ") })
}

// tick waits for the clock in the title to move on twice, so that at least a
// second went by for the person and the program.
func (tm *terminal) tick() {
	tm.t.Helper()
	for range 2 {
		before := tm.first()
		clock := before[strings.LastIndex(before, " ")+1:]
		tm.until("the clock moves on from "+clock, func() bool { return !strings.HasSuffix(tm.first(), clock) })
	}
}

// press sends keys, all at once.
func (tm *terminal) press(keys string) {
	tm.t.Helper()
	if _, err := io.WriteString(tm.pty, keys); err != nil {
		tm.t.Fatalf("cannot press %q: %v\n%s", keys, err, tm.text())
	}
}

// ask opens the first question, reads all of it, and waits until keys answer it.
func (tm *terminal) ask(title string) {
	tm.t.Helper()
	const answers, more = "keys answer this question", "scroll through all of it first (pgdn)"
	tm.press(leader + "a")
	tm.shows(title)
	for pages := 0; ; pages++ {
		tm.until("it is answered, or there is more of it", func() bool {
			return strings.Contains(tm.text(), answers) || strings.Contains(tm.text(), more)
		})
		switch {
		case strings.Contains(tm.text(), answers):
			return
		case pages == 9:
			tm.t.Fatalf("it has no end\n%s", tm.text())
		}
		tm.tick() // a key that comes again at once is one that is held down
		tm.press(pageDown)
	}
}

// awake waits until a key that the held line offers works: then it looks as the
// key for help does, which always works.
func (tm *terminal) awake(hint string) {
	tm.t.Helper()
	tm.until("the key works: "+hint, func() bool {
		var offered, help uv.Style
		found := 0
		tm.look(func(s *screen.Screen) {
			cols, rows := s.Size()
			buf := uv.NewScreenBuffer(cols, rows)
			s.Draw(buf, buf.Bounds(), 0)
			line := s.Text()[rows-1]
			for at, style := range map[string]*uv.Style{" " + hint: &offered, " ? help": &help} {
				if i := strings.Index(line, at); i >= 0 {
					found++
					*style = buf.CellAt(len([]rune(line[:i]))+1, rows-1).Style
				}
			}
		})
		return found == 2 && offered.Equal(&help)
	})
}

// answer presses a key for what is asked and waits for what it does. A program
// that was held up on a busy machine tells the person that it was too soon, who
// then does it again.
func (tm *terminal) answer(key, what string, done func() bool) {
	tm.t.Helper()
	tooSoon := func() bool { return strings.Contains(tm.text(), "too soon") }
	for {
		tm.until("earlier words are gone", func() bool { return !tooSoon() })
		tm.press(key)
		tm.until(what, func() bool { return done() || tooSoon() })
		if done() {
			return
		}
	}
}

// decide opens the first question, reads what it shows, and answers it.
func (tm *terminal) decide(title, key string, words ...string) {
	tm.t.Helper()
	tm.ask(title)
	tm.shows(words...)
	tm.answer(key, "answered: "+title, func() bool { return !strings.Contains(tm.text(), title) })
}

// prompt waits until the agent, a shell, takes another line.
func (tm *terminal) prompt() {
	tm.t.Helper()
	tm.until("the shell prompts", func() bool {
		lines := strings.Split(strings.TrimSpace(tm.agent()), "\n")
		last := lines[len(lines)-1]
		return strings.HasPrefix(last, "bash-") && (strings.HasSuffix(last, "#") || strings.HasSuffix(last, "$"))
	})
}

// box is the inside of a pane, by the title in its border.
func (tm *terminal) box(title string) []string {
	rows := make([][]rune, 0, 64)
	for _, r := range tm.rows() {
		rows = append(rows, []rune(r))
	}
	at := func(x, y int) rune {
		if y < len(rows) && x < len(rows[y]) {
			return rows[y][x]
		}
		return ' '
	}
	for y := range rows {
		for x := range rows[y] {
			if c := at(x, y); c != '╭' && c != '┏' || !strings.HasPrefix(string(rows[y][x+1:]), " "+title+" ") && !strings.HasPrefix(string(rows[y][x+1:]), "━ "+title+" ") {
				continue
			}
			right := x + 1
			for right < len(rows[y]) && at(right, y) != '╮' && at(right, y) != '┓' {
				right++
			}
			var in []string
			for below := y + 1; at(x, below) == '│' || at(x, below) == '┃'; below++ {
				line := make([]rune, 0, right)
				for i := x + 1; i < right; i++ {
					line = append(line, at(i, below))
				}
				in = append(in, string(line))
			}
			return in
		}
	}
	return nil
}

// agent is what the agent's own screen shows.
func (tm *terminal) agent() string {
	var b strings.Builder
	for _, r := range tm.box("1 Terminal") {
		b.WriteString(strings.TrimRight(r, " ") + "\n")
	}
	return b.String()
}

// agentShows waits for words in the agent's screen.
func (tm *terminal) agentShows(words string) {
	tm.t.Helper()
	tm.until("the agent shows "+words, func() bool { return strings.Contains(tm.agent(), words) })
}

// resize changes the terminal's size.
func (tm *terminal) resize(cols, rows int) {
	tm.t.Helper()
	tm.look(func(s *screen.Screen) {
		s.Resize(cols, rows)
		tm.seen = s.Text()
	})
	must.OK(tm.t, pty.Setsize(tm.pty, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)}))
}

// ended waits for the program's exit and returns its code and its last words.
// The terminal has to be as it was before.
func (tm *terminal) ended() (code int, words string) {
	tm.t.Helper()
	select {
	case <-tm.done:
	case <-time.After(patience):
		tm.t.Fatalf("the program didn't end\n%s", tm.text())
	}
	var failed *exec.ExitError
	if tm.exit != nil && !errors.As(tm.exit, &failed) {
		tm.t.Fatal(tm.exit)
	}
	tm.look(func(s *screen.Screen) {
		if s.AltScreen() || s.MouseMode() != uv.MouseModeNone || s.BracketedPaste() || s.FocusEvents() || s.Cursor().Hidden {
			tm.t.Errorf("the terminal's modes were left changed: alternate screen %v, mouse %v, paste %v, focus %v, cursor hidden %v",
				s.AltScreen(), s.MouseMode(), s.BracketedPaste(), s.FocusEvents(), s.Cursor().Hidden)
		}
	})
	if tio, err := unix.IoctlGetTermios(int(tm.pty.Fd()), unix.TCGETS); err != nil {
		tm.t.Error(err)
	} else if tio.Lflag&unix.ICANON == 0 || tio.Lflag&unix.ECHO == 0 {
		tm.t.Error("the terminal was left raw")
	}
	return tm.cmd.ProcessState.ExitCode(), strings.TrimSpace(tm.text())
}

// kill9 kills the program as the kernel would when memory is short.
func (tm *terminal) kill9() {
	tm.t.Helper()
	must.OK(tm.t, tm.cmd.Process.Signal(syscall.SIGKILL))
	select {
	case <-tm.done:
	case <-time.After(patience):
		tm.t.Fatal("the program wasn't killed, or somebody else has its terminal")
	}
}

// hangUp closes the person's end, as closing a terminal's window does.
func (tm *terminal) hangUp() {
	tm.t.Helper()
	tm.pty.Close()
	select {
	case <-tm.done:
	case <-time.After(patience):
		tm.t.Fatal("the program goes on without a terminal")
	}
}

// mouse writes a click of the left button, as terminals send it (SGR 1006).
func mouse(w io.Writer, x, y int) { fmt.Fprintf(w, "\x1b[<0;%d;%dM\x1b[<0;%d;%dm", x, y, x, y) }
