package screen

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	uv "github.com/charmbracelet/ultraviolet"
)

// maxKeyframe bounds a keyframe. One that would be larger (a huge screen that a
// hostile guest fills with styles, marks and links) leaves out, in this order:
// scrollback, links, styles and marks.
const maxKeyframe = 12 << 20

// Keyframe is the state as bytes: written to a fresh Screen of the same size
// they give the same screens, scrollback, cursor, pen, modes, region, tab stops,
// character sets, titles and saved cursors, and a sequence begun is begun there
// too. Callbacks, counters and absolute line numbers aren't part of it.
func (s *Screen) Keyframe() []byte {
	k := keyframe{s: s, lines: s.history.len()}
	for k.level = 0; ; k.level++ {
		k.Reset()
		k.write()
		if k.Len() <= maxKeyframe || k.level == 3 {
			return k.Bytes()
		}
	}
}

// KeyframeWithin is a Keyframe with at most the last lines of the scrollback, and
// fewer as long as it is larger than small. The rest of the state is always whole,
// however much that is.
func (s *Screen) KeyframeWithin(lines, small int) []byte {
	bare := keyframe{s: s}
	bare.write()
	for n := min(lines, s.history.len()); n > 0 && bare.Len() < small; n /= 2 {
		k := keyframe{s: s, lines: s.history.fromStart(n)}
		k.write()
		if k.Len() <= small {
			return k.Bytes()
		}
	}
	return bare.Bytes()
}

// keyframe collects the bytes and keeps track of the reading screen's pen.
type keyframe struct {
	bytes.Buffer
	s     *Screen
	level int // how much is left out
	lines int // of the scrollback
	now   pen
	plain bool // the last cell written can't be joined by a plain one
}

func (k *keyframe) csi(format string, args ...any) {
	k.WriteString("\x1b[")
	fmt.Fprintf(k, format, args...)
}

func (k *keyframe) write() {
	s := k.s
	k.now = pen{}
	k.WriteString("\x1bc\x1b[3J") // also right for a screen that isn't fresh
	if k.level == 0 {
		k.history()
	}
	onAlt := s.page != s.main
	frozen := s.modes.sync && s.frame.held && s.frame.alt == onAlt && len(s.frame.lines) == s.rows
	if !onAlt && frozen {
		k.picture()
	}
	k.page(s.main.grid)
	k.savedCursor(&s.main.saved)
	k.keys(&s.main.keys)
	if onAlt {
		k.csi("?1047h")
		if frozen {
			k.picture()
		}
		k.page(s.alt.grid)
		k.savedCursor(&s.alt.saved)
		k.keys(&s.alt.keys)
	}
	if !slices.Equal(s.tabs, defaultTabs(s.cols)) {
		k.csi("3g")
		for x, t := range s.tabs {
			if t {
				k.csi("%dG\x1bH", x+1)
			}
		}
	}
	k.titles()
	for i, c := range s.colors {
		if c != nil {
			r, g, b, _ := c.RGBA()
			fmt.Fprintf(k, "\x1b]%d;#%02x%02x%02x\x1b\\", 10+i, r>>8, g>>8, b>>8)
		}
	}
	m := s.margins
	if m.top != 0 || m.bottom != s.rows {
		k.csi("%d;%dr", m.top+1, m.bottom)
	}
	if s.modes.margins {
		k.csi("?69h")
		if m.left != 0 || m.right != s.cols {
			k.csi("%d;%ds", m.left+1, m.right)
		}
	}
	k.modes()
	k.charsets(&s.charsets)
	c := &s.cursor
	k.pen(&c.pen)
	k.csi("%d;%dH", c.y+1, c.x+1) // in origin mode the private state corrects it
	k.private()
	k.Write(s.pending())
}

// history prints the scrollback and scrolls it out.
func (k *keyframe) history() {
	h := &k.s.history
	if k.lines > 0 && h.maxRows != historyRows {
		fmt.Fprintf(k, "\x1b_%srows=%d\x1b\\", privateState, h.maxRows)
	}
	k.csi("?7l")
	for i := h.len() - k.lines; i < h.len(); i++ {
		l := h.line(i)
		k.line(l, k.s.cols)
		k.pen(nil)
		k.soft(l.soft, l.gap)
		k.WriteString("\r\n")
	}
	if rest := min(k.lines, k.s.rows-1); rest > 0 {
		k.csi("%dS", rest)
	}
	k.csi("?7h")
}

// line prints a kept line's cells.
func (k *keyframe) line(l *line, cols int) {
	l.each(func(x int, c *cell) {
		if x+int(c.width) <= cols {
			k.cell(c)
		}
	})
}

// soft says that the row before the cursor goes on in the next.
func (k *keyframe) soft(soft, gap bool) {
	switch {
	case soft && gap:
		k.WriteString("\x1b_" + privateState + "soft=gap\x1b\\")
	case soft:
		k.WriteString("\x1b_" + privateState + "soft\x1b\\")
	}
}

