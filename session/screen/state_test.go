package screen

import (
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"stepbox/session/e2e/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// state says everything that later bytes or a person could tell apart.
func state(s *Screen) string {
	var b strings.Builder
	grid := func(name string, p *page) {
		fmt.Fprintf(&b, "%s saved %+v\n%s keys %v\n", name, p.saved, name, p.keys)
		for y := range p.grid.lines {
			l := &p.grid.lines[y]
			fmt.Fprintf(&b, "%2d %v%s|%s\n", y, l.soft, gapOf(l.soft, l.gap), cells(l.cells[:l.trimmed()]))
		}
	}
	grid("main", s.main)
	if s.page == s.alt {
		grid("alt", s.alt)
	}
	for i := range s.history.len() {
		l := s.history.line(i)
		fmt.Fprintf(&b, "history %v%s|", l.soft, gapOf(l.soft, l.gap))
		var row []cell
		l.each(func(x int, c *cell) {
			if x+int(c.width) <= s.cols {
				row = append(row, *c)
			}
		})
		for len(row) > 0 && row[len(row)-1] == blankCell {
			row = row[:len(row)-1]
		}
		fmt.Fprintln(&b, cells(row))
	}
	fmt.Fprintf(&b, "history of %d rows at most\n", s.history.maxRows)
	m := s.modes
	fmt.Fprintf(&b, "cursor %+v margins %+v modes %+v\n", s.cursor, s.margins, m)
	fmt.Fprintf(&b, "tabs %v charsets %+v colors %v\n", s.tabs, s.charsets, s.colors)
	fmt.Fprintf(&b, "joint %v %d,%d repeat %q title %q %q pending %q faults %d\n",
		s.joint.valid, s.joint.x, s.joint.y, s.repeat, s.title.now, s.title.stack, s.pending(), s.faults)
	return b.String()
}

func gapOf(soft, gap bool) string {
	if soft && gap {
		return ", but for a gap"
	}
	return ""
}

func cells(l []cell) string {
	var b strings.Builder
	var now pen
	for _, c := range l {
		var look pen
		if c.pen != nil {
			look = *c.pen
		}
		if look != now && c.width > 0 {
			fmt.Fprintf(&b, "{%+v}", look)
			now = look
		}
		switch {
		case c.width == 0:
			b.WriteString("<")
		case c.text == " ":
			b.WriteString(".")
		default:
			b.WriteString(c.text)
		}
	}
	return b.String()
}

// diff shows the lines that differ.
func diff(a, b string) string {
	la, lb := strings.Split(a, "\n"), strings.Split(b, "\n")
	var out strings.Builder
	for i := range max(len(la), len(lb)) {
		x, y := "", ""
		if i < len(la) {
			x = la[i]
		}
		if i < len(lb) {
			y = lb[i]
		}
		if x != y {
			fmt.Fprintf(&out, "- %s\n+ %s\n", x, y)
		}
	}
	return out.String()
}

// sound checks what every method promises to keep.
func sound(s *Screen) error {
	pages := []*page{s.main}
	if s.alt != nil {
		pages = append(pages, s.alt)
	}
	for _, p := range pages {
		g := p.grid
		if g.cols != s.cols || g.rows != s.rows || len(g.lines) != s.rows {
			return fmt.Errorf("grid %d×%d on a screen of %d×%d", g.cols, g.rows, s.cols, s.rows)
		}
		for y := range g.lines {
			l := &g.lines[y]
			if len(l.cells) != s.cols {
				return fmt.Errorf("row %d has %d cells", y, len(l.cells))
			}
			for x := 0; x < s.cols; x++ {
				c := &l.cells[x]
				if x >= l.used && *c != blankCell {
					return fmt.Errorf("cell %d,%d beyond used %d: %+v", x, y, l.used, *c)
				}
				switch c.width {
				case 1:
				case 2:
					if x+1 >= s.cols || l.cells[x+1] != (cell{}) {
						return fmt.Errorf("cell %d,%d lacks its other half", x, y)
					}
					x++
				default:
					return fmt.Errorf("cell %d,%d has width %d", x, y, c.width)
				}
				if !wholeCluster(c.text) {
					return fmt.Errorf("cell %d,%d holds %q", x, y, c.text)
				}
			}
		}
		if v := p.saved; v.x < 0 || v.y < 0 || v.x >= s.cols || v.y >= s.rows {
			return fmt.Errorf("saved cursor at %d,%d", v.x, v.y)
		}
	}
	c, m := s.cursor, s.margins
	if c.x < 0 || c.y < 0 || c.x >= s.cols || c.y >= s.rows {
		return fmt.Errorf("cursor at %d,%d of %d×%d", c.x, c.y, s.cols, s.rows)
	}
	if m.top < 0 || m.top >= m.bottom || m.bottom > s.rows || m.left < 0 || m.left >= m.right || m.right > s.cols {
		return fmt.Errorf("margins %+v of %d×%d", m, s.cols, s.rows)
	}
	if len(s.tabs) != s.cols {
		return fmt.Errorf("%d tab stops of %d columns", len(s.tabs), s.cols)
	}
	if s.faults > 0 {
		return fmt.Errorf("%d faults", s.faults)
	}
	return nil
}

// pieces are what random streams are made of, besides random sequences.
var pieces = []string{
	"a", "hello world ", "0123456789012345678901234567890", " ", "\r\n", "\n", "\r", "\b", "\t", "\a", "\x0e", "\x0f", "\v", "\x00",
	"é", "e\u0301", "\u0301", "漢字", "한", "\u1100", "\u1161", "👍", "👍🏽", "🏽", "👨‍👩‍👧", "\u200d", "🇩", "🇪", "☺", "\ufe0f", "\ufe0e",
	"─│┌", "\u200b", "\u202e", "\u0600", "क्ष", "\u00ad", "\ufeff", "ﷺ", "\xff", "\xc3", "\xe2\x9c", "\x9b31m", "\xc2\x9b", "\u3099",
	"\x1b7", "\x1b8", "\x1bD", "\x1bE", "\x1bM", "\x1bH", "\x1bc", "\x1b=", "\x1b>", "\x1b#8", "\x1b(0", "\x1b)0", "\x1b(B", "\x1b*A", "\x1bn", "\x1bN", "\x1bO", "lqqk",
	"\x1b[m", "\x1b[1;31m", "\x1b[4:3;58:2::1:2:3m", "\x1b[38;5;200;48;2;1;2;3m", "\x1b[7;9;3m", "\x1b[41m", "\x1b[38:3::1:2:3m", "\x1b[48:4:0:9:8:7:6m",
	"\x1b[H", "\x1b[2J", "\x1b[J", "\x1b[1J", "\x1b[3J", "\x1b[K", "\x1b[1K", "\x1b[2K", "\x1b[5;3H", "\x1b[99;99H", "\x1b[L", "\x1b[M", "\x1b[2@", "\x1b[3P", "\x1b[4X", "\x1b[S", "\x1b[2T", "\x1b[3b", "\x1b[2Z", "\x1b[I",
	"\x1b[2;4r", "\x1b[r", "\x1b[?69h", "\x1b[3;9s", "\x1b[?69l", "\x1b[s", "\x1b[u", "\x1b[g", "\x1b[3g", "\x1b[?5W", "\x1b[!p",
	"\x1b[4h", "\x1b[4l", "\x1b[20h", "\x1b[20l", "\x1b[?6h", "\x1b[?6l", "\x1b[?7l", "\x1b[?7h", "\x1b[?5h", "\x1b[?25l", "\x1b[?1h", "\x1b[?66h",
	"\x1b[?47h", "\x1b[?47l", "\x1b[?1047h", "\x1b[?1047l", "\x1b[?1049h", "\x1b[?1049l", "\x1b[?1048h", "\x1b[?1048l",
	"\x1b[?1000;1006h", "\x1b[?1003h", "\x1b[?1002l", "\x1b[?9h", "\x1b[?1004h", "\x1b[?2004h", "\x1b[?2026h", "\x1b[?2026l", "\x1b[?1007l", "\x1b[4 q", "\x1b[0 q", "\x1b[?12l",
	"\x1b[c", "\x1b[>c", "\x1b[6n", "\x1b[?6n", "\x1b[?2026$p", "\x1b[?u", "\x1b[>5u", "\x1b[>29u", "\x1b[<u", "\x1b[=9;2u", "\x1b[=1;3u", "\x1b[>4;2m", "\x1b[>4m", "\x1b[18t", "\x1b[22;0t", "\x1b[23;0t", "\x1bP$qm\x1b\\", "\x1bP+q544e\x1b\\", "\x1b]11;?\a", "\x1b]4;1;?\x1b\\",
	"\x1b]0;title ✳ “x”\a", "\x1b]2;\x1b\\", "\x1b]8;id=1;https://example.org/a\x1b\\", "\x1b]8;;\x1b\\", "\x1b]8;;file:///etc/passwd\a", "\x1b]11;#102030\a", "\x1b]10;rgb:1/2/3\x1b\\", "\x1b]111\a", "\x1b]52;c;aGk=\a", "\x1b]9;hi\a", "\x1bkname\x1b\\",
	"\x1b_stepbox;wrap\x1b\\", "\x1b_stepbox;join=efb88f\x1b\\", "\x1b[1;99H☺\ufe0f\x1b[H\x1b[@", "का", "🇩🇪🇫", "☝🏽", "\u00ad", "\x1b_stepbox;at=3,2;repeat=c3a9;joint=1,1;soft\x1b\\", "\x1b_stepbox;repeat=1b5b;joint=9999,-1\x1b\\",
	"\x1b", "\x1b[", "\x1b[12", "\x1b]0;abc", "\x1bP", "\x18", "\x1a", "\x1b[<1;2m", "\x1b[1;2;3", "\x1b[?", "\x1b[ ", "\x1b( ", "\x7f",
	"\x1b[1;24r\x1b[3S", "a\x1b[88888888b", "\x1b[99999999999999999999C", "\x1b[65535;65535H", "\x1b[9999L", "\x1b[9999@",
}

// stream draws a random byte stream, mostly of escape sequences.
func stream(t *rapid.T) []byte {
	piece := rapid.OneOf(
		rapid.SampledFrom(pieces),
		rapid.SampledFrom(pieces),
		rapid.Custom(func(t *rapid.T) string {
			first := rapid.SampledFrom([]string{"", "", "", "?", ">", "=", "<"}).Draw(t, "first")
			nums := rapid.SliceOfN(rapid.SampledFrom([]string{"", "0", "1", "2", "3", "4", "5", "7", "8", "12", "25", "38", "48", "100", "1049", "70000"}), 0, 5).Draw(t, "nums")
			sep := rapid.SampledFrom([]string{";", ";", ":"}).Draw(t, "sep")
			final := rapid.SampledFrom([]string{"@", "A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M", "P", "S", "T", "X", "Z", "`", "a", "b", "d", "e", "f", "g", "h", "l", "m", "n", "r", "s", "t", "u", " q", "$p", "!p"}).Draw(t, "final")
			return "\x1b[" + first + strings.Join(nums, sep) + final
		}),
		rapid.Custom(func(t *rapid.T) string {
			return string(rapid.SliceOfN(rapid.Byte(), 1, 6).Draw(t, "raw"))
		}),
	)
	return []byte(strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "pieces"), ""))
}

