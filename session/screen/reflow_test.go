package screen

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"stepbox/session/e2e/must"
)

// texts are the lines of the scrollback and the main screen, whole.
func texts(s *Screen) []string {
	l := &Lines{Screen: s, line: func(string) {}, read: map[int]string{}}
	first := s.history.total - s.history.len()
	last, begun := l.join("", first, first, s.history.total+s.rows)
	if last != "" {
		l.pass(begun, last)
	}
	var rows []int
	for n := range l.read {
		rows = append(rows, n)
	}
	slices.Sort(rows)
	var out []string
	for _, n := range rows {
		out = append(out, l.read[n])
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// Whatever sizes the screen is given, and while text goes on, no text is lost, and the
// cursor stays where it goes on.
func TestReflowKeepsText(t *testing.T) {
	word := rapid.SampledFrom([]string{"a", "word ", "漢字", "👨\u200d👩\u200d👧", "বাংলা", "e\u0301", "  ", "\x1b[31m", "\x1b[m", "long-word-that-wraps", "☺\ufe0f", "\r\n", "\r\n", "\x1b[K"})
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) [2]int {
			return [2]int{rapid.IntRange(2, 40).Draw(t, "cols"), rapid.IntRange(1, 9).Draw(t, "rows")}
		}), 1, 6).Draw(t, "sizes")
		s := New(sizes[0][0], sizes[0][1])
		wide := New(maxSize, 9)
		for _, size := range sizes {
			part := strings.Join(rapid.SliceOfN(word, 0, 12).Draw(t, "text"), "")
			s.Write([]byte(part))
			wide.Write([]byte(part))
			cols, rows := s.Size()
			before := New(cols, rows)
			before.Write(s.Keyframe())
			s.Resize(size[0], size[1])
			must.OK(t, sound(s))
			if a, b := texts(wide), texts(s); !slices.Equal(a, b) {
				t.Fatalf("on %v after %q there are\n%q, want\n%q\nbefore:\n%s", size, part, b, a, state(before))
			}
		}
		s.Write([]byte("END"))
		wide.Write([]byte("END"))
		if a, b := texts(wide), texts(s); !slices.Equal(a, b) {
			t.Fatalf("then there are\n%q, want\n%q", b, a)
		}
	})
}

// Narrow and wide again, the screen is as it was.
func TestReflowAndBack(t *testing.T) {
	s := New(80, 24)
	s.Write(output("coloured", 32<<10))
	s.Write(output("unicode", 8<<10))
	before := state(s)
	for _, size := range [][2]int{{40, 24}, {23, 10}, {120, 50}, {2, 24}, {33, 7}, {80, 24}} {
		s.Resize(size[0], size[1])
		must.OK(t, sound(s))
	}
	if after := state(s); after != before {
		t.Errorf("it differs:\n%s", diff(before, after))
	}
}

// A line is said once, whatever sizes the screen gets meanwhile.
func TestLinesAreSaidOnceThroughResizes(t *testing.T) {
	var got, want []string
	l := NewLines(20, 6, nil, func(s string) { got = append(got, s) })
	for i := range 40 {
		line := fmt.Sprintf("line %d goes on for a while and 漢字 too", i)
		want = append(want, line)
		fmt.Fprint(l, line)
		if i%3 == 0 {
			l.Rest()
		}
		l.Resize(5+i*7%40, 2+i%9)
		fmt.Fprint(l, "\r\n")
	}
	l.Rest()
	got = slices.DeleteFunc(got, func(s string) bool { return s == "" })
	if !slices.Equal(got, want) {
		t.Errorf("said were\n%q, want\n%q", got, want)
	}
}

// What a hostile program can have reflowed is bounded: a line without an end, to the
// narrowest screen.
func TestReflowIsBounded(t *testing.T) {
	s := New(maxSize, 50)
	s.Write([]byte(strings.Repeat("\x1b[3%dm漢x", 1<<19)))
	for _, cols := range []int{2, maxSize, 1, 80} {
		s.Resize(cols, 50)
		if n := s.history.len(); n > mostRows || s.history.size > historyBytes {
			t.Errorf("at %d columns there are %d rows and %d bytes", cols, n, s.history.size)
		}
		must.OK(t, sound(s))
	}
}

func BenchmarkResize(b *testing.B) {
	for _, lines := range []int{historyRows, 10_000} {
		for _, kind := range []string{"plain", "coloured", "unicode"} {
			b.Run(fmt.Sprintf("%d lines %s", lines, kind), func(b *testing.B) {
				s := New(120, 40)
				s.history.maxRows = lines
				s.Write(output(kind, 2<<20))
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					s.Resize([]int{60, 120}[i%2], 40)
				}
				b.ReportMetric(float64(s.history.len()), "rows")
			})
		}
	}
}
