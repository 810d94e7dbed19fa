package screen

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// A keyframe in bounds has all but the beginning of the scrollback, and as much of
// that as there is room for.
func TestKeyframeWithin(t *testing.T) {
	s := New(40, 5)
	for i := range 1000 {
		fmt.Fprintf(s, "line %d %s\r\n", i, strings.Repeat("x", i%30))
	}
	fmt.Fprint(s, "\x1b[31mred\x1b[?1049hother\x1b[12")
	whole := s.Keyframe()
	for _, c := range []struct{ lines, small, least, most int }{
		{1 << 20, 1 << 20, 996, 996}, {100, 1 << 20, 100, 100}, {100, len(whole) / 50, 5, 30}, {100, 10, 0, 0}, {0, 1 << 20, 0, 0},
	} {
		b := s.KeyframeWithin(c.lines, c.small)
		got := New(40, 5)
		_, _ = got.Write(b)
		if n := got.ScrollbackLen(); n < c.least || n > c.most || n > 0 && len(b) > c.small {
			t.Errorf("within %d lines and %d bytes there are %d and %d", c.lines, c.small, n, len(b))
		}
		if !bytes.Equal(got.KeyframeWithin(0, 0), s.KeyframeWithin(0, 0)) {
			t.Errorf("within %d lines and %d bytes the screen isn't the same", c.lines, c.small)
		}
		want := rowsFrom(s, 996-got.ScrollbackLen())
		if lines := rowsFrom(got, 0); strings.Join(lines, "\n") != strings.Join(want, "\n") {
			t.Errorf("within %d lines and %d bytes they are %.200q, want %.200q", c.lines, c.small, lines, want)
		}
	}
}

// rowsFrom are the rows from a number on, with the screen's.
func rowsFrom(s *Screen, n int) (rows []string) {
	l := Lines{Screen: s}
	for ; n < s.history.total; n++ {
		row, _ := l.row(n)
		rows = append(rows, row)
	}
	return append(rows, s.Text()...)
}
