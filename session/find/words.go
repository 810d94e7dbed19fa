package find

import "strings"

// word is what is looked for: one word, or several that follow each other.
type word struct {
	text   string
	tokens []string // as the index has it
	begun  bool     // words that begin so will do
}

// words takes a text apart as people write it: words, each of which is to be found,
// and "some in quotes" that follow each other. The last one may be begun only, unless
// it is in quotes that end.
func words(text string) (out []word) {
	for i, part := range strings.Split(text, `"`) {
		if i%2 == 0 {
			for _, w := range strings.Fields(part) {
				out = append(out, word{text: w, tokens: tokens(w)})
			}
		} else if p := strings.Join(strings.Fields(part), " "); p != "" {
			out = append(out, word{text: p, tokens: tokens(p)})
		}
	}
	if n := len(out); n > 0 {
		out[n-1].begun = !strings.HasSuffix(strings.TrimSpace(text), `"`) || strings.Count(text, `"`)%2 == 1
	}
	return out
}

// wordsMost bounds how many are looked for.
const wordsMost = 16
