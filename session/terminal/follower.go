package terminal

import (
	"fmt"
	"io"
	"iter"
	"sync"

	"stepbox/session/api"
	"stepbox/store"
)

// follower is a reader of all that the agent prints. It reads the terminal's
// record until it has caught up, and is handed what comes then. While it is far
// behind, the agent's output waits. Once the agent has ended nothing waits: what
// the follower hasn't read by then it reads from the record, which needs no
// terminal.
//
// One goroutine may call next.
type follower struct {
	t     *Terminal
	ready chan struct{} // holds one: there is output, or the end

	replay func() (store.Frame, error, bool) // owned by next; nil when there is none
	stop   func()                            // ends replay
	skip   int64                             // owned by next; bytes of replay that were read before
	last   bool                              // owned by next; replay began when the record was complete

	mu     sync.Mutex
	at     int64    // guarded by mu; bytes that were read
	output [][]byte // guarded by mu; what comes after that, if the follower is live
	size   int      // guarded by mu; bytes of it
	live   bool     // guarded by mu; it is handed what comes
	ended  bool     // guarded by mu; nothing more comes
}

// follow adds a follower.
func (t *Terminal) follow() *follower {
	f := &follower{t: t, ready: make(chan struct{}, 1)}
	t.do(func() {
		if !t.over {
			t.followers[f] = true
		}
	})
	return f
}

// leave takes a follower away; nothing waits for it any more.
func (f *follower) leave() {
	f.t.do(func() { delete(f.t.followers, f) })
	f.rewind()
}

// read is how far the reader is.
func (f *follower) read() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at
}

// push hands over output. Only the terminal's owner calls it.
func (f *follower) push(p []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.live {
		return
	}
	f.output = append(f.output, p)
	if f.size += len(p); f.size > 2*backlog { // nobody waits for it: see Hurry
		f.output, f.size, f.live = nil, 0, false
	}
	wake(f.ready)
}

func (f *follower) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	wake(f.ready)
}

// next waits for output. io.EOF says that there is no more, or that stop is
// closed.
func (f *follower) next(stop <-chan struct{}) ([]api.Frame, error) {
	for {
		p, live, ended := f.take()
		switch {
		case len(p) > 0:
			return frames(p), nil
		case !live:
			p, err := f.recorded()
			if err != nil {
				return nil, err
			}
			if p != nil {
				return frames([][]byte{p}), nil
			}
			continue
		case ended:
			return nil, io.EOF
		}
		select {
		case <-f.ready:
		case <-stop:
			return nil, io.EOF
		}
	}
}

// take is what was handed over.
func (f *follower) take() (p [][]byte, live, ended bool) {
	f.mu.Lock()
	p, live, ended = f.output, f.live, f.ended
	f.at += int64(f.size)
	f.output, f.size = nil, 0
	f.mu.Unlock()
	if len(p) > 0 {
		wake(f.t.room)
	}
	return p, live, ended
}

// recorded is the next output from the record; nil when it has been read to its
// end, and the follower may be live by then.
func (f *follower) recorded() ([]byte, error) {
	if f.replay == nil {
		f.replay, f.stop = iter.Pull2(f.t.Store.ReadJournal(f.t.Session))
		f.skip = f.read()
		select {
		case <-f.t.done:
			f.last = true
		default:
		}
	}
	for {
		frame, err, ok := f.replay()
		if err != nil {
			f.rewind()
			return nil, fmt.Errorf("cannot read the terminal's record: %w", err)
		}
		if !ok {
			f.rewind()
			return nil, f.join()
		}
		if frame.Kind != store.FrameOutput {
			continue
		}
		p := frame.Data
		if n := min(f.skip, int64(len(p))); n > 0 {
			f.skip -= n
			p = p[n:]
		}
		if len(p) == 0 {
			continue
		}
		p = append([]byte(nil), p...) // the record's are gone with the next frame
		f.mu.Lock()
		f.at += int64(len(p))
		f.mu.Unlock()
		wake(f.t.room)
		return p, nil
	}
}

// join makes the follower live if it has read all that is recorded.
func (f *follower) join() error {
	check := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.live = f.at >= f.t.total; f.live {
			f.ended = f.t.over
		}
	}
	if f.t.do(check) {
		return nil
	}
	check()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	if f.last && !f.live {
		return fmt.Errorf("cannot read the terminal's record: it has %d bytes of %d: %w", f.at, f.t.total, io.ErrUnexpectedEOF)
	}
	return nil
}

// rewind gives up the place in the record.
func (f *follower) rewind() {
	if f.stop != nil {
		f.stop()
	}
	f.replay, f.stop = nil, nil
}

func frames(output [][]byte) []api.Frame {
	out := make([]api.Frame, len(output))
	for i, p := range output {
		out[i] = api.Frame{Kind: api.FrameOutput, Data: p}
	}
	return out
}
