package paint

import (
	"image/color"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/colorprofile"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"stepbox/session/e2e/must"
	"stepbox/themes"
)

func screen(w, h int) uv.ScreenBuffer { return uv.NewScreenBuffer(w, h) }

func TestTextStaysInside(t *testing.T) {
	for _, tt := range []struct {
		in   string
		end  int
		want string
	}{
		{"plain", 10, "plain"},
		{"plain", 3, "pla"},
		{"漢字漢字", 7, "漢字漢"},
		{"漢字", 1, ""},
		{"a\x1b[31mb", 20, `a\x1b[31mb`},
		{"a\tb\u202ec", 20, `a\tb\u202ec`},
		{"e\u0301", 20, `e\u0301`},
	} {
		s := screen(20, 1)
		Text(s, 0, 0, tt.end, tt.in, uv.Style{})
		if got := strings.TrimRight(s.Line(0).String(), " "); got != tt.want {
			t.Errorf("%q in %d columns is drawn as %q, want %q", tt.in, tt.end, got, tt.want)
		}
	}
}

func TestShorten(t *testing.T) {
	s := screen(1, 1)
	for _, tt := range []struct {
		in    string
		width int
		right string
		left  string
	}{
		{"abcdef", 6, "abcdef", "abcdef"},
		{"abcdef", 4, "abc…", "…def"},
		{"abcdef", 1, "…", "…"},
		{"abcdef", 0, "", ""},
		{"漢字漢字", 5, "漢字…", "…漢字"},
	} {
		if got := Shorten(s, tt.in, tt.width); got != tt.right {
			t.Errorf("Shorten(%q, %d) = %q, want %q", tt.in, tt.width, got, tt.right)
		}
		if got := ShortenLeft(s, tt.in, tt.width); got != tt.left {
			t.Errorf("ShortenLeft(%q, %d) = %q, want %q", tt.in, tt.width, got, tt.left)
		}
	}
}

// Parts that some terminals join into one character hide nothing that comes after them.
func TestShortenJoined(t *testing.T) {
	for _, parts := range []string{"\u1100" + strings.Repeat("\u1161", 99), "क" + strings.Repeat("\u093e", 999)} {
		for _, m := range []ansi.Method{ansi.WcWidth, ansi.GraphemeWidth} {
			s := screen(80, 1)
			s.Method = m
			Clip(s, 0, 0, 80, "ab "+parts+"; hidden", uv.Style{})
			row := s.Render()
			if !strings.HasPrefix(row, "ab ") || !strings.Contains(row, "hidden") && !strings.Contains(row, "…") {
				t.Errorf("by %v it is drawn as %q", m, row)
			}
		}
	}
}

// Of a command nothing is left out, whatever parts a terminal may join.
func TestWrapJoined(t *testing.T) {
	in := "rm " + "क" + strings.Repeat("\u093e", 99) + " x"
	for _, m := range []ansi.Method{ansi.WcWidth, ansi.GraphemeWidth} {
		s := screen(40, 1)
		s.Method = m
		drawn := ""
		for _, row := range Wrap(s, in, 40) {
			Fill(s, s.Bounds(), uv.Style{})
			Text(s, 0, 0, 40, row, uv.Style{})
			drawn += s.Render()
		}
		if got, want := strings.ReplaceAll(drawn, " ", ""), strings.ReplaceAll(in, " ", ""); got != want {
			t.Errorf("by %v it is drawn as %q", m, got)
		}
	}
}

func TestWrap(t *testing.T) {
	s := screen(1, 1)
	for _, tt := range []struct {
		in    string
		width int
		want  []string
	}{
		{"", 10, []string{""}},
		{"one two three", 8, []string{"one two ", "three"}},
		{"abcdefghij", 4, []string{"abcd", "efgh", "ij"}},
		{"a bcdefghij", 8, []string{"a bcdefg", "hij"}},
		{`cd x\nls\n`, 20, []string{`cd x\n`, `ls\n`}},
		{"漢字漢字", 5, []string{"漢字", "漢字"}},
	} {
		got := Wrap(s, tt.in, tt.width)
		if strings.Join(got, "|") != strings.Join(tt.want, "|") {
			t.Errorf("Wrap(%q, %d) = %q, want %q", tt.in, tt.width, got, tt.want)
		}
	}
}

