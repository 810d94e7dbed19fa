package screen

import (
	"strings"
	"testing"
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
