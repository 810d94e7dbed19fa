package screen

import (
	"image/color"
	"strings"
	"testing"
	"time"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/e2e/must"
)

func write(t *testing.T, cols, rows int, text string) *Screen {
	t.Helper()
	s := New(cols, rows)
	s.Write([]byte(text))
	must.OK(t, sound(s))
	return s
}

// sequences and what a screen of 10×5 shows after them.
var sequences = map[string]struct{ in, want string }{
	"text":                      {"hello", "hello"},
	"wrap":                      {"0123456789abc", "0123456789|abc"},
	"no wrap":                   {"\x1b[?7l0123456789abc", "012345678c"},
	"wrap waits":                {"0123456789\x1b[Da", "01234567a9"},
	"wide wraps whole":          {"012345678漢x", "012345678|漢x"},
	"mark joins":                {"e\u0301x", "e\u0301x"},
	"mark joins over colours":   {"e\x1b[31m\u0301x", "e\u0301x"},
	"mark after a move is lost": {"e\x1b[C\u0301x", "e x"},
	"emoji grows":               {"☺\ufe0fx", "☺\ufe0fx"},
	"flags":                     {"🇩🇪🇫🇷", "🇩🇪🇫🇷"},
	"family":                    {"👨‍👩‍👧x", "👨‍👩‍👧x"},
	"invalid bytes":             {"a\xff\xc3(b\xe2\x9cc\xf0\x9f\x98d", "a\ufffd\ufffd(b\ufffdc\ufffdd"},
	"8-bit controls are text":   {"a\x9b31mb", "a\ufffd31mb"},
	"insert mode":               {"abc\x1b[H\x1b[4hxy", "xyabc"},
	"insert mode pushes out":    {"0123456789\x1b[H\x1b[4hxy", "xy01234567"},
	"insert wide":               {"abc\x1b[H\x1b[4h漢", "漢abc"},
	"insert characters":         {"abc\x1b[H\x1b[2@", "  abc"},
	"insert before wide":        {"漢字\x1b[H\x1b[@", " 漢字"},
	"delete wide":               {"漢字x\x1b[H\x1b[2P", "字x"},
	"delete half a wide":        {"漢字x\x1b[H\x1b[P", " 字x"},
	"overwrite half a wide":     {"漢字\x1b[2Gx", " x字"},
	"erase half a wide":         {"漢字\x1b[2G\x1b[X", "  字"},
	"lines":                     {"a\r\nb\r\nc\x1b[1;1H\x1b[L", "|a|b|c"},
	"delete line":               {"a\r\nb\r\nc\x1b[1;1H\x1b[M", "b|c"},
	"region":                    {"a\r\nb\r\nc\r\nd\x1b[2;3r\x1b[3;1H\nx", "a|c|x|d"},
	"reverse index":             {"a\r\nb\x1b[H\x1bMx", "x|a|b"},
	"columns":                   {"abcdef\r\nghijkl\x1b[?69h\x1b[3;4s\x1b[1;3H\x1b[M", "abijef|gh  kl"},
	"tabs":                      {"a\tb", "a       b"},
	"tab stops":                 {"\x1b[3G\x1bH\ra\tb", "a b"},
	"line drawing":              {"\x1b(0lqk\x1b(Blqk", "┌─┐lqk"},
	"shift out":                 {"\x1b)0a\x0eq\x0fq", "a─q"},
	"single shift":              {"\x1b*0\x1bNqq", "─q"},
	"repeat":                    {"ab\x1b[3b", "abbbb"},
	"repeat to the end":         {"ab\x1b[99b", "abbbbbbbbb"},
	"save and restore":          {"ab\x1b7cd\x1b8x", "abxd"},
	"origin":                    {"\x1b[2;4r\x1b[?6h\x1b[Hx", "|x"},
	"alternate":                 {"main\x1b[?1049halt\x1b[?1049lx", "mainx"},
	"alignment":                 {"\x1b#8\x1b[2;1H\x1b[J", "EEEEEEEEEE"},
	"escape k is a title":       {"a\x1bktitle\x1b\\b", "ab"},
	"title with a curly quote":  {"a\x1b]0;✳ “x”\ab", "ab"},
	"newline mode":              {"a\x1b[20h\nb", "a|b"},
	"bidi controls":             {"a\u202eb\u2066c", "abc"},
}

