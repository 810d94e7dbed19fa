package screen

import (
	"fmt"
	"slices"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/ansi/parser"
)

// params are a control sequence's numbers; missing ones are marked, and those
// that a colon follows are flagged, as x/ansi has it.
type params struct {
	v     [maxParams]ansi.Param
	n     int
	first byte // one of < = > ? before the numbers
	inter byte // the intermediate byte; 0xff if there is more than one
}

// parse reads what lies between CSI and the final byte; false when malformed.
func (p *params) parse(raw []byte) bool {
	p.n, p.first, p.inter = 0, 0, 0
	i := 0
	if len(raw) > 0 && raw[0] >= '<' {
		p.first = raw[0]
		i = 1
	}
	if i == len(raw) {
		return true
	}
	value, any := 0, false
	add := func(flag int) {
		if p.n < maxParams {
			v := parser.MissingParam
			if any {
				v = value
			}
			p.v[p.n] = ansi.Param(v | flag)
			p.n++
		}
		value, any = 0, false
	}
	for ; i < len(raw); i++ {
		switch b := raw[i]; {
		case b >= '0' && b <= '9':
			if p.inter != 0 {
				return false
			}
			value, any = min(value*10+int(b-'0'), maxParam), true
		case b == ';' || b == ':':
			if p.inter != 0 {
				return false
			}
			flag := 0
			if b == ':' {
				flag = parser.HasMoreFlag
			}
			add(flag)
		case b >= '<':
			return false
		default:
			if p.inter == 0 {
				p.inter = b
			} else {
				p.inter = 0xff
			}
		}
	}
	if any || p.n > 0 {
		add(0)
	}
	return true
}

// get is the i-th number, or def if it is missing.
func (p *params) get(i, def int) int {
	if i >= p.n {
		return def
	}
	return p.v[i].Param(def)
}

// count is the i-th number as a count: missing and 0 are 1, at most limit.
func (p *params) count(i, limit int) int {
	return clamp(p.get(i, 1), 1, max(limit, 1))
}

// csi runs a control sequence.
func (s *Screen) csi(raw []byte, final byte) {
	var p params
	whole := p.parse(raw)
	if whole && final == 'm' && p.first == 0 && p.inter == 0 {
		s.sgr(&p) // a mark still joins the character before it
		s.repeat = ""
		return
	}
	if whole && !p.colons() {
		s.run(&p, final)
	}
	s.part()
}

// colons says whether a number has parts, which is for SGR only.
func (p *params) colons() bool {
	return slices.ContainsFunc(p.v[:p.n], ansi.Param.HasMore)
}

// run runs any control sequence but SGR.
func (s *Screen) run(p *params, final byte) {
	switch {
	case p.inter != 0:
		s.csiIntermediate(p, final)
	case p.first == '?':
		s.csiPrivate(p, final)
	case p.first != 0:
		s.csiOther(p, final)
	case !s.csiMove(p, final):
		s.csiEdit(p, final)
	}
}

// csiMove runs what moves the cursor.
func (s *Screen) csiMove(p *params, final byte) bool {
	switch final {
	case 'A':
		s.move(0, -p.count(0, s.rows))
	case 'B', 'e':
		s.move(0, p.count(0, s.rows))
	case 'C', 'a':
		s.move(p.count(0, s.cols), 0)
	case 'D':
		s.move(-p.count(0, s.cols), 0)
	case 'E':
		s.move(0, p.count(0, s.rows))
		s.carriageReturn()
	case 'F':
		s.move(0, -p.count(0, s.rows))
		s.carriageReturn()
	case 'G', '`':
		s.moveTo(p.count(0, maxSize)-1, s.relativeY())
	case 'd':
		s.moveTo(s.relativeX(), p.count(0, maxSize)-1)
	case 'H', 'f':
		s.moveTo(p.count(1, maxSize)-1, p.count(0, maxSize)-1)
	case 'I':
		s.tab(p.count(0, s.cols))
	case 'Z':
		s.tab(-p.count(0, s.cols))
	default:
		return false
	}
	return true
}

// move moves by so many columns and rows, as far as the screen's edges, or those
// of the margins that it doesn't lie beyond.
func (s *Screen) move(dx, dy int) {
	c, m := &s.cursor, s.fullMargins()
	if c.x >= s.margins.left {
		m.left = s.margins.left
	}
	if c.y >= s.margins.top {
		m.top = s.margins.top
	}
	if c.y < s.margins.bottom {
		m.bottom = s.margins.bottom
	}
	c.x, c.y, c.wrap = clamp(c.x+dx, m.left, s.rightEdge()-1), clamp(c.y+dy, m.top, m.bottom-1), false
}

// moveTo moves to a place relative to the screen, or to the region in origin mode.
func (s *Screen) moveTo(x, y int) {
	c := &s.cursor
	c.wrap = false
	if s.modes.origin {
		m := s.margins
		c.x = clamp(x+m.left, m.left, m.right-1)
		c.y = clamp(y+m.top, m.top, m.bottom-1)
		return
	}
	c.x, c.y = clamp(x, 0, s.cols-1), clamp(y, 0, s.rows-1)
}