func size(t *rapid.T) (int, int) {
	return rapid.IntRange(1, 20).Draw(t, "cols"), rapid.IntRange(1, 8).Draw(t, "rows")
}

// The state depends on the bytes, not on how they were cut into writes.
func TestSplitsMakeNoDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cols, rows := size(t)
		p := stream(t)
		whole, parts := New(cols, rows), New(cols, rows)
		var ra, rb strings.Builder
		whole.OnReply(func(p []byte) { ra.Write(p) })
		parts.OnReply(func(p []byte) { rb.Write(p) })
		whole.Write(p)
		for rest := p; len(rest) > 0; {
			n := rapid.IntRange(1, min(len(rest), 9)).Draw(t, "n")
			parts.Write(rest[:n])
			rest = rest[n:]
		}
		if a, b := state(whole), state(parts); a != b {
			t.Fatalf("%q in parts differs:\n%s", p, diff(a, b))
		}
		if ra.String() != rb.String() {
			t.Fatalf("%q: replies differ: %q, %q", p, ra.String(), rb.String())
		}
		if err := sound(whole); err != nil {
			t.Fatalf("%q: %v", p, err)
		}
	})
}

// A keyframe taken anywhere, also within a sequence, leads to the same state,
// and what follows has the same effect.
func TestKeyframeGivesTheSameState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cols, rows := size(t)
		a := New(cols, rows)
		for range rapid.IntRange(1, 3).Draw(t, "rounds") {
			a.Write(stream(t))
			if rapid.Bool().Draw(t, "resize") {
				a.Resize(size(t))
			}
		}
		p := stream(t)
		n := rapid.IntRange(0, len(p)).Draw(t, "cut")
		a.Write(p[:n])
		b := New(a.cols, a.rows)
		k := a.Keyframe()
		b.Write(k)
		if x, y := state(a), state(b); x != y {
			t.Fatalf("keyframe %q differs:\n%s", k, diff(x, y))
		}
		a.Write(p[n:])
		b.Write(p[n:])
		if x, y := state(a), state(b); x != y {
			t.Fatalf("after keyframe %q and %q:\n%s", k, p[n:], diff(x, y))
		}
		must.OK(t, sound(a))
	})
}
