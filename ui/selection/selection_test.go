package selection

import (
	"strings"
	"testing"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rows are rows of so many columns; one that begins with ↳ goes on the one before.
func rows(width int, all ...string) func(int) Row {
	var row func(y int) Row
	row = func(y int) Row {
		text, on := strings.CutPrefix(all[y], "↳")
		s := uv.NewScreenBuffer(width, 1)
		s.Method = ansi.GraphemeWidth
		uv.NewStyledString(text).Draw(s, s.Bounds())
		r := Read(s, s.Bounds(), 0)
		if on {
			r = r.Wrapped(row(y - 1))
		}
		return r
	}
	return row
}

func TestText(t *testing.T) {
	text := rows(8, "one two", "three", "12345678", "↳9 end", "漢字ab", "ab cdef", "↳漢字", "in words", "↳  that", "abc", "↳def")
	for _, tt := range []struct {
		name   string
		mode   Mode
		ax, ay int
		hx, hy int
		want   string
	}{
		{"in a row", Chars, 4, 0, 6, 0, "two"},
		{"backwards", Chars, 6, 0, 4, 0, "two"},
		{"over rows", Chars, 4, 0, 1, 1, "two\nth"},
		{"over rows, backwards", Chars, 1, 1, 4, 0, "two\nth"},
		{"blanks at the end", Chars, 4, 1, 7, 1, "e"},
		{"wrapped", Chars, 6, 2, 0, 3, "789"},
		{"wrapped, all", Lines, 3, 2, 0, 3, "123456789 end"},
		{"lines", Lines, 3, 0, 0, 1, "one two\nthree"},
		{"block", Block, 1, 0, 3, 1, "ne\nhre"},
		{"block from the other corner", Block, 3, 0, 1, 1, "ne\nhre"},
		{"block of wrapped rows", Block, 0, 2, 1, 3, "12\n9"},
		{"wide", Chars, 0, 4, 1, 4, "漢"},
		{"half of a wide one", Chars, 1, 4, 2, 4, "漢字"},
		{"block through wide ones", Block, 1, 4, 2, 5, "漢字\nb"},
		{"a wide one that had no room", Chars, 0, 5, 3, 6, "ab cdef漢字"},
		{"words that were wrapped", Chars, 0, 7, 7, 8, "in words  that"},
		{"a row that isn't full", Chars, 0, 9, 7, 10, "abc def"},
		{"nothing", Chars, 7, 1, 7, 1, ""},
		{"beyond the edge", Chars, -3, 0, 99, 1, "one two\nthree"},
	} {
		r := Range{tt.mode, uv.Pos(tt.ax, tt.ay), uv.Pos(tt.hx, tt.hy)}
		if got := r.Text(text); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	indented := func(y int) Row {
		r := rows(8, "name  ab", "↳      cd")(y)
		if r.On {
			r.Indent = r.Blanks()
		}
		return r
	}
	if got := (Range{Chars, uv.Pos(0, 0), uv.Pos(7, 1)}).Text(indented); got != "name  abcd" {
		t.Errorf("beside a name it is %q", got)
	}
}

func TestWord(t *testing.T) {
	row := rows(60, `go test "./a/b.go:12" (漢字 x) https://x.y/z?a=1`)(0)
	for _, tt := range []struct {
		x    int
		want string
	}{
		{0, "go"}, {1, "go"}, {3, "test"}, {10, "./a/b.go:12"}, {8, `"`}, {2, " "}, {23, "漢字"}, {24, "漢字"}, {35, "https://x.y/z?a=1"}, {99, ""},
	} {
		from, to := Word(row, tt.x)
		got := ""
		if from < to {
			got = strings.Join(row.Cells[from:to], "")
		}
		if got != tt.want {
			t.Errorf("at %d it is %q, want %q", tt.x, got, tt.want)
		}
	}
}

func TestWhole(t *testing.T) {
	text := rows(4, "a", "bbbb", "↳cccc", "↳d", "e")
	for y, want := range [][2]int{{0, 0}, {1, 3}, {1, 3}, {1, 3}, {4, 4}} {
		if first, last := Whole(text, y, 5); first != want[0] || last != want[1] {
			t.Errorf("row %d is of %d to %d, want %v", y, first, last, want)
		}
	}
}
