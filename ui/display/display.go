// Package display shows frames on the person's terminal. It sets the terminal up
// and leaves it as it was, draws when something changed and at most so often, and
// writes what differs from the frame before.
//
// It stands in for Bubble Tea's renderer, which wakes sixty times a second whether
// or not there is anything to draw, and parses its frames from text
// (docs/adr/4-own-display.md).
//
// A Display belongs to the goroutine that updates the interface. A goroutine of its
// own writes, so that a terminal that takes nothing holds up no key. While it
// writes, changes wait and become one frame: frames are skipped, never queued.
package display

import (
	"bytes"
	"io"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"stepbox/ui/config"
)

// Pace. The first change after a pause is drawn at once. Shortly after a key what
// it did follows, often within milliseconds, and is what the person waits for.
const (
	every    = time.Second / 60
	keyEvery = time.Second / 240
	keyTime  = 100 * time.Millisecond
	// most bounds the pause after a frame: one that the machine stood still in, or the
	// program was stopped in, says nothing of how long the next one takes.
	most = time.Second / 4
	// late is how old what is on the terminal may get before keys may have been
	// meant for something else.
	late = 150 * time.Millisecond
)

// Frame is what is to be seen besides cells.
type Frame struct {
	Cursor *tea.Cursor // nil: hidden
	Title  string
	Signal string // bytes that ring or notify, once
}

// Display is a terminal with frames on it.
type Display struct {
	tty
	draw func(dst uv.ScreenBuffer) Frame
	send func(tea.Msg)

	cells  uv.ScreenBuffer
	before uv.ScreenBuffer // the frame before
	placed uv.ScreenBuffer // cells as they are written
	diff   *uv.TerminalRenderer
	text   *bytes.Buffer // what diff writes
	shown  Frame
	synced bool // the terminal shows what is between two marks at once

	colours colorprofile.Profile // what the terminal has; nothing is drawn before it is known

	places map[placed]string // characters in doubt, as they are written
	doubts map[rune]bool     // whether one is

	inScreen bool // within GNU screen, see place
	ascii    bool // which isn't told of UTF-8, and doesn't take it
	console  bool // Linux's own, see place

	changed bool      // since the last frame
	waits   bool      // a message says when the next one is due
	next    time.Time // when it is
	keyed   time.Time // the last key
	began   time.Time // the frame that was drawn last
	writing bool      // and isn't on the terminal yet
	held    time.Time // since when a frame waits for what is on its way; zero: none does
	behind  bool      // it took too long
	pace    pace

	frames chan []byte // one at most: none is drawn while one is written
	taken  sync.Mutex  // held while a frame is written, and while another program has the terminal
	tasks  sync.WaitGroup
}

// Messages of a Display to itself: a frame is due, a frame has been written.
type (
	due     struct{}
	written struct{}
)

// Open sets the terminal up and shows what draw draws. send delivers messages to
// Update from other goroutines. Close is the caller's to call.
func Open(in io.Reader, out io.Writer, environ []string, draw func(uv.ScreenBuffer) Frame, send func(tea.Msg)) (*Display, error) {
	d := &Display{draw: draw, send: send, text: &bytes.Buffer{}, frames: make(chan []byte, 1),
		places: make(map[placed]string), doubts: make(map[rune]bool)}
	if err := d.enter(in, out, uv.Environ(environ)); err != nil {
		return nil, err
	}
	_, unicode := config.Language(d.env.Getenv)
	d.inScreen = d.env.Getenv("STY") != ""
	d.ascii = d.inScreen && !unicode
	d.console = d.env.Getenv("TERM") == "linux"
	d.pace.ask(time.Now())
	d.diff = uv.NewTerminalRenderer(d.text, environ)
	d.diff.SetFullscreen(true)
	d.tasks.Go(d.write)
	d.tasks.Go(func() { d.resizes(send) })
	return d, nil
}

// Close leaves the terminal as it was.
func (d *Display) Close() {
	close(d.frames)
	signal.Stop(d.resized)
	close(d.resized)
	d.tasks.Wait()
	d.pace.drop(&d.tty)
	d.leave()
}

// Away leaves the terminal as it was to what f runs on it, and then begins anew. Nothing
// else of the Display may be called meanwhile.
func (d *Display) Away(f func() error) error {
	d.taken.Lock()
	defer d.taken.Unlock()
	d.pace.drop(&d.tty)
	d.leave()
	err := f()
	d.style, d.titled, d.shown = 0, false, Frame{}
	if begun := d.begin(); err == nil {
		err = begun
	}
	d.pace.ask(time.Now())
	d.diff.Erase() // a frame that waited to be written is written over
	d.resize(d.cells.Width(), d.cells.Height())
	d.changed = true
	select {
	case d.resized <- syscall.SIGWINCH: // whoever had the foreground was told of it
	default:
	}
	return err
}

// resize begins with blank cells.
func (d *Display) resize(cols, rows int) {
	d.cells, d.before, d.placed = uv.NewScreenBuffer(cols, rows), uv.NewScreenBuffer(cols, rows), uv.NewScreenBuffer(cols, rows)
}

// write puts frames on the terminal.
func (d *Display) write() {
	for p := range d.frames {
		d.taken.Lock()
		_, _ = d.w.Write(p) // a terminal that is gone ends the program by its input
		d.taken.Unlock()
		d.send(written{})
	}
}

