// Package terminal is the session's side of the agent's terminal: it records
// every byte that the agent prints, answers the agent's queries with an emulator
// and serves those who watch. A viewer that reads too slowly loses no state: its
// backlog is replaced by a keyframe. A follower gets every byte from the first
// one on and slows the agent instead, as the reader of a pipe does.
//
// What the agent prints is hostile; the emulator bounds it. Viewers are trusted.
package terminal

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"stepbox/session/api"
	"stepbox/session/redact"
	"stepbox/session/screen"
	"stepbox/store"

	"github.com/creack/pty"
)

// Terminal is the session's side of the agent's PTY. One goroutine reads it,
// one owns the emulator, the record and the viewers, one writes to the agent.
// Every byte is in the record before a viewer gets it. The PTY's own
// back-pressure slows an agent that prints faster than this. Its methods may be
// called from any goroutine.
type Terminal struct {
	Config
	journal *store.Journal

	output chan []byte    // one read in flight: reading stops while it is full
	input  chan []byte    // to the agent, in order; full: the viewer that types waits
	calls  chan func()    // run by the owner
	begun  chan begun     // actions that begin; full: where one began isn't known
	stop   chan struct{}  // closed by Close
	done   chan struct{}  // closed when the owner has stopped
	eof    chan struct{}  // closed when the agent's last byte is in the record
	room   chan struct{}  // holds one: a viewer or follower has read on
	wg     sync.WaitGroup // the three goroutines

	taken  atomic.Int64         // bytes that were read
	active atomic.Pointer[View] // who typed or asked for a size last; set by the owner

	// Below: owned by the owner, and everyone's to read once it has stopped.
	screen    *screen.Screen
	views     map[*viewer]bool
	followers map[*follower]bool
	sizes     []asked // by viewers that are there, the one who was active last at the end
	marks     []mark  // where actions began, the oldest first
	waiting   []begun // until what was printed before them is shown
	total     int64   // bytes recorded
	before    int64   // those of them that are an earlier agent's; never changed
	hurried   bool    // nobody slows the agent any more
	over      bool    // nothing more is recorded
}

// Config is what a Terminal is opened with.
type Config struct {
	Store      *store.Store
	Session    string       // whose journal is written
	PTY        *os.File     // the master; Close closes it
	Cols, Rows int          // its size
	NoEcho     bool         // it starts without echo: nobody types at it
	GoesOn     bool         // what is recorded of an earlier agent stays, and this one's comes after it
	Mask       *redact.Mask // of what is neither recorded nor shown; nil: all is
	Failed     func(error)  // told when bytes can't be recorded: nothing more is shown then
}

const (
	// window is how many bytes may wait for a viewer before the agent waits with
	// them, so that what it answers to a key comes soon. A viewer that hasn't read
	// on after grace gets a keyframe instead.
	window = 32 << 10
	grace  = 100 * time.Millisecond
	// backlog is how far a follower may lag before the agent waits for it.
	backlog = 1 << 20
)

// secretLike is how many bytes of a secret's beginning are hardly anything else.
const secretLike = 8

// inputs bounds the keystrokes on their way to an agent that doesn't read.
const inputs = 256

// Open begins to read the agent's PTY and to record what comes.
func Open(c Config) (*Terminal, error) {
	if c.NoEcho {
		if err := silence(c.PTY); err != nil {
			return nil, fmt.Errorf("cannot turn off the echo of the agent's terminal: %w", err)
		}
	}
	journal, err := c.Store.Journal(c.Session)
	if err != nil {
		return nil, fmt.Errorf("cannot record the terminal: %w", err)
	}
	t := &Terminal{
		Config: c, journal: journal,
		output: make(chan []byte, 1), input: make(chan []byte, inputs), calls: make(chan func()), begun: make(chan begun, 64),
		stop: make(chan struct{}), done: make(chan struct{}), eof: make(chan struct{}),
		room:   make(chan struct{}, 1),
		screen: screen.New(c.Cols, c.Rows), views: make(map[*viewer]bool), followers: make(map[*follower]bool),
	}
	if c.GoesOn {
		if err := t.goOn(); err != nil {
			return nil, errors.Join(fmt.Errorf("cannot go on with the terminal's record: %w", err), journal.Close())
		}
	}
	t.screen.OnReply(func(p []byte) {
		// The agent asked its terminal something. An agent that asks
		// without ever reading the answers must not block its own output.
		select {
		case t.input <- append([]byte(nil), p...):
		default:
		}
	})
	t.wg.Add(3)
	go t.read()
	go t.write()
	go t.own()
	return t, nil
}