func TestWhatSequencesDo(t *testing.T) {
	for name, c := range sequences {
		t.Run(name, func(t *testing.T) {
			s := write(t, 10, 5, c.in)
			if got := strings.TrimRight(strings.Join(s.Text(), "|"), "|"); got != c.want {
				t.Errorf("%q shows %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func TestReplies(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[c": "\x1b[?62;22c", "\x1b[>c": "\x1b[>1;10;0c", "\x1b[5n": "\x1b[0n", "ab\x1b[6n": "\x1b[1;3R",
		"\x1b[?u": "\x1b[?0u", "\x1b[?2026$p": "\x1b[?2026;2$y", "\x1b[?7$p": "\x1b[?7;1$y", "\x1b[?2027$p": "\x1b[?2027;3$y",
		"\x1b[?31337$p": "\x1b[?31337;0$y", "\x1b[4$p": "\x1b[4;2$y", "\x1b[18t": "\x1b[8;5;10t",
		"\x1b]11;?\a": "\x1b]11;rgb:0000/0000/0000\a", "\x1b]10;?\x1b\\": "\x1b]10;rgb:ffff/ffff/ffff\x1b\\",
		"\x1b]11;#102030\a\x1b]11;?\a": "\x1b]11;rgb:1010/2020/3030\a",
		"\x1bP$qm\x1b\\":               "\x1bP1$r0m\x1b\\", "\x1bP+q5443\x1b\\": "\x1bP0+r\x1b\\",
		// Never answered: what would arrive as if typed.
		"\x1b]52;c;?\a": "", "\x1b]0;rm -rf\a\x1b[21t": "", "\x05": "",
	} {
		s := New(10, 5)
		var got strings.Builder
		s.OnReply(func(p []byte) { got.Write(p) })
		s.Write([]byte(in))
		if got.String() != want {
			t.Errorf("%q answers %q, want %q", in, got.String(), want)
		}
	}
	s := New(10, 5)
	total := 0
	s.OnReply(func(p []byte) {
		if total += len(p); len(p) > maxReply {
			t.Fatalf("%d bytes of replies at once", len(p))
		}
	})
	s.Write([]byte(strings.Repeat("\x1b[c", 10000)))
	if total != 10000*len("\x1b[?62;22c") {
		t.Errorf("%d bytes of replies", total)
	}
}

// What the person's own terminal would act on is filtered.
func TestOutwardSequencesAreFiltered(t *testing.T) {
	s := New(40, 5)
	now := time.Unix(100, 0)
	s.now = func() time.Time { return now }
	s.Write([]byte("\x1b]2;a\x1b\\"))
	if got := s.Title(); got != "a" {
		t.Errorf("title %q", got)
	}
	s.Write([]byte("\x1b]2;b\u202e\u200b\x01" + strings.Repeat("x", 1000) + "\x1b\\"))
	if got := s.Title(); got != "a" {
		t.Errorf("the title changed at once to %q", got)
	}
	now = now.Add(titleEvery)
	if got := s.Title(); got != "b"+strings.Repeat("x", maxTitle-1) {
		t.Errorf("title %q", got)
	}
	for url, kept := range map[string]bool{
		"https://example.org/a": true, "http://x": true, "mailto:a@b": true, "HTTPS://X": true,
		"file:///etc/passwd": false, "javascript:x": false, "ssh://host": false, "x": false, "vscode://x": false,
		"https://a b": false, "https://" + strings.Repeat("x", maxURL): false,
	} {
		s.Write([]byte("\x1b[H\x1b]8;;" + url + "\x1b\\x\x1b]8;;\x1b\\"))
		if p := s.page.grid.cell(0, 0).pen; (p != nil && p.link.URL != "") != kept {
			t.Errorf("link to %q: kept %v", url, !kept)
		}
	}
}

// While a frame is built drawing shows the one before, but not for long.
func TestSynchronizedOutput(t *testing.T) {
	s := New(10, 2)
	now := time.Unix(0, 0)
	s.now = func() time.Time { return now }
	shown := func() string { return drawn(s, 10, 2, 0)[0] }
	s.Write([]byte("\x1b[?2026hone\x1b[?2026l"))
	s.Write([]byte("\x1b[?2026h\x1b[H\x1b[2Ktwo"))
	if got := shown(); got != "one" {
		t.Errorf("shown while building: %q", got)
	}
	if x := s.Cursor().X; x != 3 {
		t.Errorf("cursor at %d", x)
	}
	s.Write([]byte("!"))
	if got := shown(); got != "one" {
		t.Errorf("shown while building on: %q", got)
	}
	k := New(10, 2)
	k.now = s.now
	k.Write(s.Keyframe())
	if got := drawn(k, 10, 2, 0)[0]; got != "one" {
		t.Errorf("a keyframe meanwhile shows %q", got)
	}
	s.Write([]byte("\x1b[?2026l"))
	if got := shown(); got != "two!" {
		t.Errorf("shown after it: %q", got)
	}
	s.Write([]byte("\x1b[?2026h\x1b[H\x1b[2Kthree"))
	now = now.Add(syncLimit)
	if got := shown(); got != "three" {
		t.Errorf("shown when it takes too long: %q", got)
	}
	s.Write([]byte("\x1b[?2026h\x1b[H\x1b[2Kfour")) // beginning again doesn't prolong
	if got := shown(); got != "four" {
		t.Errorf("shown then: %q", got)
	}
}

// Where the clock stands, the frame of before is seen for as long as the next one is built
// in time, also by who reads a keyframe.
func TestSeen(t *testing.T) {
	for at, want := range map[time.Duration]string{syncLimit - 1: "one", syncLimit: "two"} {
		s := New(10, 2)
		s.At(0)
		s.Write([]byte("one"))
		before, whole := s.Seen()
		s.Write([]byte("\x1b[?2026h\x1b[H\x1b[2Ktwo"))
		if now, built := s.Seen(); !whole || built || now != before {
			t.Errorf("seen are %d, %v and then %d, %v", before, whole, now, built)
		}
		s.At(at)
		s.Settle()
		k := New(10, 2)
		k.At(at)
		k.Write(s.Keyframe())
		for _, s := range []*Screen{s, k} {
			if got := drawn(s, 10, 2, 0)[0]; got != want {
				t.Errorf("after %v %q is seen", at, got)
			}
		}
		k.Write([]byte("\x1b[?2026l"))
		if now, whole := k.Seen(); !whole || drawn(k, 10, 2, 0)[0] != "two" {
			t.Errorf("seen are %d, %v when it is built", now, whole)
		}
	}
}

// drawn draws and gives the rows as text.
func drawn(s *Screen, cols, rows, scrollback int) []string {
	b := uv.NewScreenBuffer(cols, rows)
	s.Draw(b, b.Bounds(), scrollback)
	out := make([]string, rows)
	for y := range out {
		out[y] = strings.TrimRight(b.Line(y).String(), " ")
	}
	return out
}

func TestDraw(t *testing.T) {
	s := write(t, 6, 3, "1\r\n2\r\n3\r\n4\r\n5漢字6")
	for back, want := range map[int]string{0: "3|4|5漢字6", 1: "2|3|4", 2: "1|2|3", 99: "1|2|3", -1: "3|4|5漢字6"} {
		if got := strings.Join(drawn(s, 6, 3, back), "|"); got != want {
			t.Errorf("%d back: %q, want %q", back, got, want)
		}
	}
	if got := drawn(s, 4, 3, 0)[2]; got != "5漢" {
		t.Errorf("clipped within a wide character: %q", got)
	}
	if got := drawn(s, 8, 5, 0); got[4] != "" || got[0] != "3" {
		t.Errorf("on a larger area: %q", got)
	}
	// Nothing outside the area is touched, nothing within keeps old content.
	b := uv.NewScreenBuffer(8, 5)
	b.Fill(&uv.Cell{Content: "#", Width: 1})
	s.Draw(b, uv.Rect(1, 1, 6, 3), 0)
	for y := range 5 {
		for x := range 8 {
			inside := x >= 1 && x < 7 && y >= 1 && y < 4
			if c := b.CellAt(x, y); (c.Content == "#") == inside {
				t.Errorf("cell %d,%d is %q", x, y, c.Content)
			}
		}
	}
	s.Draw(b, uv.Rect(-3, -3, 6, 3), 0)
	s.Draw(b, uv.Rect(7, 4, 6, 3), 0)
	s.Write([]byte("\x1b]11;#010203\a\x1b[?5h"))
	s.Draw(b, b.Bounds(), 0)
	if c := b.CellAt(3, 0); c.Style.Bg != (color.RGBA{1, 2, 3, 255}) || c.Style.Attrs&uv.AttrReverse == 0 {
		t.Errorf("the screen's own colours: %+v", c.Style)
	}
}

// Making the screen smaller and larger again loses no line.
func TestResizeKeepsLines(t *testing.T) {
	s := write(t, 10, 5, "1\r\n2\r\n3\r\n4\r\n5")
	s.Resize(10, 2)
	if got := strings.Join(s.Text(), "|"); got != "4|5" {
		t.Errorf("small: %q", got)
	}
	s.Write([]byte("x"))
	s.Resize(10, 5)
	if got := strings.Join(s.Text(), "|"); got != "1|2|3|4|5x" {
		t.Errorf("large again: %q", got)
	}
	s.Resize(3, 5)
	s.Resize(-1, 1<<30)
	if c, r := s.Size(); c != 1 || r != maxSize {
		t.Errorf("size %d×%d", c, r)
	}
	if err := sound(s); err != nil {
		t.Error(err)
	}
}
