package policy

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Line is argv as a person would type it at a bash prompt: on one line, quoted
// where needed, and with everything that can't be seen (control characters,
// unusual spaces, bidirectional and zero-width characters, bytes that aren't
// UTF-8) spelled as $'\x..', byte by byte. A shell that reads it gets exactly
// argv back. Its length is at most four times that of argv, and some.
func Line(argv []string) string {
	n := len(argv)
	for _, a := range argv {
		n += len(a) + 2
	}
	var b strings.Builder
	b.Grow(n)
	for i, a := range argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		quote(&b, a, i == 0)
	}
	return b.String()
}

// quote writes one argument. first says that it names the program, where more
// words mean something to a shell.
func quote(b *strings.Builder, s string, first bool) {
	plain, visible := s != "", true
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || !seen(r) {
			visible = false
			break
		}
		plain = plain && bare(r)
		i += n
	}
	switch {
	case !visible:
		escape(b, s)
	case s == "{}": // find(1) and xargs(1) put names in its place; no shell expands it
		b.WriteString(s)
	case !plain, s[0] == '=', first && (reserved(s) || strings.Contains(s, "=")):
		b.WriteByte('\'')
		b.WriteString(strings.ReplaceAll(s, "'", `'\''`))
		b.WriteByte('\'')
	default:
		b.WriteString(s)
	}
}

// escape writes s in bash's ANSI-C quotes.
func escape(b *strings.Builder, s string) {
	b.WriteString("$'")
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == utf8.RuneError && n == 1, !seen(r):
			spell(b, s[i:i+n])
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	b.WriteByte('\'')
}

// spell writes what can't be seen.
func spell(b *strings.Builder, s string) {
	const hex = "0123456789abcdef"
	for _, c := range []byte(s) {
		if i := strings.IndexByte("\n\t\r", c); i >= 0 {
			b.WriteString(`\` + "ntr"[i:i+1])
		} else {
			b.Write([]byte{'\\', 'x', hex[c>>4], hex[c&15]})
		}
	}
}

// bare says whether a shell takes a rune for itself wherever it stands.
func bare(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return true
	case r < 0x80:
		return strings.ContainsRune("_@%+=:,./-", r)
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// reserved says whether a shell reads the first word of a command as grammar.
func reserved(s string) bool {
	switch s {
	case "declare", "export", "local", "readonly", "typeset", "nameref", "let", "coproc", "select", "time", "function", "@test":
		return true
	}
	return syntax.IsKeyword(s)
}

// seen says whether a rune shows on a screen as what it is. Spaces other than
// U+0020 look like it but don't separate words, and combining marks and fillers
// can hide in the rune before them.
func seen(r rune) bool {
	switch {
	case r == ' ':
		return true
	case r < 0x20 || r == 0x7f:
		return false
	case r < 0x7f:
		return true
	case r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0, r == 0x2800: // blank, though letters or symbols
		return false
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return false
	}
	return unicode.IsPrint(r)
}
