package policy

import (
	"errors"
	"strings"
)

// glob is a pattern for one argument: "*" is any text, "?" any character,
// "[a-z]" or "[!a-z]" one of a set, and a backslash takes away a meaning. All
// are bytes; "/" is a character like others.
type glob string

// checkGlob says what is wrong with a pattern.
func checkGlob(s string) error {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i++; i == len(s) {
				return errors.New("a backslash stands at the end")
			}
		case '[':
			n := setEnd(s[i:])
			if n < 0 {
				return errors.New(`a "[" isn't closed`)
			}
			i += n
		}
	}
	return nil
}

// setEnd is the index of the bracket that closes the set s begins with, or -1.
func setEnd(s string) int {
	i := 1
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		i++
	}
	if i < len(s) && s[i] == ']' {
		i++
	}
	if n := strings.IndexByte(s[min(i, len(s)):], ']'); n >= 0 {
		return i + n
	}
	return -1
}

// match says whether the whole of s fits. It takes at most len(g)*len(s) steps.
func (g glob) match(s string) bool {
	p, i := 0, 0
	star, mark := -1, 0 // the last "*" and where in s it was tried
	for i < len(s) || p < len(g) {
		if p < len(g) {
			if g[p] == '*' {
				star, mark = p, i
				p++
				continue
			}
			if i < len(s) {
				if n, ok := one(string(g[p:]), s[i]); ok {
					p += n
					i++
					continue
				}
			}
		}
		if star < 0 || mark >= len(s) {
			return false
		}
		mark++
		p, i = star+1, mark
	}
	return true
}

// one matches c against the first element of g, which is n bytes long.
func one(g string, c byte) (n int, ok bool) {
	switch g[0] {
	case '?':
		return 1, true
	case '\\':
		if len(g) > 1 {
			return 2, g[1] == c
		}
	case '[':
		end := setEnd(g)
		if end < 0 {
			break
		}
		set := g[1:end]
		not := set[0] == '!' || set[0] == '^'
		if not {
			set = set[1:]
		}
		in := false
		for i := 0; i < len(set); i++ {
			if i+2 < len(set) && set[i+1] == '-' {
				in = in || set[i] <= c && c <= set[i+2]
				i += 2
			} else {
				in = in || set[i] == c
			}
		}
		return end + 1, in != not
	}
	return 1, g[0] == c
}

// literal says whether the pattern fits one text only, itself.
func (g glob) literal() bool { return !strings.ContainsAny(string(g), `*?[\`) }
