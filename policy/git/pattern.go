package git

import (
	"bytes"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// pattern is one line of a .gitignore, as gitignore(5) has it.
type pattern struct {
	glob    string // for doublestar
	negated bool   // "!": what it matches isn't ignored
	folder  bool   // it ended in "/": it matches folders only
	base    bool   // no "/" in it: it matches the last name, at any depth
}

// parsePatterns reads a file of rules. A pattern that is malformed matches
// nothing, for git as well.
func parsePatterns(data []byte) []pattern {
	var out []pattern
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for line := range strings.SplitSeq(string(data), "\n") {
		line = trimSpaces(strings.TrimSuffix(line, "\r"))
		if line == "" || line[0] == '#' {
			continue
		}
		var p pattern
		line, p.negated = strings.CutPrefix(line, "!")
		line, p.folder = strings.CutSuffix(line, "/")
		p.base = !strings.Contains(line, "/")
		line = strings.TrimPrefix(line, "/")
		if p.glob = translate(bytewise(line)); line != "" && doublestar.ValidatePattern(p.glob) {
			out = append(out, p)
		}
	}
	return out
}

// trimSpaces removes spaces at the end, unless a backslash keeps one.
func trimSpaces(line string) string {
	end := 0 // what is before it stays
	for i := 0; i < len(line); i++ {
		if line[i] == '\\' && i+1 < len(line) {
			i++
			end = i + 1
		} else if line[i] != ' ' {
			end = i + 1
		}
	}
	return line[:end]
}

// translate writes git's pattern as doublestar's: braces have no meaning, and
// "x/**" matches what is in x, not x.
func translate(glob string) string {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; {
		case c == '\\' && i+1 < len(glob):
			b.WriteString(glob[i : i+2])
			i++
		case c == '{' || c == '}':
			b.WriteString(`\` + string(c))
		default:
			b.WriteByte(c)
		}
	}
	if out := b.String(); strings.HasSuffix(out, "/**") {
		return out + "/*"
	} else if out == "**" {
		return "**/*"
	} else {
		return out
	}
}

// matches says whether a path, relative to the rule's own folder, is one that
// the rule speaks of.
func (p pattern) matches(name string, folder bool) bool {
	if p.folder && !folder {
		return false
	}
	if p.base {
		name = path.Base(name)
	}
	ok, err := doublestar.Match(p.glob, bytewise(name))
	return ok && err == nil
}

// bytewise makes a character of each byte, which is what "?" means to git.
func bytewise(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return s
	}
	out := make([]rune, len(s))
	for i := range len(s) {
		out[i] = rune(s[i])
	}
	return string(out)
}
