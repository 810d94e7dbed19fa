package screen

import (
	"cmp"
	"image/color"

	uv "github.com/charmbracelet/ultraviolet"
)

// Cursor is where the cursor is and how it looks, while a synchronized frame is
// being built as it was before. Hidden says that the guest hid it.
func (s *Screen) Cursor() uv.Cursor {
	if s.frozen() {
		return s.frame.cursor
	}
	return s.liveCursor()
}

func (s *Screen) liveCursor() uv.Cursor {
	shape := uv.CursorBlock
	switch s.modes.shape {
	case 3, 4:
		shape = uv.CursorUnderline
	case 5, 6:
		shape = uv.CursorBar
	}
	return uv.Cursor{
		Position: uv.Pos(s.cursor.x, s.cursor.y),
		Color:    s.colors[2],
		Shape:    shape,
		Blink:    s.modes.blink,
		Hidden:   s.modes.hidden,
	}
}

// Draw draws the screen into an area of dst, clipped to both, as it was that
// many lines back. What of the area the screen doesn't fill becomes blank. It
// changes nothing and costs the area's cells.
func (s *Screen) Draw(dst uv.Screen, area uv.Rectangle, scrollback int) {
	p := &painter{dst: dst, area: area, clip: area.Intersect(dst.Bounds()), colors: s.colors, reverse: s.modes.reverse}
	if p.clip.Empty() {
		return
	}
	frozen := s.frozen()
	top := s.history.total
	if frozen {
		top = s.frame.top
	}
	first := s.history.total - s.history.len()
	at := max(top-max(scrollback, 0), min(first, top))
	for y := p.clip.Min.Y; y < p.clip.Max.Y; y++ {
		p.y, p.x = y, area.Min.X
		n := at + y - area.Min.Y
		switch r := n - top; {
		case r >= s.rows:
			p.colors, p.reverse = [3]color.Color{}, false // outside the guest's screen
		case r >= 0 && frozen:
			s.frame.lines[r].each(p.cell)
			p.fill(area.Min.X + s.cols)
		case r >= 0:
			l := &s.page.grid.lines[r]
			for x := 0; x < l.used; x++ {
				if c := &l.cells[x]; c.width > 0 {
					p.cell(x, c)
				}
			}
			p.fill(area.Min.X + s.cols)
		case n >= first:
			s.history.line(n - first).each(func(x int, c *cell) {
				if x+int(c.width) <= s.cols {
					p.cell(x, c)
				}
			})
			p.fill(area.Min.X + s.cols)
		}
		colors, reverse := p.colors, p.reverse
		p.colors, p.reverse = [3]color.Color{}, false // beyond the guest's screen
		p.fill(area.Max.X)
		p.colors, p.reverse = colors, reverse
	}
}

// painter puts cells into the drawn area, from left to right.
type painter struct {
	dst        uv.Screen
	area, clip uv.Rectangle
	colors     [3]color.Color
	reverse    bool
	x, y       int // the next column not yet painted, in dst
	out        uv.Cell
}

// cell paints a character at column x of the area.
func (p *painter) cell(x int, c *cell) {
	x += p.area.Min.X
	p.fill(x)
	p.x = x + int(c.width)
	if x < p.clip.Min.X || x >= p.clip.Max.X {
		return
	}
	p.out = uv.Cell{Content: c.text, Width: int(c.width)}
	if c.pen != nil {
		p.out.Style, p.out.Link = c.pen.style, c.pen.link
	}
	if p.x > p.clip.Max.X {
		p.out.Empty() // half of a wide character lies outside
	}
	p.look(&p.out.Style)
	p.dst.SetCell(x, p.y, &p.out)
}

// fill blanks up to a column.
func (p *painter) fill(to int) {
	if p.x < to {
		p.out = uv.EmptyCell
		p.look(&p.out.Style)
		for x := max(p.x, p.clip.Min.X); x < min(to, p.clip.Max.X); x++ {
			p.dst.SetCell(x, p.y, &p.out)
		}
		p.x = to
	}
}

// look applies what the guest set for the whole screen.
func (p *painter) look(v *uv.Style) {
	v.Fg = cmp.Or(v.Fg, p.colors[0])
	v.Bg = cmp.Or(v.Bg, p.colors[1])
	if p.reverse {
		v.Attrs ^= uv.AttrReverse
	}
}