func (s *Screen) relativeX() int {
	if s.modes.origin {
		return s.cursor.x - s.margins.left
	}
	return s.cursor.x
}

func (s *Screen) relativeY() int {
	if s.modes.origin {
		return s.cursor.y - s.margins.top
	}
	return s.cursor.y
}

// csiEdit runs what changes cells, the region, modes, or asks.
func (s *Screen) csiEdit(p *params, final byte) {
	c := &s.cursor
	m := s.margins
	bg := s.background()
	switch final {
	case '@', 'P':
		if c.x < m.left || c.x >= m.right {
			return
		}
		n := p.count(0, s.cols)
		if final == 'P' {
			n = -n
		}
		s.page.grid.shift(c.x, c.y, n, m.right, bg)
		c.wrap = false
	case 'L', 'M':
		if c.y < m.top || c.y >= m.bottom || !s.within() {
			return
		}
		n := p.count(0, s.rows)
		if final == 'L' {
			n = -n
		}
		s.scrollFrom(c.y, n)
		s.carriageReturn()
	case 'S':
		s.scroll(p.count(0, m.bottom-m.top))
	case 'T', '^':
		if p.n <= 1 { // with more it is highlight tracking
			s.scroll(-p.count(0, m.bottom-m.top))
		}
	case 'X':
		s.page.grid.erase(c.x, min(c.x+p.count(0, s.cols), s.cols), c.y, bg)
		c.wrap = false
	case 'J':
		s.eraseDisplay(p.get(0, 0))
	case 'K':
		s.eraseLine(p.get(0, 0))
	case 'b':
		s.repeatLast(p.count(0, s.cols))
	case 'g':
		switch p.get(0, 0) {
		case 0:
			s.tabs[c.x] = false
		case 3:
			clear(s.tabs)
		}
	case 'h', 'l':
		for i := range p.n {
			s.modes.setANSI(p.get(i, 0), final == 'h')
		}
	case 'r':
		s.setRows(p)
	case 's':
		if s.modes.margins {
			s.setColumns(p)
		} else if p.n == 0 {
			s.saveCursor()
		}
	case 'u':
		s.restoreCursor()
	case 'c':
		s.deviceAttributes(p.get(0, 0))
	case 'n':
		s.statusReport(p.get(0, 0), false)
	case 't':
		s.window(p)
	}
}

// csiPrivate runs sequences that begin with a question mark.
func (s *Screen) csiPrivate(p *params, final byte) {
	switch final {
	case 'h', 'l':
		for i := range p.n {
			s.setMode(p.get(i, 0), final == 'h')
		}
	case 'J':
		s.eraseDisplay(p.get(0, 0))
	case 'K':
		s.eraseLine(p.get(0, 0))
	case 'W':
		if p.get(0, 0) == 5 {
			s.tabs = defaultTabs(s.cols)
		}
	case 'n':
		s.statusReport(p.get(0, 0), true)
	case 'u':
		s.reply(fmt.Sprintf("\x1b[?%du", s.page.keys.flags))
	case 'm':
		if p.get(0, 0) == 4 {
			s.reply(fmt.Sprintf("\x1b[>4;%dm", s.modes.otherKeys))
		}
	}
}

// csiIntermediate runs sequences with an intermediate byte.
func (s *Screen) csiIntermediate(p *params, final byte) {
	switch {
	case p.inter == ' ' && final == 'q' && p.first == 0:
		if n := p.get(0, 0); n <= 6 {
			s.modes.shape = uint8(n)
			s.modes.blink = n == 0 || n%2 == 1
		}
	case p.inter == '!' && final == 'p' && p.first == 0:
		s.softReset()
	case p.inter == '$' && final == 'p':
		s.requestMode(p)
	}
}

// softReset is DECSTR.
func (s *Screen) softReset() {
	s.modes.softReset()
	s.margins = s.fullMargins()
	s.charsets = charsets{}
	s.cursor.pen = pen{}
	s.inks = inks{}
	s.cursor.wrap = false
	s.page.saved = saved{}
}

func (s *Screen) setRows(p *params) {
	top, bottom := p.count(0, s.rows)-1, p.get(1, 0)
	if bottom == 0 || bottom > s.rows {
		bottom = s.rows
	}
	if bottom-top < 2 && s.rows > 1 {
		return // a region has two rows at least
	}
	s.margins.top, s.margins.bottom = top, max(bottom, top+1)
	s.moveTo(0, 0)
}

func (s *Screen) setColumns(p *params) {
	left, right := p.count(0, s.cols)-1, p.get(1, 0)
	if right == 0 || right > s.cols {
		right = s.cols
	}
	if right-left < 2 {
		return
	}
	s.margins.left, s.margins.right = left, right
	s.moveTo(0, 0)
}
