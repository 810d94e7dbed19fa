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
	"sync"
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

// endings maps file name endings to languages.
var endings = map[string]string{
	"go": "go", "c": "c", "h": "c", "cc": "c", "cpp": "c", "hpp": "c", "cxx": "c",
	"java": "java", "kt": "java", "kts": "java", "scala": "java", "swift": "java", "cs": "java", "dart": "java",
	"js": "js", "jsx": "js", "ts": "js", "tsx": "js", "mjs": "js", "cjs": "js", "vue": "js", "svelte": "js",
	"rs": "rust", "zig": "rust", "php": "php",
	"py": "python", "pyi": "python", "rb": "ruby", "pl": "ruby", "ex": "ruby", "exs": "ruby", "lua": "lua",
	"sh": "shell", "bash": "shell", "zsh": "shell", "fish": "shell", "mk": "make",
	"json": "json", "jsonc": "json", "yaml": "yaml", "yml": "yaml", "toml": "toml", "ini": "toml", "cfg": "toml", "conf": "toml",
	"sql": "sql", "css": "css", "scss": "css", "less": "css", "proto": "proto", "tf": "toml", "hcl": "toml", "mod": "gomod",
}

// languages are made when one is first needed: most processes colour nothing.
var languages = sync.OnceValue(func() map[string]*language {
	slashes, hash, dashes, block := []string{"//"}, []string{"#"}, []string{"--"}, [2]string{"/*", "*/"}
	return map[string]*language{
		"go":     {line: slashes, block: block, quotes: `"'`, long: []string{"`"}, calls: true, words: set("break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false iota any bool byte error float32 float64 int int8 int16 int32 int64 rune string uint uint8 uint16 uint32 uint64 uintptr append cap close copy delete len make max min new panic recover")},
		"c":      {line: slashes, block: block, quotes: `"'`, calls: true, words: set("auto break case char class const constexpr continue default delete do double else enum extern false float for goto if inline int long namespace new nullptr operator private protected public return short signed sizeof static struct switch template this throw true try typedef typename union unsigned using virtual void volatile while NULL")},
		"java":   {line: slashes, block: block, quotes: `"'`, long: []string{`"""`}, calls: true, words: set("abstract as assert async await boolean break byte case catch char class companion const continue data default do double else enum extends extension false final finally float for fun func guard if implements import in init instanceof int interface internal is let long namespace native new nil null object override package private protected public readonly record return sealed self short static string struct super switch synchronized this throw throws trait true try typealias using val var void volatile when where while yield")},
		"js":     {line: slashes, block: block, quotes: `"'`, long: []string{"`"}, calls: true, words: set("abstract any as async await boolean break case catch class const continue debugger declare default delete do else enum export extends false finally for from function get if implements import in instanceof interface keyof let namespace never new null number of private protected public readonly return set static string super switch this throw true try type typeof undefined unknown var void while with yield")},
		"rust":   {line: slashes, block: block, quotes: `"`, calls: true, words: set("as async await bool break char const continue crate dyn else enum extern f32 f64 false fn for i16 i32 i64 i8 if impl in isize let loop match mod move mut pub ref return self Self static str struct super trait true type u16 u32 u64 u8 unsafe use usize where while None Some Ok Err comptime defer try var")},
		"php":    {line: slashes, block: block, quotes: `"'`, calls: true, dollar: true, words: set("abstract and array as break case catch class const continue declare default do echo else elseif extends false final finally fn for foreach function global if implements include instanceof interface isset match namespace new null or print private protected public readonly require return static switch throw trait true try unset use var while yield")},
		"proto":  {line: slashes, block: block, quotes: `"'`, calls: true, words: set("bool bytes double enum false fixed32 fixed64 float import int32 int64 map message oneof option optional package repeated required reserved returns rpc service sint32 sint64 stream string syntax true uint32 uint64")},
		"python": {line: hash, quotes: `"'`, long: []string{`"""`, `'''`}, calls: true, words: set("and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield")},
		"ruby":   {line: hash, quotes: `"'`, calls: true, words: set("alias and begin break case class def defmodule defp defined do else elsif end ensure false fn for if in module next nil not or package redo require rescue retry return self super sub then true undef unless until use when while with yield my our")},
		"lua":    {line: dashes, quotes: `"'`, calls: true, words: set("and break do else elseif end false for function goto if in local nil not or repeat return then true until while")},
		"shell":  {line: hash, quotes: `"'`, dollar: true, hyphens: true, words: set("if then else elif fi case esac for select while until do done in function time return exit export local readonly declare set unset shift trap source eval exec cd echo test begin end")},
		"make":   {line: hash, quotes: `"'`, dollar: true, keys: true, hyphens: true, words: set("ifeq ifneq ifdef ifndef else endif include define endef export override")},
		"docker": {line: hash, quotes: `"'`, dollar: true, words: set("FROM RUN CMD LABEL EXPOSE ENV ADD COPY ENTRYPOINT VOLUME USER WORKDIR ARG ONBUILD STOPSIGNAL HEALTHCHECK SHELL AS")},
		"json":   {line: slashes, quotes: `"`, words: set("true false null")},
		"yaml":   {line: hash, quotes: `"'`, keys: true, hyphens: true, words: set("true false null yes no on off")},
		"toml":   {line: []string{"#", ";"}, quotes: `"'`, keys: true, hyphens: true, words: set("true false")},
		"sql":    {line: dashes, block: block, quotes: `"'`, calls: true, words: set("add all alter and as asc begin between by case check column commit constraint create cross default delete desc distinct drop else end exists foreign from full group having if in index inner insert into is join key left like limit not null offset on or order outer primary references rollback select set table then transaction union unique update using values view when where with ADD ALL ALTER AND AS ASC BEGIN BETWEEN BY CASE CHECK COLUMN COMMIT CONSTRAINT CREATE CROSS DEFAULT DELETE DESC DISTINCT DROP ELSE END EXISTS FOREIGN FROM FULL GROUP HAVING IF IN INDEX INNER INSERT INTO IS JOIN KEY LEFT LIKE LIMIT NOT NULL OFFSET ON OR ORDER OUTER PRIMARY REFERENCES ROLLBACK SELECT SET TABLE THEN TRANSACTION UNION UNIQUE UPDATE USING VALUES VIEW WHEN WHERE WITH")},
		"css":    {block: block, quotes: `"'`, keys: true, hyphens: true},
		"gomod":  {line: slashes, quotes: "\"`", words: set("module go require replace exclude retract toolchain use")},
	}
})

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}
