package screen

import (
	"bytes"
	"math"
	"slices"
	"sort"
)

// Resize changes the size. On the main screen lines that were wrapped are wrapped
// anew, with the scrollback: narrow and wide again, no text is lost. Rows that
// don't fit move into the scrollback, and come back when there is room again; only
// what stands below the cursor can fall off. The alternate screen is cut, as
// programs draw it again. The cursor and the saved ones stay at their text.
func (s *Screen) Resize(cols, rows int) {
	cols, rows = clamp(cols, 1, maxSize), clamp(rows, 1, maxSize)
	if cols == s.cols && rows == s.rows {
		return
	}
	s.frame.held = false
	s.joint = joint{}
	if c := s.main.saved.cursor; s.page != s.main {
		s.reflow(cols, rows, &c) // where text goes on later
	} else {
		s.reflow(cols, rows, &s.cursor)
	}
	if s.alt != nil {
		s.cut(s.alt, cols, rows)
	}
	tabs := defaultTabs(cols) // for new columns
	copy(tabs, s.tabs)
	s.tabs = tabs
	s.cols, s.rows = cols, rows
	s.margins = s.fullMargins()
}

// cut gives a page another size: what doesn't fit above the cursor is lost at the
// top, the rest at the right and at the bottom.
func (s *Screen) cut(p *page, cols, rows int) {
	cursors := []*cursor{&p.saved.cursor}
	if s.page == p {
		cursors = []*cursor{&s.cursor, &p.saved.cursor}
	}
	over := max(cursors[0].y-(rows-1), 0)
	if rows < s.rows {
		p.grid.scroll(0, s.rows, over, nil)
	}
	p.grid.resize(cols, rows)
	for _, c := range cursors {
		c.y = clamp(c.y-over, 0, rows-1)
		if c.x >= cols || c.wrap && cols != s.cols {
			c.rejoin(c.rest(), cols)
		}
	}
}

// rejoin puts the cursor behind so many columns of text in a row.
func (c *cursor) rejoin(x, cols int) { c.x, c.wrap = min(x, cols-1), x == cols }

// reflow gives the main screen its new size. c is where text goes on there.
func (s *Screen) reflow(cols, rows int, c *cursor) {
	h, g := &s.history, s.main.grid
	last := g.rows - 1 // the last row in use
	for last > c.y && g.lines[last].trimmed() == 0 {
		last--
	}
	all := make([]*line, 0, h.len()+last+1)
	for i := range h.len() {
		all = append(all, h.line(i))
	}
	for y := range last + 1 {
		l := &line{}
		g.save(y, l)
		all = append(all, l)
	}
	f := flow{from: s.cols, to: cols, out: newHistory()}
	f.out.maxRows, f.out.maxBytes = mostRows+maxSize, math.MaxInt // the screen's rows go through it, too
	pin := max(s.pin, h.total)
	pinned, cursors := f.follow(h.len()+pin-h.total, 0), []*cursor{c}
	if s.main.saved != (saved{}) {
		cursors = append(cursors, &s.main.saved.cursor)
	}
	for _, c := range cursors {
		f.follow(h.len()+c.y, c.rest())
	}
	f.anchors[1].text = true
	f.lines(all)

	out := &f.out
	first := s.top(out, f.anchors[1].row, last, rows)
	s.main.grid = newGrid(cols, rows, &s.work)
	for out.total > first {
		out.pop(func(l *line) {
			if y := out.total - 1 - first; y < rows {
				s.main.grid.load(y, l)
			}
		})
	}
	for i, c := range cursors {
		a := f.anchors[i+1]
		c.y = clamp(a.row-first, 0, rows-1)
		c.rejoin(a.x, cols)
	}
	out.maxRows, out.maxBytes = clamp(out.len(), historyRows, mostRows), h.maxBytes
	out.gone += h.gone
	out.total = pin + first - pinned.row
	s.history = *out
	s.history.trim()
}

// top is which of the new rows is the screen's first. As many rows as were free below
// the last one in use stay free, but what was never above the screen stays on it as
// long as it can, and so does the cursor.
func (s *Screen) top(out *history, cursor, last, rows int) int {
	first, end := out.total-out.len(), out.total
	top := first
	if s.history.len() > 0 || end-first > s.rows {
		top = max(end-last-1, first)
		if s.history.len() == 0 {
			top = end - s.rows
		}
	}
	if used := end - top; used > rows || used == s.rows {
		top = max(end-rows, first)
	}
	return max(min(top, cursor), first)
}

// anchor is a place in the text that is followed: its row, and its column, which may
// be one beyond the last. Then the same among the new rows. text says that what is
// before it is.
type anchor struct {
	row, x int
	text   bool
}

