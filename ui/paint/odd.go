package paint

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"stepbox/session/api"
)

// Part is a run of text that is, or isn't, of the kind that can deceive.
type Part struct {
	Text string
	Odd  bool
}

// Marked splits text into parts: visible escapes and letters outside of ASCII
// are odd.
func Marked(s string) []Part {
	s = Clean(s)
	var out []Part
	from, odd := 0, false // of the part that is being read
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		now := r >= utf8.RuneSelf && unicode.IsLetter(r)
		if e := escape(s[i:]); e > 0 {
			n, now = e, true
		}
		if now != odd && i > from {
			out = append(out, Part{s[from:i], odd})
			from = i
		}
		odd = now
		i += n
	}
	if from < len(s) {
		out = append(out, Part{s[from:], odd})
	}
	return out
}

// Unusual says whether text has visible escapes, or characters that will become
// ones, and whether it has letters outside of ASCII.
func Unusual(s string) (escapes, letters bool) {
	escapes = api.Unclear(s)
	for i := 0; i < len(s); {
		if s[i] == '\\' && escape(s[i:]) > 0 {
			escapes = true
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r >= utf8.RuneSelf && unicode.IsLetter(r) {
			letters = true
		}
		i += n
	}
	return escapes, letters
}

// escape is the length of the visible escape that s starts with, or 0.
func escape(s string) int {
	if strings.HasPrefix(s, api.Break) {
		return len(api.Break)
	}
	if len(s) < 2 || s[0] != '\\' {
		return 0
	}
	digits := 0
	switch s[1] {
	case 'n', 't', 'r':
		return 2
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	default:
		return 0
	}
	if len(s) < 2+digits {
		return 0
	}
	for i := 2; i < 2+digits; i++ {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return 0
		}
	}
	return 2 + digits
}
