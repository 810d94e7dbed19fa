package terminal

import (
	"io"
	"sync"

	"stepbox/session/api"
)

// viewer is one reader of the terminal.
type viewer struct {
	ready chan struct{} // holds one: there are frames, or the end
	t     *Terminal

	mu      sync.Mutex
	frames  []api.Frame // guarded by mu
	size    int         // guarded by mu; bytes in frames
	lagging bool        // guarded by mu; frames were dropped, a keyframe must come first
	ended   bool        // guarded by mu
}

// join adds a viewer; its first frame is a keyframe.
func (t *Terminal) join() *viewer {
	v := &viewer{t: t, ready: make(chan struct{}, 1)}
	v.with(func() {
		if t.over {
			v.end()
		} else {
			t.views[v] = true
		}
	})
	return v
}

// with gives the viewer the screen as it is now and then runs f, both in the
// owner; at the terminal's end it is over for the viewer.
func (v *viewer) with(f func()) {
	if !v.t.do(func() { v.reset(v.t.keyframe(), v.t.marked()); f() }) {
		v.end()
	}
}

// leave takes the viewer away.
func (v *viewer) leave() { v.t.do(func() { delete(v.t.views, v) }) }

func (v *viewer) push(f api.Frame) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.lagging || v.ended {
		return
	}
	v.frames = append(v.frames, f)
	if v.size += len(f.Data); v.size > backlog { // at the agent's end, when nobody waits
		v.frames, v.size, v.lagging = nil, 0, true
	}
	wake(v.ready)
}

// waiting is how many bytes are there to be read.
func (v *viewer) waiting() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.size
}

// skip drops what wasn't read.
func (v *viewer) skip() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.frames, v.size, v.lagging = nil, 0, true
	wake(v.ready)
}

func (v *viewer) reset(keyframe, marks api.Frame) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.frames, v.size, v.lagging = []api.Frame{keyframe}, 0, false
	if len(marks.Data) > 0 {
		v.frames = append(v.frames, marks)
	}
	wake(v.ready)
}

func (v *viewer) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended, v.lagging = true, false
	wake(v.ready)
}

// next waits for frames. io.EOF says that the terminal closed.
func (v *viewer) next(stop <-chan struct{}) ([]api.Frame, error) {
	for {
		v.mu.Lock()
		frames, lagging, ended := v.frames, v.lagging, v.ended
		v.frames, v.size = nil, 0
		v.mu.Unlock()
		switch {
		case len(frames) > 0:
			wake(v.t.room)
			return frames, nil
		case lagging:
			v.with(func() {})
			continue
		case ended:
			return nil, io.EOF
		}
		select {
		case <-v.ready:
		case <-stop:
			return nil, io.EOF
		}
	}
}