// A command starts a new row after a line break, and not after what was typed.
func TestScript(t *testing.T) {
	s := screen(1, 1)
	in, want := `printf 'a\n'↵ls`, []string{`printf 'a\n'↵`, "ls"}
	if got := Script(s, in, 20); !slices.Equal(got, want) {
		t.Errorf("Script(%q) = %q, want %q", in, got, want)
	}
	if got := Marked("a↵b"); len(got) != 3 || !got[1].Odd {
		t.Errorf("marked are %v", got)
	}
}

func FuzzWrap(f *testing.F) {
	f.Add("one two\tthree\u202e", 7)
	f.Add("👨‍👩‍👧‍👦 🇩🇪🇫🇷 e\u0301\n", 2)
	f.Fuzz(func(t *testing.T, in string, width int) {
		width = width%200 + 1
		for _, m := range []ansi.Method{ansi.WcWidth, ansi.GraphemeWidth} {
			s := screen(1, 1)
			s.Method = m
			rows := Wrap(s, in, width)
			if got := strings.Join(rows, ""); got != Clean(in) {
				t.Fatalf("wrapping lost something: %q from %q", got, Clean(in))
			}
			for _, r := range rows {
				if w := Width(s, r); w > max(width, 2) && ansi.StringWidth(r) > max(width, 2) {
					t.Fatalf("%q is %d wide, want %d", r, w, width)
				}
			}
			var b strings.Builder
			for _, p := range Marked(in) {
				b.WriteString(p.Text)
			}
			if b.String() != Clean(in) {
				t.Fatalf("marking lost something: %q from %q", b.String(), Clean(in))
			}
			From(s, in, width)
			Shorten(s, in, width)
			ShortenLeft(s, in, width)
		}
	})
}

func TestUnusual(t *testing.T) {
	for _, tt := range []struct {
		in               string
		escapes, letters bool
	}{
		{"go test ./...", false, false},
		{`a\tb`, true, false},
		{"a\tb", true, false},
		{`a\u200bb`, true, false},
		{`C:\path`, false, false},
		{`a\xzz`, false, false},
		{"раypal", false, true},
		{"naïve", false, true},
		{"→ ✓", false, false},
	} {
		e, l := Unusual(tt.in)
		if e != tt.escapes || l != tt.letters {
			t.Errorf("Unusual(%q) = %v, %v", tt.in, e, l)
		}
	}
}

