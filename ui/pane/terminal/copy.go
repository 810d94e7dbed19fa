package terminal

import (
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/themes"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/link"
	"stepbox/ui/paint"
	"stepbox/ui/selection"
)

// Copy is the reading of a terminal that stands still: its scrollback and its screen as they
// were when it began, whatever is printed meanwhile. A cursor moves in it, selects and
// searches. Rows are counted from the oldest.
type Copy struct {
	Light bool // the person only scrolled: it ends with the last row in view
	Marks []link.Mark

	emu           link.Emulator // nobody writes to it
	cols, n, back int           // its columns, all of its rows, those above its screen
	rows          map[int]selection.Row
	cur           uv.Position
	want          int // the column that the cursor goes to where there is one
	top, height   int // first row in view, and how many are
	on            bool
	is            selection.Range // while on

	find  finding
	asked *dialog.Line // what is searched for is being typed
}

// newCopy reads a terminal that nobody else has, in so many rows, of which the first is one
// of its screen's.
func newCopy(still link.Emulator, height, first int) *Copy {
	cols, rows := still.Size()
	back := scrollback(still)
	c := &Copy{emu: still, cols: cols, n: back + rows, back: back, rows: map[int]selection.Row{}, height: max(1, height)}
	at := still.Cursor()
	c.cur = uv.Pos(max(0, min(at.X, cols-1)), max(0, min(back+at.Y, c.n-1)))
	c.want = c.cur.X
	c.top = max(0, back+first)
	return c
}

// row is a row's text.
func (c *Copy) row(n int) selection.Row {
	if r, ok := c.rows[n]; ok {
		return r
	}
	r := selection.Row{}
	if n >= 0 && n < c.n {
		line := uv.NewScreenBuffer(c.cols, 1)
		c.draw(&sieve{Screen: line, area: line.Bounds()}, line.Bounds(), n)
		r = selection.Read(line, line.Bounds(), 0)
		if n > 0 && c.emu.Wrapped(n-1) {
			r = r.Wrapped(c.row(n - 1))
		}
	}
	c.rows[n] = r
	return r
}

// draw draws rows from one on at the top of an area.
func (c *Copy) draw(dst uv.Screen, area uv.Rectangle, first int) {
	back := max(0, c.back-first)
	at := area.Min.Sub(uv.Pos(0, max(0, first-c.back)))
	c.emu.Draw(dst, uv.Rect(at.X, at.Y, c.cols, c.n), back)
}

// show brings the cursor into view.
func (c *Copy) show() {
	c.cur.Y = max(0, min(c.cur.Y, c.n-1))
	c.cur.X = max(0, min(c.cur.X, c.cols-1))
	c.top = max(min(c.top, c.cur.Y), c.cur.Y-c.height+1, 0)
	if c.on {
		c.is.Head = c.cur
	}
}

// Scroll moves the view, and the cursor as far as it has to. It says whether the end is in
// view again.
func (c *Copy) Scroll(rows int) (end bool) {
	last := max(0, c.n-c.height)
	c.top = max(0, min(c.top+rows, last))
	c.cur.Y = max(c.top, min(c.cur.Y, c.top+c.height-1))
	c.show()
	return c.top == last
}

// Asking says whether what is searched for is being typed: keys are letters then.
func (c *Copy) Asking() bool { return c.asked != nil }

// Type takes a key of what is searched for, Paste a text.
func (c *Copy) Type(k tea.KeyPressMsg) { c.asked.Type(k); c.look() }
func (c *Copy) Paste(s string)         { c.asked.Insert(s); c.look() }

// Handle carries out an intent. It says whether that was the last, and what of the text is
// to be copied, and why nothing happened.
func (c *Copy) Handle(i intent.Intent) (text string, over bool, why string) {
	if c.asked != nil {
		return "", false, c.answer(i)
	}
	switch i := i.(type) {
	case intent.Back:
		over = !c.on
		c.on = false
	case intent.Yes:
		if !c.on {
			return "", false, "nothing is selected: v selects characters, V lines, ctrl+v a block"
		}
		return c.Text(), true, ""
	case intent.SelectText:
		c.mark(selection.Mode(i.Mode))
	case intent.OtherEnd:
		if c.on {
			c.is.Anchor, c.cur = c.cur, c.is.Anchor
		}
	case intent.Find:
		line := dialog.NewLine(200)
		c.asked, c.find.back, c.find.from = &line, i.Back, c.cur
	case intent.Hit:
		why = c.next(i.By)
	case intent.ActionStep:
		why = c.toMark(i.By)
	default:
		c.move(i)
	}
	c.show()
	return "", over, why
}