// reset makes a terminal new again, whatever an earlier agent left it as, and takes
// its scrollback away.
const reset = "\x1bc\x1b[3J"

// goOn makes the record go on with a terminal that is new, and finds out how much
// of it there is.
func (t *Terminal) goOn() error {
	err := t.keep()
	if err == nil {
		err = t.journal.Resize(t.Cols, t.Rows)
	}
	if err == nil {
		err = t.journal.Output([]byte(reset))
	}
	if err != nil {
		return err
	}
	for f, err := range t.Store.ReadJournal(t.Session) {
		if err != nil {
			break // it is damaged, which who reads it is told; the session's files aren't
		}
		if f.Kind == store.FrameOutput {
			t.before += int64(len(f.Data))
		}
	}
	t.total = t.before
	return nil
}

// Before is how many bytes of the record are from before this agent.
func (t *Terminal) Before() int64 { return t.before }

// Ended is closed when the agent's last byte is in the record.
func (t *Terminal) Ended() <-chan struct{} { return t.eof }

// read takes what the agent prints until the PTY closes.
func (t *Terminal) read() {
	defer t.wg.Done()
	defer close(t.output)
	for {
		buf := make([]byte, 32<<10)
		n, err := t.PTY.Read(buf)
		if n > 0 {
			t.taken.Add(int64(n))
			select {
			case t.output <- buf[:n]:
			case <-t.stop:
				return
			}
		}
		if err != nil {
			// EIO is how a PTY says that its other end closed (pty(7)).
			return
		}
	}
}

// write hands input to the agent, in order.
func (t *Terminal) write() {
	defer t.wg.Done()
	for {
		select {
		case p := <-t.input:
			if _, err := t.PTY.Write(p); err != nil && !errors.Is(err, syscall.EAGAIN) {
				return
			}
		case <-t.stop:
			return
		}
	}
}

// own is the owner: it orders output, resizes and viewers. It goes on until it
// is stopped, also when nothing can be recorded any more: what the agent still
// prints is thrown away then, so that its end isn't held up.
func (t *Terminal) own() {
	defer t.wg.Done()
	defer close(t.done)
	output := t.output
	late := time.NewTimer(grace)
	defer late.Stop()
	waits := false // for a viewer
	read := int64(0)
	flush := time.NewTimer(0)
	defer flush.Stop()
	for {
		in := output
		switch crowded := t.crowded(); {
		case !crowded:
			waits = false
		case !waits:
			waits = true
			late.Reset(grace)
		}
		if waits || t.behind() {
			in = nil
		}
		select {
		case <-t.room:
		case <-late.C:
			if waits {
				t.skip()
			}
		case p, ok := <-in:
			switch {
			case !ok:
				output = nil
				t.finish()
			case !t.over:
				for len(p) > 0 {
					n := t.upTo(read, len(p))
					t.show(t.Mask.Write(p[:n]))
					read, p = read+int64(n), p[n:]
				}
				t.due(read)
				if n := t.Mask.Held(); n > 0 {
					flush.Reset(holdBack(n))
				}
			}
		case <-flush.C:
			t.show(t.Mask.Flush())
		case f := <-t.calls:
			f()
		case b := <-t.begun:
			t.waiting = append(t.waiting, b)
			t.due(read)
		case <-t.stop:
			t.finish()
			return
		}
	}
}

// holdBack is for how long bytes wait that may be the beginning of a secret: a few of
// them are anybody's who types, and nobody is to feel that.
func holdBack(held int) time.Duration {
	if held < secretLike {
		return 10 * time.Millisecond
	}
	return 500 * time.Millisecond
}

// finish shows what is held back, and ends.
func (t *Terminal) finish() {
	t.show(t.Mask.Flush())
	t.due(math.MaxInt64)
	t.end()
}

// A file of the record begins with the screen as it is by then, so that who seeks in
// it reads one file. Of the scrollback it has the end: as many lines as terminals have
// rows, and no more bytes than a quarter of what the file holds beside.
const (
	keyLines = 500
	keySmall = 256 << 10
)

