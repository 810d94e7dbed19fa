package policy

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Explain says in lines which rule gave each verdict, and from where.
func (j Judgement) Explain() string {
	var b strings.Builder
	where := func(layer string, line int) string {
		switch {
		case layer == "":
			return ""
		case line == 0:
			return " (" + layer + ")"
		}
		return fmt.Sprintf(" (%s, line %d)", layer, line)
	}
	fmt.Fprintf(&b, "%s: %s%s\n", j.Verdict, j.Rule, where(j.Layer, j.Line))
	if len(j.Parts) > 1 {
		for _, p := range j.Parts {
			fmt.Fprintf(&b, "  %-5s  %s\n         %s%s\n", p.Verdict, oneLine(p.Text), p.Rule, where(p.Layer, p.Line))
		}
	}
	return b.String()
}

// oneLine is text for people to read on one line: what can't be seen becomes
// escapes. It isn't meant to be read back.
func oneLine(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || !seen(r) {
			spell(&b, s[i:i+n])
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}
