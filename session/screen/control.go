package screen

// saved is what DECSC keeps.
type saved struct {
	cursor
	charsets charsets
	origin   bool
}

// part ends the run of characters that a mark may join and REP repeats.
func (s *Screen) part() { s.joint, s.repeat = joint{}, "" }

// control runs a C0 control.
func (s *Screen) control(b byte) {
	s.part()
	switch b {
	case '\a':
		if s.signals != nil {
			s.signals.bell()
		}
	case '\b':
		s.move(-1, 0)
	case '\t':
		s.tab(1)
	case '\n', '\v', '\f':
		s.index()
		if s.modes.newline {
			s.carriageReturn()
		}
	case '\r':
		s.carriageReturn()
	case 0x0e:
		s.charsets.gl = 1
	case 0x0f:
		s.charsets.gl = 0
	}
}

func (s *Screen) carriageReturn() {
	c := &s.cursor
	c.wrap = false
	if c.x >= s.margins.left || s.modes.origin {
		c.x = s.margins.left
	} else {
		c.x = 0
	}
}

// within says whether the cursor's column lies between the margins: only there
// does the region scroll.
func (s *Screen) within() bool {
	return s.cursor.x >= s.margins.left && s.cursor.x < s.margins.right
}

// index moves down, scrolling at the bottom of the region.
func (s *Screen) index() {
	c := &s.cursor
	c.wrap = false
	switch {
	case c.y == s.margins.bottom-1:
		if s.within() {
			s.scroll(1)
		}
	case c.y < s.rows-1:
		c.y++
	}
}

func (s *Screen) reverseIndex() {
	c := &s.cursor
	c.wrap = false
	switch {
	case c.y == s.margins.top:
		if s.within() {
			s.scroll(-1)
		}
	case c.y > 0:
		c.y--
	}
}

// scroll moves the region's lines up by n, down if negative. Lines that leave
// the main screen at its top are kept.
func (s *Screen) scroll(n int) {
	m := s.margins
	if n > 0 && s.page == s.main && m.top == 0 && m.left == 0 && m.right == s.cols {
		s.keep(min(n, m.bottom))
	}
	s.scrollFrom(m.top, n)
}

// scrollFrom scrolls the region's part from a row on.
func (s *Screen) scrollFrom(top, n int) {
	m := s.margins
	bg := s.background()
	if m.left > 0 || m.right < s.cols {
		m.top = top
		s.page.grid.scrollBox(m, n, bg)
		return
	}
	s.page.grid.scroll(top, m.bottom, n, bg)
}

// tab moves to the n-th tab stop, backwards if negative.
func (s *Screen) tab(n int) {
	c := &s.cursor
	low, high := 0, s.rightEdge()-1
	if s.modes.origin {
		low = s.margins.left
	}
	for ; n > 0 && c.x < high; n-- {
		for c.x++; c.x < high && !s.tabs[c.x]; c.x++ {
		}
	}
	for ; n < 0 && c.x > low; n++ {
		for c.x--; c.x > low && !s.tabs[c.x]; c.x-- {
		}
	}
}

func defaultTabs(cols int) []bool {
	t := make([]bool, cols)
	for x := 8; x < cols; x += 8 {
		t[x] = true
	}
	return t
}

// esc runs an escape sequence: intermediates and final byte.
func (s *Screen) esc(inter []byte, final byte) {
	if len(inter) == 0 && final == '\\' {
		return // the end of a string that has been run
	}
	s.part()
	if len(inter) == 1 {
		switch inter[0] {
		case '(', ')', '*', '+':
			s.charsets.designate(int(inter[0]-'('), final)
		case '#':
			if final == '8' {
				s.alignment()
			}
		}
		return
	}
	if len(inter) > 0 {
		return
	}
	switch final {
	case '7':
		s.saveCursor()
	case '8':
		s.restoreCursor()
	case 'D':
		s.index()
	case 'E':
		s.index()
		s.carriageReturn()
	case 'H':
		s.tabs[s.cursor.x] = true
	case 'M':
		s.reverseIndex()
	case 'N':
		s.charsets.single = 2
	case 'O':
		s.charsets.single = 3
	case 'Z':
		s.deviceAttributes(0)
	case 'c':
		s.reset()
	case 'n':
		s.charsets.gl = 2
	case 'o':
		s.charsets.gl = 3
	case '=':
		s.modes.keypad = true
	case '>':
		s.modes.keypad = false
	}
}

// alignment is DECALN: a screen of E.
func (s *Screen) alignment() {
	s.margins = s.fullMargins()
	s.moveTo(0, 0)
	for y := range s.rows {
		for x := range s.cols {
			s.page.grid.put(x, y, cell{text: "E", width: 1})
		}
		s.page.grid.lines[y].soft = false
	}
}

func (s *Screen) saveCursor() {
	s.page.saved = saved{cursor: s.cursor, charsets: s.charsets, origin: s.modes.origin}
	s.page.saved.charsets.single = 0
}

func (s *Screen) restoreCursor() {
	v := s.page.saved
	s.cursor, s.charsets, s.modes.origin = v.cursor, v.charsets, v.origin
	s.inks = inks{}
	s.cursor.x, s.cursor.y = min(s.cursor.x, s.cols-1), min(s.cursor.y, s.rows-1)
}
