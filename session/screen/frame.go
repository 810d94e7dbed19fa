package screen

import (
	"time"

	uv "github.com/charmbracelet/ultraviolet"
)

const (
	// syncLimit is how long a frame being built may hide the screen.
	syncLimit = 150 * time.Millisecond
	// A guest may begin frames as fast as it likes; keeping the picture costs
	// a screen's cells, so that is done so many times at once, and then once
	// per interval. In between the last picture serves on.
	pictureBurst    = 8
	pictureInterval = 4 * time.Millisecond
)

// frame is the last complete picture while the guest builds the next
// (synchronized output, mode 2026). Only drawing looks at it: the screen's
// state doesn't depend on it, nor on the clock.
type frame struct {
	held   bool // lines hold a picture of this size
	since  time.Time
	lines  []line
	cursor uv.Cursor
	top    int    // history.total then
	work   uint64 // the screen's then
	alt    bool

	spent  int // pictures taken of the burst
	refill time.Time
}

// synchronize is mode 2026.
func (s *Screen) synchronize(on bool) {
	if on == s.modes.sync {
		return // beginning again doesn't prolong
	}
	s.modes.sync = on
	if !on {
		return // the picture stays: it serves when frames come too fast
	}
	f := &s.frame
	now := s.now()
	f.since = now
	if n := int(now.Sub(f.refill) / pictureInterval); n > 0 {
		f.spent, f.refill = max(f.spent-n, 0), now
	}
	if f.spent >= pictureBurst && f.held {
		return
	}
	f.spent++
	f.work = s.work // keeping it is some, too
	if len(f.lines) != s.rows {
		f.lines = make([]line, s.rows)
	}
	for y := range f.lines {
		s.page.grid.save(y, &f.lines[y])
	}
	f.cursor = s.liveCursor()
	f.top = s.history.total
	f.alt = s.page != s.main
	f.held = true
}

// At sets the screen's clock, which stands from then on: what is to be seen is what was
// so long after some beginning.
func (s *Screen) At(t time.Duration) {
	s.now = func() time.Time { return time.Unix(0, 0).Add(t) }
}

// Seen says whether all that was printed is to be seen, or a frame is being built, and
// how much was drawn up to what is.
func (s *Screen) Seen() (drawn uint64, whole bool) {
	if s.frozen() {
		return s.frame.work, false
	}
	return s.work, true
}

// Settle lets go of the picture of before a frame that is being built for too long: a
// [Screen.Keyframe] is of what is to be seen then.
func (s *Screen) Settle() { s.frame.held = s.frozen() }

// frozen says that the picture is what is to be seen.
func (s *Screen) frozen() bool {
	f := &s.frame
	return s.modes.sync && f.held && s.now().Sub(f.since) < syncLimit
}