func TestWords(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Bytes(0), "0"}, {Bytes(1023), "1023"}, {Bytes(1024), "1k"}, {Bytes(1536), "1.5k"}, {Bytes(412 << 20), "412M"},
		{Bytes(2 << 30), "2G"}, {Bytes(-5), "0"}, {Bytes(1<<63 - 1), "8E"},
		{Took(-1), "0s"}, {Took(12 * time.Millisecond), "12ms"}, {Took(3250 * time.Millisecond), "3.2s"}, {Took(61 * time.Second), "1m01s"}, {Took(90 * time.Minute), "1h30m"},
		{Clock(67 * time.Second), "01:07"}, {Clock(time.Hour), "1:00:00"}, {Clock(-time.Hour), "00:00"}, {Long(849 * time.Second), "00:14:09"},
		{Ago(0), "just now"}, {Ago(3 * time.Hour), "3 h ago"}, {Ago(30 * time.Hour), "yesterday"}, {Ago(72 * time.Hour), "3 days ago"},
		{Count(1, "file", "files"), "1 file"}, {Count(0, "file", "files"), "0 files"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func TestIndexedKeepsGreysGrey(t *testing.T) {
	for in, want := range map[color.RGBA]ansi.IndexedColor{
		{0x1f, 0x24, 0x30, 0xff}: 235, {0xff, 0xff, 0xff, 0xff}: 231, {0, 0, 0, 0xff}: 16, {0xff, 0, 0, 0xff}: 196,
	} {
		if got := indexed(in, 0); got != want {
			t.Errorf("%v is shown as %v, want %v", in, got, want)
		}
	}
	if indexed(nil, 3) != nil || indexed(color.Black, 3) != ansi.IndexedColor(3) {
		t.Error("no colour stays none, and a theme's own choice stands")
	}
}

func TestBox(t *testing.T) {
	th, err := themes.Load("plain", "")
	must.OK(t, err)
	p := NewPalette(th, colorprofile.TrueColor)
	s := screen(30, 3)
	b, f := Box{Title: "Changes", Facts: Line{{Text: "5 files"}}, Right: Line{{Text: "x"}}, Foot: Line{{Text: "done"}}}, Frame{Screen: s, P: p, Number: "2"}
	if got := b.Draw(uv.Rect(0, 0, 30, 3), f); got != uv.Rect(1, 1, 28, 1) {
		t.Errorf("the inside is %v", got)
	}
	want := "╭ 2 Changes  5 files ───── x ╮\n│                            │\n╰───────────────────── done ─╯"
	if got := s.String(); got != want {
		t.Errorf("drawn\n%s\nwant\n%s", got, want)
	}
	f.Focused = true
	b.Draw(uv.Rect(0, 0, 30, 3), f)
	if got := s.String(); !strings.HasPrefix(got, "┏ 2 Changes") {
		t.Errorf("focus isn't told by weight:\n%s", got)
	}
	for w := range 12 {
		for h := range 4 {
			b.Draw(uv.Rect(0, 0, w, h), f)
		}
	}
}

// What is drawn on a selected row can be read there, in every theme.
func TestWhatIsOnTheGroundCanBeRead(t *testing.T) {
	for _, name := range []string{"dark", "light", "contrast"} {
		th, err := themes.Load(name, "")
		must.OK(t, err)
		p := NewPalette(th, colorprofile.TrueColor)
		for k := range themes.Count {
			s := uv.NewScreenBuffer(1, 1)
			Text(s, 0, 0, 1, "x", p.S(k))
			on := p.S(k).Bg == nil
			Ground(s, s.Bounds(), p.S(themes.Selected))
			if c := s.CellAt(0, 0); on && !apart(c.Style.Fg, c.Style.Bg) {
				t.Errorf("%s: %s can't be read on a selected row", name, k)
			}
		}
	}
}

// On a ground that reverses, a colour would be a ground of its own, also where nothing is.
func TestReversedGround(t *testing.T) {
	s := uv.NewScreenBuffer(2, 1)
	Text(s, 0, 0, 2, "a ", uv.Style{Fg: ansi.Red})
	Ground(s, s.Bounds(), uv.Style{Attrs: uv.AttrReverse})
	for x := range 2 {
		if c := s.CellAt(x, 0); c.Style.Fg != nil || c.Style.Attrs&uv.AttrReverse == 0 {
			t.Errorf("%d: %+v", x, c.Style)
		}
	}
}

// A word that can't be read on the ground of another takes its colour: the ground is
// white in the theme of high contrast, and what is held is yellow.
func TestOnIsReadable(t *testing.T) {
	th, err := themes.Load("contrast", "")
	must.OK(t, err)
	p := NewPalette(th, colorprofile.TrueColor)
	if got := p.On(themes.Held, themes.Bar); got.Fg != p.S(themes.Bar).Fg || got.Bg != p.S(themes.Bar).Bg || got.Attrs&uv.AttrBold == 0 {
		t.Errorf("held on the bar is %v", got)
	}
	if got := p.On(themes.Held, themes.Surface); got.Fg != p.S(themes.Held).Fg {
		t.Errorf("held in a dialog is %v", got)
	}
}