// flow wraps lines anew.
type flow struct {
	from, to int // columns
	anchors  []*anchor
	out      history

	now    line   // the new row that is being filled
	width  int    // of what it has
	done   int    // columns of the line that are in this row and those before
	left   int    // characters of the line until only blanks follow
	starts []int  // done at the beginning of each new row of the line
	spare  []line // buffers of rows that have been read
}

func (f *flow) follow(row, x int) *anchor {
	a := &anchor{row: row, x: x}
	f.anchors = append(f.anchors, a)
	return a
}

// lines takes all rows: those that are one line together.
func (f *flow) lines(all []*line) {
	waiting := slices.Clone(f.anchors)
	for from := 0; from < len(all); {
		to := from + 1
		for f.from != f.to && to < len(all) && all[to-1].soft {
			to++
		}
		l, fits := all[from], to == from+1
		if f.from != f.to {
			fits = fits && !l.soft && l.width() <= f.to
		}
		var here []*anchor
		waiting = slices.DeleteFunc(waiting, func(a *anchor) bool {
			if a.row >= to {
				return false
			}
			a.row -= from
			here = append(here, a)
			fits = fits && (!a.text || a.x <= f.to)
			return true
		})
		if fits {
			f.out.push(func(slot *line) { *slot, *l = *l, *slot })
			for _, a := range here {
				a.row = f.out.total - 1
			}
		} else {
			f.line(all[from:to], here)
		}
		from = to
	}
	for _, a := range waiting { // below all text
		a.row += f.out.total - len(all)
	}
}

// line takes one line that was in these rows.
func (f *flow) line(rows []*line, anchors []*anchor) {
	last := len(rows) - 1
	f.left = 0
	chars, columns, seen := 0, 0, 0 // seen is the column behind the last character
	for i, l := range rows {
		for _, a := range anchors {
			if a.row == i {
				a.x += columns
			}
		}
		n, w := l.len(), l.width()
		if text := bytes.TrimRight(l.text, " "); len(text) > 0 {
			blanks := len(l.text) - len(text)
			f.left, seen = chars+n-blanks, columns+w-blanks
		}
		chars, columns = chars+n, columns+w
		if i < last {
			blanks := l.lacks(f.from)
			chars, columns = chars+blanks, columns+blanks
		}
	}
	end := columns // of the last row
	for _, a := range anchors {
		if a.text && a.x > seen { // the blanks before the cursor were typed
			f.left += a.x - seen
			end = max(columns, a.x)
		}
	}
	first := f.out.total
	f.width, f.done, f.starts = 0, 0, append(f.starts[:0], 0)
	for i, l := range rows {
		text := l.text
		for _, s := range l.spans {
			n := int(s.n) * int(s.size)
			f.put(s, text[:n])
			text = text[n:]
		}
		blanks := end - columns
		if i < last {
			blanks = l.lacks(f.from)
		}
		f.put(span{n: int32(blanks), size: 1, width: 1}, bytes.Repeat([]byte(" "), blanks))
		f.spare = append(f.spare, line{text: l.text[:0], spans: l.spans[:0]})
	}
	f.end(rows[last].soft, rows[last].gap)
	for _, a := range anchors {
		i := sort.SearchInts(f.starts, a.x+1) - 1
		a.row, a.x = first+i, a.x-f.starts[i]
	}
}

// put adds characters, in as many rows as they need. Blanks at the line's end need none.
func (f *flow) put(s span, text []byte) {
	for s.n > 0 {
		room := (f.to - f.width) / int(s.width)
		switch {
		case room == 0 && f.left <= 0:
			return
		case room == 0 && f.width == 0: // wide ones where there is a single column
			s.width, s.size, text = 1, 3, bytes.Repeat([]byte("\ufffd"), int(s.n))
			continue
		case room == 0:
			f.end(true, f.width < f.to)
			f.starts = append(f.starts, f.done)
			continue
		}
		n := min(room, int(s.n))
		some := s
		some.n = int32(n)
		f.now.spans = append(f.now.spans, some)
		f.now.text = append(f.now.text, text[:n*int(s.size)]...)
		text = text[n*int(s.size):]
		s.n -= int32(n)
		f.left -= n
		f.width += n * int(s.width)
		f.done += n * int(s.width)
	}
}

// end ends a new row.
func (f *flow) end(soft, gap bool) {
	l := &f.now
	l.soft, l.gap = soft, gap
	for n := len(l.spans); n > 0 && l.spans[n-1].pen == nil && l.text[len(l.text)-1] == ' '; n = len(l.spans) {
		l.text = l.text[:len(l.text)-1] // as saved rows are
		if l.spans[n-1].n--; l.spans[n-1].n == 0 {
			l.spans = l.spans[:n-1]
		}
	}
	f.out.push(func(slot *line) { *slot, *l = *l, *slot })
	l.text, l.spans = l.text[:0], l.spans[:0]
	if n := len(f.spare); n > 0 {
		*l, f.spare = f.spare[n-1], f.spare[:n-1]
	}
	f.width = 0
}
