// Package syntax colours source text for diffs: keywords, strings, comments,
// numbers and names, by the language a file's name says.
//
// It is a scanner, not a parser: linear in its input, without regular
// expressions, and without a registry of languages to be built at start-up,
// which every re-execution of the program would pay for. Text may be hostile;
// what isn't understood is left plain.
package syntax

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"stepbox/themes"
)

// Span is a run of bytes of one kind; Text for what is plain.
type Span struct {
	Text string
	Kind themes.Token
}

// language is what the scanner needs to know.
type language struct {
	line    []string // start a comment to the end of the line
	block   [2]string
	quotes  string   // characters that open and close a string
	long    []string // quotes that span lines
	words   map[string]bool
	calls   bool // a name before ( is a function
	keys    bool // a name before : or = is a key
	hyphens bool // names may contain hyphens
	dollar  bool // $name is a name
}

// Scanner colours one file's lines in order, so that comments and strings that
// span lines are known. The zero Scanner leaves text plain.
type Scanner struct {
	lang *language
	in   string // what ends the comment or string that a former line began
	kind themes.Token
}

// For makes a scanner for a file of that name.
func For(name string) *Scanner { return &Scanner{lang: find(name)} }

// Known says whether anything will be coloured.
func (s *Scanner) Known() bool { return s.lang != nil }

// Reset forgets what former lines began.
func (s *Scanner) Reset() { s.in = "" }

// Line splits one line into spans. Their texts joined are the line.
func (s *Scanner) Line(text string) []Span {
	if s.lang == nil || text == "" {
		return []Span{{text, themes.Text}}
	}
	var out []Span
	rest, from := text, 0 // from: where the span that is being read begins
	kind := themes.Count  // of that span
	add := func(t string, k themes.Token) {
		if t == "" {
			return
		}
		at := len(text) - len(rest)
		if k != kind && at > from {
			out = append(out, Span{text[from:at], kind})
			from = at
		}
		kind = k
	}
	if s.in != "" {
		i := strings.Index(rest, s.in)
		if i < 0 {
			return []Span{{text, s.kind}}
		}
		add(rest[:i+len(s.in)], s.kind)
		rest, s.in = rest[i+len(s.in):], ""
	}
	start := true // nothing but blanks so far
	for rest != "" {
		n, k := s.token(rest, start)
		add(rest[:n], k)
		if strings.TrimSpace(rest[:n]) != "" {
			start = false
		}
		rest = rest[n:]
	}
	if from < len(text) {
		out = append(out, Span{text[from:], kind})
	}
	return out
}

// token is the length and kind of what rest starts with; at least one byte.
func (s *Scanner) token(rest string, start bool) (int, themes.Token) {
	l := s.lang
	for _, c := range l.line {
		if strings.HasPrefix(rest, c) && (c != "#" || start || !strings.HasPrefix(rest, "#{")) {
			return len(rest), themes.SyntaxComment
		}
	}
	if l.block[0] != "" && strings.HasPrefix(rest, l.block[0]) {
		return s.span(rest, l.block[0], l.block[1], themes.SyntaxComment)
	}
	for _, q := range l.long {
		if strings.HasPrefix(rest, q) {
			return s.span(rest, q, q, themes.SyntaxString)
		}
	}
	r, n := utf8.DecodeRuneInString(rest)
	switch {
	case r < utf8.RuneSelf && strings.ContainsRune(l.quotes, r):
		return quoted(rest), themes.SyntaxString
	case r >= '0' && r <= '9':
		return number(rest), themes.SyntaxNumber
	case unicode.IsLetter(r) || r == '_' || r == '$' && l.dollar || r == '@':
		w := word(rest, l)
		return w, s.name(rest[:w], rest[w:], start)
	}
	return n, themes.Text
}

// span takes a comment or string that may go on in later lines.
func (s *Scanner) span(rest, open, end string, kind themes.Token) (int, themes.Token) {
	if i := strings.Index(rest[len(open):], end); i >= 0 {
		return len(open) + i + len(end), kind
	}
	s.in, s.kind = end, kind
	return len(rest), kind
}

func (s *Scanner) name(w, after string, start bool) themes.Token {
	l := s.lang
	switch {
	case l.words[w]:
		return themes.SyntaxKeyword
	case l.calls && strings.HasPrefix(after, "("):
		return themes.SyntaxName
	case l.keys && start && keyEnd(after):
		return themes.SyntaxName
	case l.dollar && w[0] == '$', w[0] == '@' && len(w) > 1:
		return themes.SyntaxName
	case l.calls && w[0] >= 'A' && w[0] <= 'Z' && len(w) > 1:
		return themes.SyntaxName
	}
	return themes.Text
}

func keyEnd(after string) bool {
	after = strings.TrimLeft(after, " \t")
	return strings.HasPrefix(after, ":") || strings.HasPrefix(after, "=")
}

func quoted(s string) int {
	q := s[0]
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case q:
			return i + 1
		}
	}
	return len(s)
}

func number(s string) int {
	i := 1
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] >= 'a' && s[i] <= 'z' || s[i] >= 'A' && s[i] <= 'Z' || s[i] == '.' || s[i] == '_') {
		i++
	}
	return i
}

func word(s string, l *language) int {
	for i, r := range s {
		if i == 0 || unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '-' && l.hyphens {
			continue
		}
		return i
	}
	return len(s)
}

func find(name string) *language {
	base := strings.ToLower(path.Base(name))
	switch {
	case base == "dockerfile" || strings.HasPrefix(base, "dockerfile."):
		return languages()["docker"]
	case base == "makefile" || base == "gnumakefile":
		return languages()["make"]
	case base == "go.mod" || base == "go.work":
		return languages()["gomod"]
	}
	return languages()[endings[strings.TrimPrefix(path.Ext(base), ".")]]
}