// move carries out the intents that move the cursor.
func (c *Copy) move(i intent.Intent) {
	at := c.cur
	switch i := i.(type) {
	case intent.Move:
		at.Y += i.By
	case intent.Page:
		at.Y += i.By * max(1, c.height-1)
		c.top += i.By * max(1, c.height-1)
	case intent.HalfPage:
		at.Y += i.By * max(1, c.height/2)
		c.top += i.By * max(1, c.height/2)
	case intent.Top:
		at = uv.Position{}
	case intent.Bottom:
		at = uv.Pos(0, c.n-1)
		for at.Y > 0 && c.row(at.Y).End() == 0 && c.row(at.Y).Blanks() == c.cols {
			at.Y--
		}
	case intent.Slide:
		at.X += i.By
	case intent.LineStart:
		at.X = 0
	case intent.LineEnd:
		at.X = c.row(at.Y).End()
	case intent.Word:
		at = c.word(i)
	}
	if at.X != c.cur.X {
		c.want = at.X
	}
	at.Y = max(0, min(at.Y, c.n-1))
	c.top = max(0, min(c.top, c.n-c.height))
	at.X = max(0, min(c.want, c.cols-1))
	for cells := c.row(at.Y).Cells; at.X > 0 && at.X < len(cells) && cells[at.X] == ""; at.X-- {
		if _, right := i.(intent.Slide); right && at.X > c.cur.X { // over the second half of a wide one
			at.X = min(at.X+2, c.cols)
		}
	}
	c.cur = at
}

// word is where the next word begins or ends, or the one before begins.
func (c *Copy) word(i intent.Word) uv.Position {
	at := c.cur
	step := func() (ok bool) {
		if at.X += i.By; at.X < 0 || at.X >= c.cols {
			if at.Y += i.By; at.Y < 0 || at.Y >= c.n {
				return false
			}
			if at.X = 0; i.By < 0 {
				at.X = c.cols - 1
			}
		}
		return true
	}
	kind := func() selection.Kind { return selection.KindOf(c.row(at.Y), at.X) }
	edge := func() bool { // no more of the same word, the way that it goes
		p, was := at, kind()
		ok := step() && kind() == was && (p.Y == at.Y || c.row(max(p.Y, at.Y)).On)
		at = p
		return !ok
	}
	before := c.cur
	if i.By > 0 && !i.End {
		for kind() != selection.Space && !edge() && step() {
		}
	}
	for moved := step(); moved && kind() == selection.Space; moved = step() {
	}
	if i.By < 0 || i.End {
		for at.Y >= 0 && at.Y < c.n && kind() != selection.Space && !edge() && step() {
		}
	}
	if at.Y < 0 || at.Y >= c.n {
		if i.By < 0 {
			return uv.Position{}
		}
		return before
	}
	return at
}

// mark begins to select, changes how, or no longer selects.
func (c *Copy) mark(m selection.Mode) {
	switch {
	case c.on && c.is.Mode == m:
		c.on = false
	case c.on:
		c.is.Mode = m
	default:
		c.on, c.is = true, selection.Range{Mode: m, Anchor: c.cur, Head: c.cur}
	}
}

// Text is what is selected.
func (c *Copy) Text() string {
	is := c.is
	if is.Mode == selection.Lines {
		first, last := is.Rows()
		is.Anchor.Y, _ = selection.Whole(c.row, first, c.n)
		_, is.Head.Y = selection.Whole(c.row, last, c.n)
	}
	return is.Text(c.row)
}

// toMark goes to where the next action began, or the one before.
func (c *Copy) toMark(by int) string {
	at := -1
	for i, m := range c.Marks {
		switch {
		case by > 0 && m.At > c.cur.Y && at < 0, by < 0 && m.At < c.cur.Y:
			at = i
		}
	}
	if at < 0 {
		return "no action began there, as far as the scrollback has it"
	}
	c.ToRow(c.Marks[at].At)
	return ""
}

// ToRow puts the cursor at a row's beginning, and that in the middle of the view where it
// wasn't in view.
func (c *Copy) ToRow(n int) {
	c.cur, c.want = uv.Pos(0, n), 0
	if n < c.top || n >= c.top+c.height {
		c.top = max(0, min(n-c.height/2, c.n-c.height))
	}
	c.show()
}

// At is the row and column at a place of the view, which may be beyond its edges.
func (c *Copy) At(x, y int) uv.Position {
	return uv.Pos(max(0, min(x, c.cols-1)), max(0, min(c.top+y, c.n-1)))
}

