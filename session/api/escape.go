package api

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Escape makes hostile text into one line of printable characters: what would
// move a cursor, change the order of reading, take no space or isn't valid
// UTF-8 becomes a visible escape such as \t, \n, \x1b or \u202e. All other
// text, backslashes included, is returned as it is: the result is for people to
// read, not to be parsed back.
func Escape(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case visible(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += n
	}
	return b.String()
}

// Break is how a line break of a command is shown: unlike \n, which may be what was typed.
const Break = "↵"

// EscapeScript is Escape for a command, with a Break for each line break. What looks like
// a Break isn't one.
func EscapeScript(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.ReplaceAll(Escape(l), Break, `\u21b5`)
	}
	return strings.Join(lines, Break)
}

// EscapeAll is a list with each text escaped.
func EscapeAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = Escape(s)
	}
	return out
}

// EscapeLine is Escape for a line of a file: its newline is left out, and tabs
// are kept.
func EscapeLine(s string) string {
	s = strings.TrimSuffix(s, "\n")
	if !strings.Contains(s, "\t") {
		return Escape(s)
	}
	return strings.Join(EscapeAll(strings.Split(s, "\t")), "\t")
}

// Trim cuts text to at most n bytes, between runes.
func Trim(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[:n]
	for len(s) > 0 {
		if r, size := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || size > 1 {
			break
		}
		s = s[:len(s)-1]
	}
	return s
}

// Unclear says whether Escape had to change s, so that a screen can warn.
func Unclear(s string) bool { return !plain(s) }

func plain(s string) bool {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || !visible(r) {
			return false
		}
		i += n
	}
	return true
}

// visible says whether a rune can be shown as it is. Spaces other than U+0020
// look like it but don't behave like it in a shell, and combining marks, fillers
// and variation selectors can hide in the rune before them.
func visible(r rune) bool {
	switch {
	case r == ' ':
		return true
	case r < 0x20 || r == 0x7f:
		return false
	case r < 0x7f:
		return true
	case r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0, r == 0x2800: // blank letters
		return false
	case unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r) || unicode.Is(unicode.Cf, r):
		return false
	}
	return unicode.IsPrint(r)
}

// EscapeJSON is JSON of the same value in which no text can do anything to a terminal, or
// be read otherwise than it is: what Escape would not show stands as \uXXXX. Line breaks
// between values stay.
func EscapeJSON(text []byte) []byte {
	if plain(strings.ReplaceAll(string(text), "\n", "")) {
		return text
	}
	out := make([]byte, 0, len(text)+16)
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == '\n' || visible(r) && (r != utf8.RuneError || n > 1):
			out = append(out, text[:n]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		text = text[n:]
	}
	return out
}
