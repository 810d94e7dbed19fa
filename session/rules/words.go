package rules

import "strings"

// Exactly is the text of a rule on just these words, and nothing else. It says no where
// there is none: a word is empty, or has what can't be seen on a line.
func Exactly(words []string) (string, bool) {
	out := make([]string, len(words))
	for i, w := range words {
		if w == "" || CheckText(w) != nil {
			return "", false
		}
		var b strings.Builder
		for at, r := range w {
			if strings.ContainsRune(` |*?[\`, r) || r == '<' && at == 0 {
				b.WriteByte('\\')
			}
			b.WriteRune(r)
		}
		out[i] = b.String()
	}
	return strings.Join(out, " "), true
}
