package screen

import (
	"fmt"
	"strings"
	"testing"
)

// Lines are whole where the screen's edge wrapped them, wherever they are by then.
func TestLinesAreWhole(t *testing.T) {
	var got []string
	l := NewLines(10, 3, nil, func(s string) { got = append(got, s) })
	for _, c := range []struct{ text, want string }{
		{"one two three", "one two three"},
		{"\r\nfull row..\r\nnext", "full row..|next"},
		{"\r\nit blanks the edge", "it blanks the edge"},
		{"\r\nwide char漢字", "wide char漢字"},
		{"\r\nwide, at.漢字", "wide, at.漢字"},
		{"\r\n" + strings.Repeat("a line of many rows ", 5), strings.TrimRight(strings.Repeat("a line of many rows ", 5), " ")},
		{"more\r\n\n\n\n\n", strings.Repeat("a line of many rows ", 5) + "more||"},
		{"after", "||after"}, // an empty line once something is below it
		{"\r\n\r\n", ""},
		{"one\r\n", "|one"},
		{"\x1b[A\x1b[2K\r", ""}, // wiped
		{"\x1b[?1049h\x1b[2J\x1b[Htop\x1b[3;1Hfoot", "top|foot"},
		{"\x1b[?1049l\x1b[2J\x1b[H", ""},
		{"\x1b[2J\x1b[1;6Horder\x1b[1;1Hthe\x1b[3;1Hbelow", "the  order||below"},
		{"\x1b[?1049h\x1b[2J\x1b[Hother", "other"},
		{"\x1b[?1049l", "the  order||below"},
	} {
		got = nil
		_, _ = l.Write([]byte(c.text))
		l.Rest()
		if strings.Join(got, "|") != c.want {
			t.Errorf("%q gives %q, want %q", c.text, got, c.want)
		}
		for range 2 { // nothing is said twice
			got = nil
			l.fresh = true
			if l.Rest(); len(got) > 0 {
				t.Errorf("again after %q: %q", c.text, got)
			}
		}
	}
	got = nil
	again := NewLines(10, 3, l.Keyframe(), func(s string) { got = append(got, s) })
	_, _ = again.Write([]byte("\x1b[3;1H\r\n\n\n"))
	if fmt.Sprintf("%q", got) != `["the  order" "" "below"]` {
		t.Errorf("after a keyframe: %q", got)
	}
	got = nil
	_, _ = l.Write([]byte("\x1b[3;1H\r\n" + strings.Repeat("word ", 2000) + strings.Repeat("x", 10_000) + "\r\n\n\n\n"))
	longest := 0
	for _, s := range got {
		longest = max(longest, len(s))
		if s != "" && strings.Trim(s, "word ") != "" && strings.Trim(s, "x") != "" && !strings.Contains(s, "word x") {
			t.Errorf("a word is cut: %q", s)
		}
	}
	if longest > 2*lineMost {
		t.Errorf("a line has %d bytes", longest)
	}
}
