package export

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"stepbox/session/e2e/must"
)

func filtered(t testing.TB, in []byte, size int) (out string) {
	var f filter
	for len(in) > 0 {
		n := min(size, len(in))
		err := f.write(bytes.Clone(in[:n]), func(data []byte, text bool) error {
			out += string(data)
			return nil
		})
		must.OK(t, err)
		in = in[n:]
	}
	return out
}

// What draws is left as it is; what a terminal would obey or answer is gone, however
// the output is cut.
func TestFilter(t *testing.T) {
	for in, want := range map[string]string{
		"plain\r\n\ttext é 漢":                                    "plain\r\n\ttext é 漢",
		"\x1b[1;31mred\x1b[m\x1b[2J\x1b[H\x1b[?25l":              "\x1b[1;31mred\x1b[m\x1b[2J\x1b[H\x1b[?25l",
		"\x1b[38:2::1:2:3mrgb\x1b7\x1b8\x1b(0q\x1b(B":            "\x1b[38:2::1:2:3mrgb\x1b7\x1b8\x1b(0q\x1b(B",
		"a\x1b]52;c;QUJD\x07b":                                   "ab", // the clipboard
		"a\x1b]0;title\x1b\\b":                                   "ab",
		"a\x1b]8;;file:///x\x1b\\l\x1b]8;;\x1b\\b":               "alb",
		"a\x1bPq#0;2;0;0;0\x1b\\b\x1b_G\x1b\\c":                  "abc", // pictures
		"a\x1b^pm\x1b\\b\x1bXsos\x1b\\c\x1bktitle\x1b\\d":        "abcd",
		"a\x1b]0;broken\x1b[31mred":                              "a\x1b[31mred", // a sequence ends it
		"a\x1b]0;never ended":                                    "a",
		"a\x1b[c\x1b[>c\x1b[6n\x1b[?6n\x1b[18t\x1b[5ib\x05\x1bZ": "ab",           // questions, the printer
		"\x1b[?1000h\x1b[?1006;1049h\x1b[?2004hx":                "\x1b[?1049hx", // the mouse, pasting
		"\x1b[?1000:1h\x1b[?1003:0h\x1b[?1;25:1;012h":            "\x1b[?012h",   // no other way to say them
		"\x1b[2h\x1b[4;20h\x1b[12l\x1b[4h\x1b[?3h\x1b[?1042hx":   "\x1b[4hx",
		"a\x1b]0;\x1b]1;\x1b\x1b\\b\x1b]x\x18c":                  "abc",
		"\x1b[>1u\x1b[=5u\x1b[>4;2mx\x1b[>qy\x1b[?2026$pz":       "xyz",
		"\x1b[2 q\x1b[!px":                                       "\x1b[2 q\x1b[!px",
		"a\u009b31mb\x9cc\xff":                                   "a31mb\ufffdc\ufffd", // C1, in UTF-8 and not
		"cut \x1b[31":                                            "cut ",
		"\x1b[" + strings.Repeat("1;", 300) + "mx":               "", // too long: read on as text
	} {
		whole := filtered(t, []byte(in), len(in))
		if want != "" && whole != want {
			t.Errorf("%q became %q, not %q", in, whole, want)
		}
		for _, size := range []int{1, 2, 3} {
			if got := filtered(t, []byte(in), size); want != "" && got != whole {
				t.Errorf("%q in pieces of %d became %q, not %q", in, size, got, whole)
			}
		}
	}
}

// TestFilterKeeps: who adds to what was emitted doesn't change what comes next.
func TestFilterKeeps(t *testing.T) {
	var f filter
	var held []byte
	err := f.write([]byte("\x1b[m\xff\xff\xff\xff\x1b[1mabcdefghijklmn"), func(data []byte, _ bool) error {
		if held == nil {
			held = data
		} else {
			held = append(held, data...)
		}
		return nil
	})
	if want := "\x1b[m\ufffd\ufffd\ufffd\ufffd\x1b[1mabcdefghijklmn"; err != nil || string(held) != want {
		t.Errorf("it became %q: %v", held, err)
	}
}

// TestFilterText: what isn't seen between letters isn't text.
func TestFilterText(t *testing.T) {
	var f filter
	text := ""
	err := f.write([]byte("g\x0eh\x0f\ap\u200b_\u00ad\x1b[1ma\x1b[m\b\r\n"), func(data []byte, is bool) error {
		if is {
			text += string(data)
		}
		return nil
	})
	if err != nil || text != "ghp_a\r\n" {
		t.Errorf("the text is %q: %v", text, err)
	}
}

// TestFilterStrings: strings that others break off take no more time than any bytes.
func TestFilterStrings(t *testing.T) {
	in := bytes.Repeat([]byte("\x1b]"), 1<<14)
	if n := testing.AllocsPerRun(1, func() { filtered(t, in, len(in)) }); n > 1000 {
		t.Errorf("it took %v allocations", n)
	}
}

func FuzzFilter(f *testing.F) {
	f.Add([]byte("a\x1b]52;c;QUJD\x07b\x1b[1mc\xe6\xbc"), 3)
	f.Fuzz(func(t *testing.T, in []byte, size int) {
		out := filtered(t, in, min(max(size, 1), 64))
		if !utf8.ValidString(out) {
			t.Errorf("%q became %q, which isn't UTF-8", in, out)
		}
		for _, bad := range []string{"\x1b]", "\x1bP", "\x1b_", "\x1b^", "\x1bX", "\x1bk", "\x05", "\u009b", "\u009d", "\u0090"} {
			if strings.Contains(out, bad) {
				t.Errorf("%q became %q, which has %q", in, out, bad)
			}
		}
	})
}
