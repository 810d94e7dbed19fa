package screen

import (
	"unicode/utf8"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// maxCluster bounds one character's bytes: the longest emoji sequences need some
// forty; marks stacked beyond are dropped.
const maxCluster = 64

// cursor is where and how the next character goes.
type cursor struct {
	x, y int
	wrap bool // the last column was just written: the next character wraps first
	pen  pen
}

// inks are the cursor's pen and its background alone as the cells share them;
// the zero value when they must be looked up again.
type inks struct {
	known          bool
	text, backdrop *pen
}

func (s *Screen) ink() *pen {
	if !s.inks.known {
		p := &s.cursor.pen
		s.inks = inks{
			known:    true,
			backdrop: s.pens.get(&uv.Style{Bg: p.style.Bg}, &uv.Link{}),
			text:     s.pens.get(&p.style, &p.link),
		}
	}
	return s.inks.text
}

// background is what erased cells look like.
func (s *Screen) background() *pen {
	s.ink()
	return s.inks.backdrop
}

// joint remembers the character just printed, for a mark that may yet join it.
// Characters are printed at once and amended, rather than held back until it is
// clear that nothing joins: so that drawing needs no flush, and cuts between
// writes make no difference.
type joint struct {
	valid bool
	plain bool // nothing plain can join it
	x, y  int
}

// printASCII prints bytes from 0x20 to 0x7e.
func (s *Screen) printASCII(p []byte) {
	if s.charsets.active() || s.modes.insert {
		for _, b := range p {
			s.place(s.charsets.translate(b), 1, true)
		}
		return
	}
	c := &s.cursor
	for len(p) > 0 {
		if c.wrap && s.modes.autowrap {
			s.wrap(false)
		}
		right := s.rightEdge()
		n := min(len(p), right-c.x)
		s.page.grid.ascii(c.x, c.y, p[:n], s.ink())
		s.repeat = asciiText[p[n-1] : p[n-1]+1]
		p = p[n:]
		s.advance(n, 1, right, true)
		if c.wrap && !s.modes.autowrap && len(p) > 0 {
			// Each further character overwrites the last column.
			p = p[len(p)-1:]
		}
	}
}

// advance moves the cursor past n columns just printed, the last character of
// which has width w, and remembers that one.
func (s *Screen) advance(n, w, right int, plain bool) {
	c := &s.cursor
	s.joint = joint{valid: true, plain: plain, x: c.x + n - w, y: c.y}
	c.x += n
	c.wrap = c.x >= right
	if c.wrap {
		c.x = right - 1
	}
}

// rightEdge is the column that text wraps at.
func (s *Screen) rightEdge() int {
	if s.cursor.x < s.margins.right {
		return s.margins.right
	}
	return s.cols
}

// wrap goes on in the next row and notes that the text does. gap says that the last
// column is no part of it.
func (s *Screen) wrap(gap bool) {
	c := &s.cursor
	m, y := s.margins, c.y
	whole := m.left == 0 && m.right == s.cols
	lines := s.page.grid.lines
	if whole {
		lines[y].soft, lines[y].gap = true, gap // before: a screen of one row keeps it at once
	}
	s.index()
	switch {
	case !whole:
	case c.y > y:
		lines[y].soft = true
	case y == m.bottom-1 && y > m.top:
		lines[y-1].soft = true // it has moved up
	default:
		lines[y].soft = false
	}
	s.carriageReturn()
}

// printRune prints any character beyond ASCII, which may join the one before.
func (s *Screen) printRune(r rune) {
	if r < 0xa0 {
		return // C1 controls, as characters: nobody sends them for good
	}
	e := s.class(r)
	if s.joint.valid && !(e.plain && s.joint.plain) && s.join(r, int(e.width)) {
		return
	}
	if e.width == 0 {
		return // a mark with nothing to join, or something invisible
	}
	s.charsets.single = 0
	s.place(e.text, int(e.width), e.plain)
}

// place prints one character of width 1 or 2 at the cursor.
func (s *Screen) place(content string, w int, plain bool) {
	c := &s.cursor
	if c.wrap && s.modes.autowrap {
		s.wrap(false)
	}
	right := s.rightEdge()
	if c.x+w > right {
		if !s.modes.autowrap {
			return
		}
		s.wrap(true)
		if right = s.rightEdge(); c.x+w > right {
			content, w, plain = "\ufffd", 1, true // not even a whole row would do
		}
	}
	g := s.page.grid
	if s.modes.insert {
		g.shift(c.x, c.y, w, right, s.background())
	}
	g.put(c.x, c.y, cell{text: content, pen: s.ink(), width: uint8(w)})
	s.repeat = content
	s.advance(w, w, right, plain)
}

// join adds r to the character before it, if the two are shown as one: a mark
// that takes no room, or what belongs to an emoji. The rest of what UAX 29 counts
// as one character, such as a syllable of Bengali, takes as many columns as its
// parts: so count the C library and with it the programs that lay out their lines.
func (s *Screen) join(r rune, w int) bool {
	j := &s.joint
	head := s.page.grid.cell(j.x, j.y)
	var buf [maxCluster + utf8.UTFMax]byte
	n := copy(buf[:], head.text)
	if w > 0 && !ofEmoji(buf[:n], r) {
		return false
	}
	n += utf8.EncodeRune(buf[n:], r)
	// Combining diacritical marks join anything: those that a hostile guest
	// stacks shouldn't cost more than they must.
	plain := r >= 0x300 && r < 0x370
	if !plain {
		if cluster, _ := ansi.FirstGraphemeCluster(buf[:n], ansi.GraphemeWidth); len(cluster) < n {
			return false
		}
	}
	if (w > 0 || r == emojiSelector) && head.width == 1 && clusterWidth(string(buf[:n])) == 2 && !s.widen() && w > 0 {
		return false
	}
	j.plain = false
	if n <= maxCluster {
		s.setCluster(s.page.grid.cell(j.x, j.y), string(buf[:n]))
	}
	return true
}

// widen gives the character before the cursor a second column, if there is room.
func (s *Screen) widen() bool {
	g, c, j := s.page.grid, &s.cursor, &s.joint
	right := s.rightEdge()
	if c.wrap || c.y != j.y || c.x != j.x+1 || j.x+2 > right {
		return false
	}
	if s.modes.insert {
		g.shift(c.x, c.y, 1, right, s.background())
	}
	head := *g.cell(j.x, j.y)
	head.width = 2
	g.put(j.x, j.y, head)
	c.x++
	if c.wrap = c.x >= right; c.wrap {
		c.x = right - 1
	}
	return true
}

// setCluster changes what the last character's cell holds.
func (s *Screen) setCluster(head *cell, text string) {
	head.text, s.repeat = text, text
	l := &s.page.grid.lines[s.joint.y]
	l.used = max(l.used, s.joint.x+int(head.width)) // it may have been a blank
}

// runeClass is what is known of a character: its width alone, and whether it is
// plain: one plain character never joins another.
type runeClass struct {
	r     rune
	text  string // shared by the cells
	width int8
	plain bool
}

// class looks a character up in a small cache: finding its width costs more
// than all the rest of printing.
func (s *Screen) class(r rune) *runeClass {
	e := &s.recent[uint32(r)%uint32(len(s.recent))]
	if e.r != r {
		w := runeWidth(r)
		*e = runeClass{r: r, text: string(r), width: int8(w), plain: w > 0 && !indicator(r) && !tone(r)}
	}
	return e
}
