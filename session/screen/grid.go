package screen

// grid is one page's cells. Two things hold after every method: a wide
// character has both its columns (the second a zero cell), and every row is
// blank without style from its used column on, so that erasing, keeping and
// drawing cost what is there.
//
// Whole lines move by moving their headers: a line feed at the bottom, or a
// hostile "insert line", costs the rows and one line's cells, not the screen's.
type grid struct {
	cols, rows int
	lines      []row
	work       *uint64 // see Screen.work
}

// cell is one character and how it looks. A third of what uv.Cell needs: moving
// memory is what a flood of output costs.
type cell struct {
	text  string // a grapheme cluster, blank is a space; empty in a wide character's second column
	pen   *pen   // nil: no style
	width uint8
}

var blankCell = cell{text: " ", width: 1}

type row struct {
	cells []cell
	used  int
	soft  bool // the text goes on in the next row: it was wrapped, not ended
	gap   bool // and the last column is no part of it: a wide character had no room there
}

func newGrid(cols, rows int, work *uint64) *grid {
	g := &grid{work: work}
	g.resize(cols, rows)
	return g
}

// resize keeps the top left part.
func (g *grid) resize(cols, rows int) {
	lines := make([]row, rows)
	for y := range lines {
		l := &lines[y]
		l.cells = make([]cell, cols)
		for x := range l.cells {
			l.cells[x] = blankCell
		}
		if y >= g.rows {
			continue
		}
		old := &g.lines[y]
		l.used = min(old.used, cols)
		copy(l.cells, old.cells[:l.used])
		if l.used == cols && cols < g.cols && old.cells[cols].width == 0 {
			l.cells[cols-1].empty() // a wide character lost its other half
		}
		l.soft = old.soft && cols == g.cols
	}
	g.lines, g.cols, g.rows = lines, cols, rows
	*g.work += uint64(cols * rows)
}

func (g *grid) cell(x, y int) *cell { return &g.lines[y].cells[x] }

// empty makes it a blank that looks the same.
func (c *cell) empty() { c.text, c.width = " ", 1 }

// put stores a cell; a wide one must have room for both its columns.
func (g *grid) put(x, y int, c cell) {
	l := &g.lines[y]
	end := x + int(c.width)
	if x < l.used {
		l.part(x)
		l.part(end)
	}
	l.cells[x] = c
	if c.width > 1 {
		l.cells[x+1] = cell{}
	}
	l.used = max(l.used, end)
	*g.work += uint64(c.width)
}

// ascii stores single-width characters from x on.
func (g *grid) ascii(x, y int, p []byte, look *pen) {
	l := &g.lines[y]
	end := x + len(p)
	if x < l.used {
		l.part(x)
		l.part(end)
	}
	cells := l.cells[x:end]
	for i, b := range p[:len(cells)] {
		b &= 0x7f
		cells[i] = cell{text: asciiText[b : b+1], pen: look, width: 1}
	}
	l.used = max(l.used, end)
	*g.work += uint64(len(p))
}

// asciiText holds each character, for cells to share.
const asciiText = "\x00\x01\x02\x03\x04\x05\x06\a\b\t\n\v\f\r\x0e\x0f" +
	"\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f" +
	" !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_" +
	"`abcdefghijklmnopqrstuvwxyz{|}~\x7f"

// part makes the boundary left of column x one between characters: a wide
// character that lies across becomes blanks of its look.
func (l *row) part(x int) {
	if x <= 0 || x >= len(l.cells) || l.cells[x].width != 0 {
		return
	}
	head := &l.cells[x-1]
	head.empty()
	l.cells[x] = *head
	l.used = max(l.used, x+1)
}