func (k *keyframe) cell(c *cell) {
	k.pen(c.pen)
	content := c.text
	plain := true
	if len(content) > 1 {
		r, n := utf8.DecodeRuneInString(content)
		plain = n == len(content) && k.s.class(r).plain
		if !plain || !k.plain {
			// What only stands side by side must not join: any control parts it.
			k.WriteByte(0)
		}
	}
	k.plain = plain
	if !plain && c.width == 1 && k.level < 3 && clusterWidth(content) > 1 {
		_, n := utf8.DecodeRuneInString(content) // the rest would make it wide
		fmt.Fprintf(k, "%s\x1b_%sjoin=%x\x1b\\", content[:n], privateState, content[n:])
		return
	}
	if k.level >= 3 && len(content) > 4 {
		content = " "
		if c.width > 1 {
			content = "  "
		}
	}
	k.WriteString(content)
}

// page prints a grid over whatever is shown.
func (k *keyframe) page(g *grid) {
	k.csi("?7l")
	for y := range g.lines {
		l := &g.lines[y]
		k.pen(nil)
		k.csi("%dH\x1b[2K", y+1)
		used := l.trimmed()
		for x := 0; x < used; x++ {
			if c := &l.cells[x]; c.width > 0 {
				k.cell(c)
			}
		}
		k.soft(l.soft, l.gap)
	}
	k.pen(nil)
	k.csi("?7h")
}

// picture prints the last complete frame and begins the one being built, so
// that the reader shows the same meanwhile.
func (k *keyframe) picture() {
	f := &k.s.frame
	k.csi("?7l")
	for y := range f.lines {
		k.csi("%dH", y+1)
		k.line(&f.lines[y], k.s.cols)
		k.pen(nil)
	}
	k.csi("?7h")
	if f.cursor.Hidden {
		k.csi("?25l")
	}
	k.csi("%d q", f.cursor.Shape.Encode(f.cursor.Blink))
	k.csi("%d;%dH\x1b[?2026h", f.cursor.Y+1, f.cursor.X+1)
	k.csi("?25h\x1b[0 q")
}

// savedCursor prints what DECSC keeps, if it was used.
func (k *keyframe) savedCursor(v *saved) {
	if *v == (saved{}) {
		return
	}
	k.pen(&v.pen)
	k.charsets(&v.charsets)
	if v.origin {
		k.csi("?6h")
	}
	// The region is still the whole screen.
	k.csi("%d;%dH", v.y+1, v.x+1)
	if v.wrap {
		k.WriteString("\x1b_" + privateState + "wrap\x1b\\")
	}
	k.WriteString("\x1b7")
	if v.origin {
		k.csi("?6l")
	}
	k.charsets(&charsets{})
	k.pen(nil)
}

// keys prints a page's keyboard flags, and those before.
func (k *keyframe) keys(v *keys) {
	for i, flags := range append(slices.Clone(v.pushed), v.flags) {
		switch {
		case i > 0:
			k.csi(">%du", flags)
		case flags != 0:
			k.csi("=%du", flags)
		}
	}
}

func (k *keyframe) titles() {
	t := &k.s.title
	for _, v := range t.stack {
		k.WriteString("\x1b]2;" + v + "\x1b\\\x1b[22t")
	}
	if t.now != "" || len(t.stack) > 0 {
		k.WriteString("\x1b]2;" + t.now + "\x1b\\")
	}
}

// modes prints those that differ from a fresh screen's.
func (k *keyframe) modes() {
	now, fresh := k.s.modes, defaultModes()
	if now.shape != 0 {
		k.csi("%d q", now.shape)
		fresh.blink = now.shape%2 == 1
	}
	for _, n := range []int{1, 5, 7, 12, 66, 1004, 1006, 1007, 2004} {
		if on := *now.flag(n); on != *fresh.flag(n) {
			k.csi("?%d%c", n, setOrReset(on))
		}
	}
	for n, m := range mouseModes {
		if now.mouse == m {
			k.csi("?%dh", n)
		}
	}
	for _, m := range []struct {
		on bool
		as string
	}{
		{now.insert, "4h"}, {now.newline, "20h"}, {now.hidden, "?25l"},
		{now.sync, "?2026h"}, // already, if there was a picture
		{now.otherKeys != 0, fmt.Sprintf(">4;%dm", now.otherKeys)},
		{now.origin, "?6h"},
	} {
		if m.on {
			k.csi("%s", m.as)
		}
	}
}

func setOrReset(on bool) byte {
	if on {
		return 'h'
	}
	return 'l'
}

func (k *keyframe) charsets(c *charsets) {
	for i, set := range c.set {
		set = cmp.Or(set, 'B')
		k.Write([]byte{0x1b, "()*+"[i], set})
	}
	k.WriteString([]string{"\x0f", "\x0e", "\x1bn", "\x1bo"}[c.gl])
	k.WriteString([]string{"", "", "\x1bN", "\x1bO"}[c.single])
}

// pen changes the reading screen's pen; nil is the one without style.
func (k *keyframe) pen(p *pen) {
	var to pen
	if p != nil {
		to = *p
	}
	if k.level >= 2 {
		to.link = uv.Link{}
	}
	if k.level >= 3 {
		to.style = uv.Style{}
	}
	if to.style != k.now.style {
		k.Write(appendSGR(append(k.AvailableBuffer(), "\x1b["...), &to.style))
	}
	if to.link != k.now.link {
		k.WriteString("\x1b]8;" + to.link.Params + ";" + to.link.URL + "\x1b\\")
	}
	k.now = to
}