// keep begins a file of the record with a keyframe, if the next frame would begin one.
// What was recorded is on the screen by then, and nothing else.
func (t *Terminal) keep() error {
	if !t.journal.Fresh() {
		return nil
	}
	cols, rows := t.screen.Size()
	return t.journal.Keyframe(cols, rows, t.screen.KeyframeWithin(keyLines, keySmall))
}

// show records what the agent printed and hands it to those who watch.
func (t *Terminal) show(p []byte) {
	if len(p) == 0 || t.over {
		return
	}
	if err := errors.Join(t.keep(), t.journal.Output(p)); err != nil {
		t.broken(err)
		return
	}
	t.total += int64(len(p))
	_, _ = t.screen.Write(p) // never fails: hostile bytes are its business
	for v := range t.views {
		v.push(api.Frame{Kind: api.FrameOutput, Data: p})
	}
	for f := range t.followers {
		f.push(p)
	}
}

// broken ends the terminal when it can't be recorded any more.
func (t *Terminal) broken(err error) {
	if !t.over {
		t.end()
		t.Failed(err)
	}
}

// end tells everyone that nothing more comes.
func (t *Terminal) end() {
	if t.over {
		return
	}
	t.over = true
	close(t.eof)
	for v := range t.views {
		v.end()
	}
	for f := range t.followers {
		f.end()
	}
	clear(t.views)
	clear(t.followers)
}

// do runs f in the owner and waits; false when the terminal is closed.
func (t *Terminal) do(f func()) bool {
	ran := make(chan struct{})
	select {
	case t.calls <- func() { f(); close(ran) }:
		<-ran
		return true
	case <-t.done:
		return false
	}
}

// setSize resizes the agent's terminal, in the owner; the resize is recorded between the
// bytes around it.
func (t *Terminal) setSize(cols, rows int) {
	cols, rows = min(max(cols, 2), 1000), min(max(rows, 1), 1000)
	if cols == t.Cols && rows == t.Rows {
		return
	}
	t.Cols, t.Rows = cols, rows
	if t.over {
		return
	}
	if err := errors.Join(t.keep(), t.journal.Resize(cols, rows)); err != nil {
		t.broken(err)
		return
	}
	t.screen.Resize(cols, rows)
	for v := range t.views {
		v.push(api.Frame{Kind: api.FrameResize, Cols: cols, Rows: rows})
	}
	_ = pty.Setsize(t.PTY, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)}) // the agent is gone: nobody to tell
}

// send queues input for the agent; it blocks while the queue is full.
func (t *Terminal) send(p []byte) {
	select {
	case t.input <- p:
	case <-t.stop:
	case <-t.done:
	}
}

// wake tells who waits for ready or room, which hold one, to look again.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// crowded says whether a viewer has more than enough to read.
func (t *Terminal) crowded() bool {
	for v := range t.views {
		if v.waiting() > window && !t.hurried {
			return true
		}
	}
	return false
}

// skip has the viewers that don't read go on with a keyframe later.
func (t *Terminal) skip() {
	for v := range t.views {
		if v.waiting() > window {
			v.skip()
		}
	}
}

// behind says whether a follower has more than enough to read.
func (t *Terminal) behind() bool {
	if t.hurried {
		return false
	}
	for f := range t.followers {
		if t.total-f.read() > backlog {
			return true
		}
	}
	return false
}

// Hurry reads on whatever those who watch do: what the agent left unread in the
// PTY is lost soon. Those who are behind find it in the record.
func (t *Terminal) Hurry() { t.do(func() { t.hurried = true }) }

func (t *Terminal) keyframe() api.Frame {
	return api.Frame{Kind: api.FrameKeyframe, Cols: t.Cols, Rows: t.Rows, Data: t.screen.Keyframe()}
}

// Last is the screen as it is now, as a keyframe.
func (t *Terminal) Last() api.Frame {
	var f api.Frame
	t.do(func() { f = t.keyframe() })
	return f
}

// Text is the screen as it is now, as rows of plain text.
func (t *Terminal) Text() (rows []string) {
	t.do(func() { rows = t.screen.Text() })
	return rows
}

// Printed is how much the agent has printed.
func (t *Terminal) Printed() (n int64) {
	t.do(func() { n = t.total })
	return n
}

// Close ends the goroutines; the PTY must have been closed or be at its end.
func (t *Terminal) Close() {
	close(t.stop)
	t.PTY.Close()
	t.wg.Wait()
	if err := t.journal.Close(); err != nil {
		t.Failed(err) // again, perhaps: the first one counts
	}
}
