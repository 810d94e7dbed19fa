package session

import (
	"cmp"
	"errors"
	"iter"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"stepbox/session/api"
	"stepbox/session/screen"
	"stepbox/store"
)

// terminal is the session's side of the agent's PTY. One goroutine reads it,
// one owns the emulator, the record and the viewers, one writes to the agent.
// Every byte is in the record before a viewer gets it. The PTY's own
// back-pressure slows an agent that prints faster than this. A viewer that reads
// too slowly loses no state: its backlog is replaced by a keyframe. A follower
// gets every byte from the first one on and slows the agent instead, as the
// reader of a pipe does; see follower.
type terminal struct {
	pty      *os.File
	resize   func(cols, rows int) error
	journal  *store.Journal
	recorded func() iter.Seq2[store.Frame, error] // what the journal holds
	failed   func(error)                          // told once, when bytes can't be recorded

	output chan []byte    // one read in flight: reading stops while it is full
	input  chan []byte    // to the agent, in order; full: the viewer that types waits
	calls  chan func()    // run by the owner
	stop   chan struct{}  // closed by close
	done   chan struct{}  // closed when the owner has stopped
	eof    chan struct{}  // closed when the agent's last byte is in the record
	room   chan struct{}  // holds one: a follower has caught up
	wg     sync.WaitGroup // the three goroutines

	// Below: owned by the owner, and everyone's to read once it has stopped.
	screen     *screen.Screen
	views      map[*viewer]bool
	followers  map[*follower]bool
	cols, rows int
	total      int64 // bytes recorded
	hurried    bool  // followers don't slow the agent any more
	over       bool  // nothing more is recorded
}

// backlog is how many bytes a viewer may lag behind before a keyframe replaces them.
const backlog = 1 << 20

// inputs bounds the keystrokes on their way to an agent that doesn't read.
const inputs = 256

func newTerminal(pty *os.File, cols, rows int, j *store.Journal, recorded func() iter.Seq2[store.Frame, error], resize func(int, int) error, failed func(error)) *terminal {
	t := &terminal{
		pty: pty, resize: resize, journal: j, recorded: recorded, failed: failed,
		output: make(chan []byte, 1), input: make(chan []byte, inputs), calls: make(chan func()),
		stop: make(chan struct{}), done: make(chan struct{}), eof: make(chan struct{}),
		room:   make(chan struct{}, 1),
		screen: screen.New(cols, rows), views: make(map[*viewer]bool), followers: make(map[*follower]bool), cols: cols, rows: rows,
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
	return t
}

// silence turns off the echo of a PTY, given by its master.
func silence(pty *os.File) error {
	raw, err := pty.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		t, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
		if err == nil {
			t.Lflag &^= unix.ECHO
			err = unix.IoctlSetTermios(int(fd), unix.TCSETS, t)
		}
		failed = err
	})
	return cmp.Or(err, failed)
}

// read takes what the agent prints until the PTY closes.
func (t *terminal) read() {
	defer t.wg.Done()
	defer close(t.output)
	for {
		buf := make([]byte, 32<<10)
		n, err := t.pty.Read(buf)
		if n > 0 {
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
func (t *terminal) write() {
	defer t.wg.Done()
	for {
		select {
		case p := <-t.input:
			if _, err := t.pty.Write(p); err != nil && !errors.Is(err, syscall.EAGAIN) {
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
func (t *terminal) own() {
	defer t.wg.Done()
	defer close(t.done)
	output := t.output
	for {
		in := output
		if t.behind() {
			in = nil
		}
		select {
		case <-t.room:
		case p, ok := <-in:
			switch {
			case !ok:
				output = nil
				t.end()
			case !t.over:
				t.show(p)
			}
		case f := <-t.calls:
			f()
		case <-t.stop:
			t.end()
			t.screen.Close()
			return
		}
	}
}

// show records what the agent printed and hands it to those who watch.
func (t *terminal) show(p []byte) {
	if err := t.journal.Output(p); err != nil {
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
func (t *terminal) broken(err error) {
	if !t.over {
		t.end()
		t.failed(err)
	}
}

// end tells everyone that nothing more comes.
func (t *terminal) end() {
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
func (t *terminal) do(f func()) bool {
	ran := make(chan struct{})
	select {
	case t.calls <- func() { f(); close(ran) }:
		<-ran
		return true
	case <-t.done:
		return false
	}
}

// setSize resizes the agent's terminal; the resize is recorded between the bytes around it.
func (t *terminal) setSize(cols, rows int) {
	cols, rows = min(max(cols, 2), 1000), min(max(rows, 1), 1000)
	t.do(func() {
		if cols == t.cols && rows == t.rows {
			return
		}
		t.cols, t.rows = cols, rows
		if t.over {
			return
		}
		if err := t.journal.Resize(cols, rows); err != nil {
			t.broken(err)
			return
		}
		t.screen.Resize(cols, rows)
		for v := range t.views {
			v.push(api.Frame{Kind: api.FrameResize, Cols: cols, Rows: rows})
		}
		_ = t.resize(cols, rows) // the agent is gone: nobody to tell
	})
}

// send queues input for the agent; it blocks while the queue is full.
func (t *terminal) send(p []byte) {
	select {
	case t.input <- p:
	case <-t.stop:
	case <-t.done:
	}
}

// join adds a viewer; its first frame is a keyframe.
func (t *terminal) join() *viewer {
	v := &viewer{ready: make(chan struct{}, 1)}
	v.renew = func() {
		if !t.do(func() { v.reset(t.keyframe()) }) {
			v.end()
		}
	}
	if !t.do(func() {
		v.reset(t.keyframe())
		if t.over {
			v.end()
			return
		}
		t.views[v] = true
	}) {
		v.end()
	}
	return v
}

// behind says whether a follower has more than enough to read.
func (t *terminal) behind() bool {
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

// hurry reads on whatever the followers do: what the agent left unread in the
// PTY is lost soon. Those who are behind find it in the record.
func (t *terminal) hurry() { t.do(func() { t.hurried = true }) }

func (t *terminal) leave(v *viewer) {
	t.do(func() { delete(t.views, v) })
}

func (t *terminal) keyframe() api.Frame {
	return api.Frame{Kind: api.FrameKeyframe, Cols: t.cols, Rows: t.rows, Data: t.screen.Keyframe()}
}

// size is a terminal's, in cells.
type size struct{ cols, rows int }

// last is the screen as it is now, for the record.
func (t *terminal) last() ([]byte, size) {
	var f api.Frame
	t.do(func() { f = t.keyframe() })
	return f.Data, size{f.Cols, f.Rows}
}

// close ends the goroutines; the PTY must have been closed or be at its end.
func (t *terminal) close() {
	close(t.stop)
	t.pty.Close()
	t.wg.Wait()
	if err := t.journal.Close(); err != nil {
		t.failed(err) // again, perhaps: the first one counts
	}
}