// erase blanks cells [x0,x1) of a row, painting the background. A wide character cut at an edge goes whole.
func (g *grid) erase(x0, x1, y int, bg *pen) {
	l := &g.lines[y]
	if x1 >= g.cols {
		x1, l.soft = g.cols, false
	}
	if bg == nil {
		x1 = min(x1, l.used)
	}
	if x0 >= x1 {
		return
	}
	l.part(x0)
	l.part(x1)
	b := cell{text: " ", pen: bg, width: 1}
	cells := l.cells[x0:x1]
	for i := range cells {
		cells[i] = b
	}
	*g.work += uint64(len(cells))
	switch {
	case bg != nil:
		l.used = max(l.used, x1)
	case x1 == l.used:
		l.used = x0
	}
}

func (g *grid) clear() {
	for y := range g.lines {
		g.erase(0, g.cols, y, nil)
	}
}

// scroll moves rows [top,bottom) up by n, down if negative, and blanks what comes in.
func (g *grid) scroll(top, bottom, n int, bg *pen) {
	region := g.lines[top:bottom]
	n = clamp(n, -len(region), len(region))
	// Rows at the edges get new neighbours; text that wraps at the bottom of
	// the screen goes on in the row that comes in.
	if top > 0 {
		g.lines[top-1].soft = false
	}
	if bottom < g.rows {
		region[len(region)-1].soft = false
	}
	rotate(region, n)
	*g.work += uint64(len(region))
	if n >= 0 {
		top = bottom - n
	} else {
		bottom = top - n
		region[len(region)-1].soft = false
	}
	for y := top; y < bottom; y++ {
		g.erase(0, g.cols, y, bg)
	}
}

// rotate turns a left by n, right if negative.
func rotate(a []row, n int) {
	if n == 1 { // every line feed at the bottom
		first := a[0]
		copy(a, a[1:])
		a[len(a)-1] = first
		return
	}
	if n < 0 {
		n += len(a)
	}
	if n > 0 && n < len(a) {
		head := append([]row(nil), a[:n]...)
		copy(a, a[n:])
		copy(a[len(a)-n:], head)
	}
}

// scrollBox is scroll within columns, which means moving cells.
func (g *grid) scrollBox(m margins, n int, bg *pen) {
	height := m.bottom - m.top
	n = clamp(n, -height, height)
	if n == 0 {
		return
	}
	for y := m.top; y < m.bottom; y++ {
		l := &g.lines[y]
		l.part(m.left)
		l.part(m.right)
		l.soft = false
	}
	for i := range height {
		dst := m.top + i
		if n < 0 {
			dst = m.bottom - 1 - i // downwards, from below
		}
		if src := dst + n; src >= m.top && src < m.bottom {
			from, to := &g.lines[src], &g.lines[dst]
			copy(to.cells[m.left:m.right], from.cells[m.left:m.right])
			to.used = max(to.used, min(from.used, m.right))
			*g.work += uint64(m.right - m.left)
		} else {
			g.erase(m.left, m.right, dst, bg)
		}
	}
}

// shift inserts n blanks at x, pushing cells out at right, or deletes n cells
// if negative. x lies before right.
func (g *grid) shift(x, y, n, right int, bg *pen) {
	width := right - x
	n = clamp(n, -width, width)
	if n == 0 {
		return
	}
	l := &g.lines[y]
	l.soft = false
	l.part(x)
	l.part(right)
	cells := l.cells[x:right]
	if n > 0 {
		l.part(right - n)
		copy(cells[n:], cells)
		cells = cells[:n]
		if l.used > x {
			l.used = max(l.used, min(l.used+n, right))
		}
	} else {
		l.part(x - n)
		copy(cells, cells[-n:])
		cells = cells[width+n:]
	}
	b := cell{text: " ", pen: bg, width: 1}
	for i := range cells {
		cells[i] = b
	}
	if bg != nil && n < 0 {
		l.used = max(l.used, right)
	} else if bg != nil {
		l.used = max(l.used, x+n)
	}
	*g.work += uint64(width)
}

// trimmed is where the row's content ends, exactly.
func (l *row) trimmed() int {
	for l.used > 0 && l.cells[l.used-1] == blankCell {
		l.used--
	}
	return l.used
}