// Select selects from one character to another, which the cursor goes to.
func (c *Copy) Select(m selection.Mode, from, to uv.Position) {
	c.on, c.is, c.cur, c.want = true, selection.Range{Mode: m, Anchor: from, Head: to}, to, to.X
}

// Point puts the cursor at a place.
func (c *Copy) Point(at uv.Position) { c.on, c.cur, c.want = false, at, at.X }

// Deselect selects nothing, and Range is what is selected.
func (c *Copy) Deselect()              { c.on = false }
func (c *Copy) Range() selection.Range { return c.is }

// SelectAt selects the word at a place, or with line the whole line.
func (c *Copy) SelectAt(at uv.Position, line bool) {
	if line {
		first, last := selection.Whole(c.row, at.Y, c.n)
		c.Select(selection.Lines, uv.Pos(0, first), uv.Pos(0, last))
		return
	}
	from, to := selection.Word(c.row(at.Y), at.X)
	c.Select(selection.Chars, uv.Pos(from, at.Y), uv.Pos(to-1, at.Y))
}

// drawCopy draws what is in view: what was found and what is selected on it.
func (p *Pane) drawCopy(f paint.Frame) (cursor *tea.Cursor, right paint.Line) {
	c := p.Copy
	if c.height != p.inner.Dy() {
		c.height = max(1, p.inner.Dy())
		c.top = max(0, min(c.top, c.n-c.height))
		c.show()
	}
	c.draw(&sieve{Screen: f.Screen, area: p.inner}, p.inner, c.top)
	rows := func(first, last int, columns func(n int) (from, to int), st uv.Style) {
		for n := max(first, c.top); n <= min(last, c.top+c.height-1); n++ {
			from, to := columns(n)
			y := p.inner.Min.Y + n - c.top
			paint.Dim(f.Screen, uv.Rect(p.inner.Min.X+from, y, to-from, 1).Intersect(p.inner), st) // over whatever colours the agent has there
		}
	}
	for i, h := range c.find.hits {
		st := f.P.S(themes.SelectedIdle)
		st.Underline = uv.UnderlineSingle // among an agent's colours the ground alone is overlooked
		if i == c.find.at {
			st = f.P.S(themes.AddedMark)
		}
		first, last := h.Rows()
		rows(first, last, func(n int) (int, int) { return h.In(n, c.row(n)) }, st)
	}
	if c.on {
		first, last := c.is.Rows()
		rows(first, last, func(n int) (int, int) { return c.is.In(n, c.row(n)) }, f.P.S(themes.Selected))
	}
	if f.Focused {
		if at := p.inner.Min.Add(uv.Pos(c.cur.X, c.cur.Y-c.top)); at.In(p.inner) {
			cursor = tea.NewCursor(at.X, at.Y)
			cursor.Blink = false
		}
	}
	return cursor, c.facts(f)
}

// marks show, in the border, where actions began.
func (p *Pane) marks(f paint.Frame) {
	for _, m := range p.Copy.Marks {
		if y := m.At - p.Copy.top; y >= 0 && y < p.inner.Dy() {
			f.Text(p.inner.Min.X-1, p.inner.Min.Y+y, p.inner.Min.X, "▸", themes.Info)
		}
	}
}

// facts say where the reading is.
func (c *Copy) facts(f paint.Frame) paint.Line {
	out := paint.Line{f.Span(fmt.Sprintf("copy mode  %d/%d", c.cur.Y+1, c.n), themes.Warn)}
	if i := slices.IndexFunc(c.Marks, func(m link.Mark) bool { return m.At > c.cur.Y }); i != 0 && len(c.Marks) > 0 {
		if i < 0 {
			i = len(c.Marks)
		}
		out = slices.Insert(out, 0, f.Span(fmt.Sprintf("#%d  ", c.Marks[i-1].Action), themes.Info))
	}
	return out
}

// foot is the search, at the pane's lower edge: the line that is being typed, or how many
// places there are.
func (p *Pane) foot(area uv.Rectangle, f paint.Frame) *tea.Cursor {
	c := p.Copy
	sign := "/"
	if c.find.back {
		sign = "?"
	}
	y, x, end := area.Max.Y-1, area.Min.X+2, area.Max.X-2
	if end-x < 16 {
		return nil
	}
	if c.asked == nil {
		if c.find.words != "" {
			f.Clip(x, y, end, " "+sign+c.find.words+"  "+c.find.count()+" ", themes.Info)
		}
		return nil
	}
	words := " " + c.find.count() + " "
	f.Right(x, y, end, paint.Line{f.Span(words, themes.Info)})
	return c.asked.Draw(f, f.Text(x, y, end, sign, themes.Key), y, max(x+8, end-len(words)-1), "type what to find")
}
