package screen

import (
	uv "github.com/charmbracelet/ultraviolet"
)

// pen is how a run of cells looks; it is never changed once made.
type pen struct {
	style uv.Style
	link  uv.Link
}

// pens shares equal pens; the one without style is nil. What a hostile guest can make it hold is bounded:
// when full it starts anew, and the old pens live as long as their lines.
type pens struct {
	m    map[pen]*pen
	last *pen
}

const maxPens = 4096

func (p *pens) get(style *uv.Style, link *uv.Link) *pen {
	if *style == (uv.Style{}) && *link == (uv.Link{}) {
		return nil
	}
	if v := p.last; v != nil && v.style == *style && v.link == *link {
		return v
	}
	k := pen{*style, *link}
	if v := p.m[k]; v != nil {
		p.last = v
		return v
	}
	if p.m == nil || len(p.m) >= maxPens {
		p.m = make(map[pen]*pen)
	}
	v := &k
	p.m[k], p.last = v, v
	return v
}

func samePen(a, b *pen) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// line is one line of the scrollback or of a frozen frame: a tenth and less of
// what its cells need.
type line struct {
	text  []byte
	spans []span
	soft  bool // goes on in the next line
	gap   bool // see row
}

// span is n characters of the same look, width and length in bytes.
type span struct {
	pen   *pen
	n     int32
	size  uint8
	width uint8
}

// bytes is what the line costs, for the bound on the whole.
func (l *line) bytes() int {
	n := len(l.text) + 24*len(l.spans) + 64
	for _, s := range l.spans {
		if s.pen != nil {
			n += len(s.pen.link.URL) // shared, usually: the bound may only be too strict
		}
	}
	return n
}

// width is how many columns the line takes, and len how many characters it has.
func (l *line) width() int {
	w := 0
	for i := range l.spans {
		w += int(l.spans[i].n) * int(l.spans[i].width)
	}
	return w
}

func (l *line) len() int {
	n := 0
	for i := range l.spans {
		n += int(l.spans[i].n)
	}
	return n
}

// lacks is how many blanks at the end of a row that goes on were left out.
func (l *line) lacks(cols int) int {
	if l.gap {
		cols--
	}
	return max(cols-l.width(), 0)
}

// each calls f with every character and its column.
func (l *line) each(f func(x int, c *cell)) {
	x, at := 0, 0
	text := string(l.text) // one copy that all the cells share
	var c cell
	for _, s := range l.spans {
		c.pen, c.width = s.pen, s.width
		for range s.n {
			c.text = text[at : at+int(s.size)]
			f(x, &c)
			at += int(s.size)
			x += int(s.width)
		}
	}
}

// save writes row y into l, without trailing blanks.
func (g *grid) save(y int, l *line) {
	from := &g.lines[y]
	l.text, l.spans, l.soft, l.gap = l.text[:0], l.spans[:0], from.soft, from.gap
	cells := from.cells[:from.trimmed()]
	*g.work += uint64(len(cells))
	var cur *span
	for x := range cells {
		c := &cells[x]
		if c.width == 0 {
			continue // the second half of a wide character
		}
		if cur == nil || int(cur.size) != len(c.text) || cur.width != c.width || !samePen(cur.pen, c.pen) {
			l.spans = append(l.spans, span{pen: c.pen, size: uint8(len(c.text)), width: c.width})
			cur = &l.spans[len(l.spans)-1]
		}
		cur.n++
		l.text = append(l.text, c.text...)
	}
}

// load writes l into row y, which must be blank; what doesn't fit is cut off.
func (g *grid) load(y int, l *line) {
	l.each(func(x int, c *cell) {
		if x+int(c.width) <= g.cols {
			g.put(x, y, *c)
		}
	})
	g.lines[y].soft, g.lines[y].gap = l.soft, l.gap
}

// history is the scrollback: a ring that grows to its bounds.
type history struct {
	ring     []line
	first, n int
	size     int // bytes of all rows
	gone     int // lines, wrapped or not, whose last row was dropped
	total    int // rows ever pushed, less those popped: the absolute number of the screen's first row

	maxRows, maxBytes int // maxRows is more once lines were wrapped narrower: they need more rows
}

func newHistory() history { return history{maxRows: historyRows, maxBytes: historyBytes} }

func (h *history) len() int { return h.n }

// line is the i-th row, 0 the oldest.
func (h *history) line(i int) *line { return &h.ring[(h.first+i)%len(h.ring)] }

// fromStart is how many of the last n rows there are from where a line starts, if any
// does: the rest is wrapped anew as it is here.
func (h *history) fromStart(n int) int {
	for m := n; m > 0; m-- {
		if at := h.len() - m - 1; at < 0 || !h.line(at).soft {
			return m
		}
	}
	return n
}

// push appends a row that fill writes; the oldest make room.
func (h *history) push(fill func(*line)) {
	if h.n == len(h.ring) {
		ring := make([]line, max(64, 2*h.n))
		n := copy(ring, h.ring[h.first:])
		copy(ring[n:], h.ring[:h.first])
		h.ring, h.first = ring, 0
	}
	l := h.line(h.n)
	fill(l)
	h.n++
	h.total++
	h.size += l.bytes()
	h.trim()
}

// trim drops the oldest rows that are too many.
func (h *history) trim() {
	for h.n > h.maxRows || h.size > h.maxBytes && h.n > 1 {
		h.drop()
	}
}

func (h *history) drop() {
	l := h.line(0)
	if !l.soft {
		h.gone++
	}
	h.uncount(l)
	h.first = (h.first + 1) % len(h.ring)
}

// uncount takes a line out of the figures, and empties it.
func (h *history) uncount(l *line) {
	h.n--
	h.size -= l.bytes()
	h.forget(l)
}

// forget empties a line; ordinary buffers stay for the next one.
func (h *history) forget(l *line) {
	clear(l.spans[:cap(l.spans)]) // or the pens would live on
	if cap(l.text) > 1024 || cap(l.spans) > 64 {
		*l = line{}
	}
	l.text, l.spans, l.soft, l.gap = l.text[:0], l.spans[:0], false, false
}

// pop hands the newest line to use and takes it away.
func (h *history) pop(use func(*line)) {
	l := h.line(h.n - 1)
	use(l)
	h.uncount(l)
	h.total--
}

func (h *history) clear() {
	for h.n > 0 {
		h.drop()
	}
	h.maxRows = historyRows
}
