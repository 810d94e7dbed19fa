package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// fields is what one word of a script becomes: several when it has braces.
func (r *reader) fields(w *syntax.Word) []word {
	// Without an unquoted brace there is no expansion.
	if !slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		l, ok := p.(*syntax.Lit)
		return ok && strings.Contains(l.Value, "{")
	}) {
		return []word{r.word(w)}
	}
	split := *w
	split.Parts = slices.Clone(w.Parts)
	if !syntax.SplitBraces(&split) {
		return []word{r.word(w)}
	}
	out, ok := r.braces(split.Parts, 64)
	if !ok {
		return []word{{text: unknown, many: true}}
	}
	return out
}

// braces expands {a,b}, as long as it makes no more than limit words.
func (r *reader) braces(parts []syntax.WordPart, limit int) ([]word, bool) {
	for i, p := range parts {
		be, ok := p.(*syntax.BraceExp)
		if !ok {
			continue
		}
		if be.Sequence {
			return nil, false
		}
		var out []word
		for _, e := range be.Elems {
			whole := slices.Concat(parts[:i], e.Parts, parts[i+1:])
			ws, ok := r.braces(whole, limit-len(out))
			if !ok {
				return nil, false
			}
			out = append(out, ws...)
			if len(out) > limit {
				return nil, false
			}
		}
		return out, true
	}
	if limit < 1 {
		return nil, false
	}
	return []word{r.word(&syntax.Word{Parts: parts})}, true
}

// ansi is what $'s' means to bash. False: it isn't known, or differs with the
// locale or the shell.
func ansi(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			return "", false
		}
		switch c := s[i]; c {
		case 'x':
			n, v := 0, 0
			for n < 2 && i+1 < len(s) {
				d := strings.IndexByte("0123456789abcdefABCDEF", s[i+1])
				if d < 0 {
					break
				}
				if d > 15 {
					d -= 6
				}
				v = v<<4 | d
				i++
				n++
			}
			if v == 0 {
				return "", false
			}
			b.WriteByte(byte(v))
		case '\\', '\'', '"', '?':
			b.WriteByte(c)
		default:
			j := strings.IndexByte("abeEfnrtv", c)
			if j < 0 {
				return "", false
			}
			b.WriteByte("\a\b\x1b\x1b\f\n\r\t\v"[j])
		}
	}
	return b.String(), true
}