// Late says whether what the person sees is, or just was, older than a blink. It
// is asked before each message, and says so at least once. Unsure: it isn't known to be, but
// the terminal may not have what the line took.
func (d *Display) Late() (is, unsure bool) {
	is = d.behind || d.writing && time.Since(d.began) > late || !d.held.IsZero() && time.Since(d.held) > late
	d.behind = false
	return is, d.pace.silent(time.Now())
}

// Update takes every message before the interface does, and says whether it is
// the display's own.
func (d *Display) Update(msg tea.Msg) (own bool) {
	switch m := msg.(type) {
	case uv.UnknownCsiEvent:
		if m == well {
			d.pace.answered(time.Now())
			return true
		}
	case due:
		d.waits = false
		return true
	case written:
		d.writing = false
		d.behind = time.Since(d.began) > late
		return true
	case tea.WindowSizeMsg:
		if m.Width < 1 || m.Height < 1 {
			return true // the library's, which doesn't know the terminal
		}
		d.resize(m.Width, m.Height)
		d.diff.Erase()
		d.diff.Resize(m.Width, m.Height)
	case tea.ColorProfileMsg:
		if d.colours != m.Profile {
			d.colours = m.Profile
			d.diff.SetColorProfile(m.Profile)
			d.diff.Erase() // what stays the same was written with other colours
		}
	case tea.ModeReportMsg:
		switch m.Mode {
		case ansi.ModeSynchronizedOutput:
			d.synced = m.Value == ansi.ModeReset
		case ansi.ModeUnicodeCore:
			if Clusters(m.Value) {
				d.clusters = true
				d.diff.SetGraphemeWidth(true)
				d.diff.WriteString(ansi.SetModeUnicodeCore)
			}
		}
	case tea.KeyPressMsg:
		d.keyed = time.Now()
	}
	d.changed = true
	return false
}

// Refresh draws a frame if one is due, or sees to it that it will be. It is called
// after each message.
func (d *Display) Refresh() {
	if !d.changed || d.waits || d.writing || d.colours == colorprofile.Unknown || d.cells.RenderBuffer == nil || d.cells.Bounds().Empty() {
		return
	}
	now := time.Now()
	if wait := d.next.Sub(now); wait > 0 {
		d.waits = true
		time.AfterFunc(wait, func() { d.send(due{}) })
		return
	}
	if d.pace.waits(now) {
		if d.held.IsZero() {
			d.held = now
			time.AfterFunc(unheard, func() { d.send(due{}) })
		}
		return
	}
	if !d.held.IsZero() {
		d.behind = d.behind || now.Sub(d.held) > late
		d.held = time.Time{}
	}
	d.changed = false
	p := d.frame()
	if len(p) == 0 {
		return // what comes next is drawn at once
	}
	if d.pace.wrote(len(p), now) {
		p = append(p, areYouWell...)
	}
	d.next = now.Add(until(time.Since(now), now.Sub(d.keyed) < keyTime))
	d.began, d.writing = now, true
	d.frames <- p
}

// until is how long after a frame's beginning the next one is due: at least half of the
// time is for others.
func until(took time.Duration, keyed bool) time.Duration {
	pause := every
	if keyed {
		pause = keyEvery
	}
	return max(pause, took+min(took, most))
}

// frame draws, and returns the bytes that turn the last frame into this one.
func (d *Display) frame() []byte {
	d.cells, d.before = d.before, d.cells
	d.cells.Buffer.Clear()
	f := d.draw(d.cells)
	for y, line := range d.cells.Lines {
		d.placed.Touched[y] = nil
		if !slices.Equal(line, d.before.Line(y)) { // the others need no closer look
			copy(d.placed.Line(y), line) // whoever drew it reads what is selected in it
			d.place(d.placed.Line(y))
			d.placed.TouchLine(0, y, len(line))
		}
	}
	d.diff.Render(d.placed.RenderBuffer)
	if f.Cursor != nil {
		d.diff.MoveTo(f.Cursor.X, f.Cursor.Y)
	}
	_ = d.diff.Flush() // into a buffer
	had := d.shown
	d.shown = f
	d.shown.Signal = ""

	var b bytes.Buffer
	mark := d.synced && d.text.Len() > 0
	if mark {
		b.WriteString(ansi.SetModeSynchronizedOutput)
	}
	if had.Cursor != nil && (f.Cursor == nil || d.text.Len() > 0 && !d.synced) {
		b.WriteString(ansi.ResetModeTextCursorEnable)
		had.Cursor = nil
	}
	b.Write(whole(d.text.Bytes()))
	d.text.Reset()
	if f.Cursor != nil {
		if style := cursorStyle(f.Cursor); style != d.style {
			d.style = style
			b.WriteString(ansi.SetCursorStyle(style))
		}
		if had.Cursor == nil {
			b.WriteString(ansi.SetModeTextCursorEnable)
		}
	}
	if mark {
		b.WriteString(ansi.ResetModeSynchronizedOutput)
	}
	if f.Title != had.Title {
		d.titled = true
		b.WriteString(ansi.SetWindowTitle(f.Title))
	}
	b.WriteString(f.Signal)
	return b.Bytes()
}

func cursorStyle(c *tea.Cursor) int {
	style := 2*int(c.Shape) + 1
	if !c.Blink {
		style++
	}
	return style
}
