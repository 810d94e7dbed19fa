package screen

import (
	"fmt"
	"strings"
	"testing"

	uv "github.com/charmbracelet/ultraviolet"
)

// Rows that were wrapped go on in the next, on the screen and in the scrollback; and a
// keyframe's screen says the same.
func TestWrapped(t *testing.T) {
	s := New(4, 3)
	_, _ = s.Write([]byte("ab\r\n12345\r\ncd\r\nabcdefgh"))
	want := []bool{false, true, false, false, true, false}
	look := func(s *Screen, where string) {
		t.Helper()
		if n := s.ScrollbackLen() + 3; n != len(want) {
			t.Fatalf("%s has %d rows", where, n)
		}
		for y, on := range want {
			if s.Wrapped(y) != on {
				t.Errorf("%s: row %d goes on: %v, want %v", where, y, !on, on)
			}
		}
		for _, y := range []int{-1, 6, 99} {
			if s.Wrapped(y) {
				t.Errorf("%s: row %d, which there isn't, goes on", where, y)
			}
		}
	}
	look(s, "the screen")
	again := New(4, 3)
	_, _ = again.Write(s.Keyframe())
	look(again, "its keyframe's")
	_, _ = s.Write([]byte("\x1b[?1049h\x1b[H" + strings.Repeat("x", 6)))
	if !s.Wrapped(0) || s.Wrapped(1) {
		t.Error("on the alternate screen rows aren't its own")
	}
}

// A line keeps its number while it moves up and away, however wide the screen is.
func TestLine(t *testing.T) {
	s := New(10, 3)
	marks := map[string]int{}
	for i := range 3000 {
		if i%500 == 0 || i > 2990 {
			marks[fmt.Sprintf("line %d", i)] = s.Line()
		}
		_, _ = fmt.Fprintf(s, "line %d%s\r\n", i, strings.Repeat(" and more", i%3))
	}
	if n := s.Line(); n != 3000 {
		t.Errorf("after 3000 lines the cursor is on line %d", n)
	}
	_, _ = s.Write([]byte("\x1b[?1049h\x1b[2;3Hfull screen"))
	if n := s.Line(); n != 3000 {
		t.Errorf("behind the alternate screen it is on line %d", n)
	}
	_, _ = s.Write([]byte("\x1b[?1049l"))
	s.Resize(10, 8)
	found := 0
	for text, line := range marks {
		row := s.RowOf(line)
		if row < 0 {
			continue
		}
		found++
		at := uv.NewScreenBuffer(10, 1)
		s.Draw(at, at.Bounds(), s.ScrollbackLen()-row)
		if row >= s.ScrollbackLen() {
			s.Draw(at, uv.Rect(0, s.ScrollbackLen()-row, 10, 8), 0)
		}
		if got := at.Render(); !strings.HasPrefix(got, text) {
			t.Errorf("%q is said to be where %q is", text, got)
		}
	}
	if found < 10 || s.RowOf(0) >= 0 || s.RowOf(99999) >= 0 {
		t.Errorf("%d lines are found; of those that aren't there %d and %d", found, s.RowOf(0), s.RowOf(99999))
	}
}
