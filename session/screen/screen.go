// Package screen is the terminal that an agent sees: it reads the bytes that
// the agent prints, keeps the screen they make, answers the agent's questions,
// encodes the person's keys and mouse, and draws.
//
// The bytes are hostile. The scanner keeps bounded buffers and passes on whole
// instructions only, each of which does a bounded amount of work; numbers are
// clamped where they are read. A fault is caught as the last resort, shown on
// the screen, and leaves an empty screen that works. What would reach the
// person's own terminal (title, links, clipboard, notifications) is filtered
// and bounded here, and the pane decides.
//
// The state after some bytes depends on the bytes and the resizes between them,
// not on how they were cut into writes. [Screen.Keyframe] gives bytes that
// bring a fresh Screen to the same state, also in the middle of a sequence.
//
// It is its own emulator: those there are keep what a keyframe needs to
// themselves (pen, margins, tab stops, saved cursors, the screen behind the
// alternate one), and the closest, x/vt, fails on what vt_test.go lists. What
// can be compared is compared, with it and with tmux.
//
// A Screen isn't safe for concurrent use: its owner serialises all calls.
// Callbacks run inside Write on the caller's goroutine, must not block and must
// not call back into the Screen.
package screen

import (
	"image/color"
	"time"

	uv "github.com/charmbracelet/ultraviolet"
)

const (
	// maxSize bounds columns and rows; what is asked beyond is clamped.
	maxSize = 1000
	// The scrollback's bounds: rows as they are printed, rows that these may take
	// on a narrower screen, and bytes.
	historyRows  = 2000
	mostRows     = 8 * historyRows
	historyBytes = 8 << 20
)

// Screen is one emulated terminal. Make it with [New].
type Screen struct {
	cols, rows int
	main, alt  *page // alt is nil until the guest first asks for it
	page       *page // the one shown
	history    history
	pens       pens
	inks       inks

	cursor   cursor
	margins  margins
	modes    modes
	tabs     []bool // one per column
	charsets charsets
	colors   [3]color.Color // foreground, background, cursor as the guest set them; nil: the defaults
	joint    joint
	repeat   string // what REP prints: the last printed cluster
	recent   [1024]runeClass

	scan    scanner
	replyb  []byte       // answers of the running Write
	answer  func([]byte) // OnReply's, or nil
	signals *signals     // OnSignal's, or nil
	title   title
	faults  int

	frame frame // synchronized output
	now   func() time.Time

	pin  int    // the number of the row that keeps it when lines are wrapped anew, if that isn't at the screen's top
	work uint64 // cells written or moved; tests bound it by the bytes that caused it
	trip func() // tests only: runs before each instruction
}

// page is the main or the alternate screen.
type page struct {
	grid  *grid
	saved saved // DECSC, one per page as in xterm
	keys  keys  // likewise, as kitty has it
}

// margins is the scroll region; bottom and right are exclusive.
type margins struct{ top, bottom, left, right int }

// New makes an empty terminal. Sizes are clamped to 1 to 1000.
func New(cols, rows int) *Screen {
	s := &Screen{
		cols: clamp(cols, 1, maxSize), rows: clamp(rows, 1, maxSize),
		now: time.Now,
	}
	s.history = newHistory()
	s.main = &page{grid: newGrid(s.cols, s.rows, &s.work)}
	s.page = s.main
	s.reset()
	return s
}

// reset is what RIS does: everything but the size, the scrollback, the counters
// and the callbacks.
func (s *Screen) reset() {
	s.page = s.main
	s.main.grid.clear()
	s.main.saved, s.main.keys = saved{}, keys{}
	if s.alt != nil {
		s.alt.grid.clear()
		s.alt.saved, s.alt.keys = saved{}, keys{}
	}
	s.cursor = cursor{}
	s.inks = inks{}
	s.margins = s.fullMargins()
	s.modes = defaultModes()
	s.tabs = defaultTabs(s.cols)
	s.charsets = charsets{}
	s.colors = [3]color.Color{}
	s.joint = joint{}
	s.repeat = ""
	s.title.clear()
	s.frame.held = false
}

// Write reads what the guest printed. It never fails and keeps nothing of p.
func (s *Screen) Write(p []byte) (int, error) {
	n := len(p)
	if n == 0 {
		return 0, nil
	}
	for len(p) > 0 {
		p = s.guarded(p)
	}
	s.flushReplies()
	return n, nil
}

// Size is the terminal's size in cells.
func (s *Screen) Size() (cols, rows int) { return s.cols, s.rows }

// keep copies the main page's first n rows into the scrollback.
func (s *Screen) keep(n int) {
	for y := range n {
		s.history.push(func(l *line) { s.main.grid.save(y, l) })
	}
}

// ScrollbackLen is how many lines have been kept above the screen.
func (s *Screen) ScrollbackLen() int { return s.history.len() }

// AltScreen says whether the alternate screen is shown.
func (s *Screen) AltScreen() bool { return s.page != s.main }

// MouseMode is which mouse events the guest wants.
func (s *Screen) MouseMode() uv.MouseMode { return s.modes.mouse }

// BracketedPaste, FocusEvents and AlternateScroll say whether the guest set
// modes 2004, 1004 and 1007.
func (s *Screen) BracketedPaste() bool  { return s.modes.paste }
func (s *Screen) FocusEvents() bool     { return s.modes.focus }
func (s *Screen) AlternateScroll() bool { return s.modes.altScroll }

func (s *Screen) fullMargins() margins { return margins{bottom: s.rows, right: s.cols} }

func clamp(v, low, high int) int { return max(low, min(v, high)) }
