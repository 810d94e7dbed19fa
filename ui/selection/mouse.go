package selection

import (
	"time"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/themes"
	"stepbox/ui/paint"
)

// clickAgain is the time within which a click goes on the one before.
const clickAgain = 400 * time.Millisecond

// Mouse is what the mouse selects in one region of the screen. It is read from what was
// drawn, so that what is copied is what was seen.
type Mouse struct {
	Held   bool        // the button is down
	Some   bool        // something is selected
	Clicks int         // how often it went down at one point, from 1 to 3
	From   uv.Position // that point, on the screen
	At     uv.Position // where the mouse is
	Mode   Mode        // how text is selected while the mouse is pulled
	Is     Range

	in    func() Region
	rows  map[int]Row // of the region that were in view by now
	drawn uv.Screen   // the last frame
	last  time.Time
}

// Press takes that the button went down.
func (m *Mouse) Press(at uv.Position, now time.Time) {
	clicks := 1
	if at == m.From && now.Sub(m.last) < clickAgain {
		clicks = m.Clicks%3 + 1
	}
	*m = Mouse{Clicks: clicks, From: at, At: at, drawn: m.drawn, last: now}
}

// Begin begins to select where the button went down: a word where it did so twice, and a
// line at the third time. The region may scroll meanwhile.
func (m *Mouse) Begin(in func() Region) {
	m.Held, m.in, m.rows = true, in, map[int]Row{}
	m.read()
	r := in()
	at := r.At(m.From.X, m.From.Y)
	m.Some = m.Clicks > 1
	switch m.Clicks {
	case 1:
		m.Is = Range{Mode: m.Mode, Anchor: at, Head: at}
	case 2:
		from, to := Word(m.rows[at.Y], at.X)
		m.Is = Range{Anchor: uv.Pos(from, at.Y), Head: uv.Pos(to-1, at.Y)}
	case 3:
		first, last := Whole(m.row, at.Y, r.Top+r.Area.Dy())
		m.Is = Range{Mode: Lines, Anchor: uv.Pos(0, first), Head: uv.Pos(0, last)}
	}
}

// Moved takes where the mouse is, and says whether it was pulled there.
func (m *Mouse) Moved(at uv.Position) bool {
	was := m.At
	m.At = at
	return m.Held && at != was
}

// Pull selects up to where the mouse is.
func (m *Mouse) Pull() {
	m.Some, m.Is.Mode, m.Is.Head = true, m.Mode, m.in().At(m.At.X, m.At.Y)
}

// Drop selects nothing.
func (m *Mouse) Drop() { m.Held, m.Some = false, false }

// Text is what is selected.
func (m *Mouse) Text() string { return m.Is.Text(m.row) }

func (m *Mouse) row(n int) Row { return m.rows[n] }

func (m *Mouse) read() {
	if m.drawn != nil {
		m.in().Read(m.drawn, m.rows)
	}
}

// Draw keeps a frame that has been drawn, and shows in it what is selected.
func (m *Mouse) Draw(dst uv.Screen, p *paint.Palette) {
	m.drawn = dst
	if !m.Held || m.in == nil {
		return
	}
	m.read()
	if !m.Some {
		return
	}
	r := m.in()
	for i := range r.Area.Dy() {
		from, to := m.Is.In(r.Top+i, m.rows[r.Top+i])
		paint.Dim(dst, uv.Rect(r.Area.Min.X+from, r.Area.Min.Y+i, to-from, 1), p.S(themes.Selected))
	}
}
