package backtest

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// escapes are what api.Escape puts in the place of what can't be shown.
var escapes = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\\(?:[ntr]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})`) })

// unescaped is a text that was escaped, if all that looks like an escape in it is one.
func unescaped(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return escapes().ReplaceAllStringFunc(s, func(e string) string {
		switch e[1] {
		case 'n':
			return "\n"
		case 't':
			return "\t"
		case 'r':
			return "\r"
		}
		n, _ := strconv.ParseUint(e[2:], 16, 32)
		if e[1] == 'x' {
			return string([]byte{byte(n)})
		}
		return string(rune(n))
	})
}

// readings are what the arguments of a start may have been. None: that isn't known.
func (s *Start) readings() [][]string {
	switch b := s.Basis; {
	case b != nil && b.Cut:
		return nil
	case b != nil && b.Exact != nil:
		return [][]string{b.Exact}
	case b != nil:
		return [][]string{s.Argv}
	}
	out := [][]string{s.Argv}
	if slices.ContainsFunc(s.Argv, escapes().MatchString) {
		other := make([]string, len(s.Argv))
		for i, a := range s.Argv {
			other[i] = unescaped(a)
		}
		out = append(out, other)
	}
	return out
}
