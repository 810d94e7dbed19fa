package redact_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"stepbox/session/redact"
)

// long is a value of more than is looked for at first.
const long = "0123456789abcdef0123456789abcdef0123456789abcdef-the-end"

// masking knows values of several kinds: one that begins another, one of lines, one
// whose end is its own beginning, one with a letter of two bytes.
func masking() *redact.Mask {
	return redact.Recording([]string{
		"A_KEY=sk-ant-0123456789", "B_KEY=sk-ant-0123456789-and-more", "C_KEY=line one\nline two", "D_KEY=aabaabaab", "E_KEY=pässword", "F_KEY=short",
		"G_KEY=" + long,
	}, nil).Mask()
}

// masked is what becomes of pieces, all of it.
func masked(pieces ...string) string {
	m := masking()
	var out strings.Builder
	for _, p := range pieces {
		out.Write(m.Write([]byte(p)))
	}
	out.Write(m.Flush())
	return out.String()
}

func dots(n int) string { return strings.Repeat("•", n) }

func TestMask(t *testing.T) {
	for in, want := range map[string]string{
		"":                                   "",
		"nothing sk-ant-012345678 short":     "nothing sk-ant-012345678 short",
		"A_KEY=sk-ant-0123456789\r\n$ ":      "A_KEY=" + dots(17) + "\r\n$ ",
		"sk-ant-0123456789-and-more.":        dots(26) + ".",
		"sk-ant-0123456789-and-less.":        dots(17) + "-and-less.",
		"sk-ant-0123456789sk-ant-0123456789": dots(34),
		"sk-ant-sk-ant-0123456789":           "sk-ant-" + dots(17),
		"<line one\r\nline two>":             "<" + dots(8) + "\r\n" + dots(8) + ">",
		"<line one\nline two>":               "<" + dots(8) + "\n" + dots(8) + ">",
		"xaabaabaabaabx":                     "x" + dots(9) + "aabx",
		"pässword ä":                         dots(8) + " ä",
		"p%C3%A4ssword":                      dots(13), // as in an address
		long + long[:50]:                     dots(len(long)) + long[:50],
		long[:16] + long:                     long[:16] + dots(len(long)),
		"sk-ant-0123":                        "sk-ant-0123", // at the end
		"SK-ANT-0123456789":                  "SK-ANT-0123456789",
	} {
		if got := masked(in); got != want {
			t.Errorf("%q\n becomes %q\n want    %q", in, got, want)
		}
		for i := range in {
			if got := masked(in[:i], in[i:]); got != want {
				t.Errorf("%q|%q\n becomes %q\n want    %q", in[:i], in[i:], got, want)
			}
		}
		if got := masked(strings.Split(in, "")...); got != want {
			t.Errorf("%q by letters\n becomes %q\n want    %q", in, got, want)
		}
	}
	if m := redact.Recording([]string{"A_KEY=short", "PLAIN=long-enough"}, nil).Mask(); m != nil {
		t.Error("there is one for nothing")
	} else if got := m.Write([]byte("x")); string(got) != "x" || m.Held() != 0 || m.Flush() != nil {
		t.Errorf("it makes %q of x", got)
	}
}

// What was shown since nothing came can't be hidden any more, its end can.
func TestMaskFlush(t *testing.T) {
	m := masking()
	var out []byte
	for _, p := range []string{"> sk-ant-0", "123456789 sk-ant-0", "99 sk-an", "t-0123456789-and-m", "ore!"} {
		out = append(out, m.Write([]byte(p))...)
		out = append(out, m.Flush()...)
		if m.Held() != 0 {
			t.Errorf("it holds %d bytes back", m.Held())
		}
	}
	if want := "> sk-ant-0" + dots(9) + " sk-ant-099 sk-an" + dots(12) + "-and-m" + dots(3) + "!"; string(out) != want {
		t.Errorf("it is %q, want %q", out, want)
	}
}

// However a text is cut, the same becomes of it: no value is left, and no other byte
// is lost.
func FuzzMask(f *testing.F) {
	f.Add("a sk-ant-0123456789 b", 5, 11)
	f.Add("aabaabaabaabaab", 1, 2)
	f.Fuzz(func(t *testing.T, text string, a, b int) {
		a, b = min(max(a, 0), len(text)), min(max(b, 0), len(text))
		got := masked(text[:min(a, b)], text[min(a, b):max(a, b)], text[max(a, b):])
		if whole := masked(text); got != whole {
			t.Errorf("%q is %q in pieces and %q at once", text, got, whole)
		}
		for _, v := range []string{"sk-ant-0123456789", "line one\nline two", "aabaabaab", "pässword"} {
			if strings.Contains(got, v) && !strings.Contains(text, "•") {
				t.Errorf("%q is left in %q", v, got)
			}
		}
		if utf8.ValidString(text) && utf8.RuneCountInString(got) != utf8.RuneCountInString(text) {
			t.Errorf("%q has another length than %q", got, text)
		}
	})
}

// BenchmarkMask is what a flood costs, of a log's lines and of what is likest to a value.
func BenchmarkMask(b *testing.B) {
	for name, line := range map[string]string{
		"log":     "2026-11-26T21:06:31Z info  request served path=/api/v1/items/4711 status=200 took=12ms task=sk\r\n",
		"alike":   "sk-ant-012345678x",
		"secrets": "sk-ant-0123456789 ",
	} {
		b.Run(name, func(b *testing.B) {
			m, text := masking(), bytes.Repeat([]byte(line), 32<<10/len(line))
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				m.Write(text)
			}
		})
	}
}
