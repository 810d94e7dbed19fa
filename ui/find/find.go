// Package find is the small language in which a person says which rows of a list they
// want to see: actions, attempts, changed files, lines of the log.
//
// A line is terms with blanks between them, and a row has to have all of them. A term is
//
//	denied held failed running kept unreviewed    how it stands
//	rolled back
//	edit command connection                       what it is; of an action also: it tried to connect
//	exit=1  exit≠0  exit!=0                       how a command ended
//	file:PATH  host:NAME  program:NAME            a part of one of these; file:"A PATH"
//	port:443  :443                                where it went
//	#12  :12                                      the action with that number, or what it did
//	A  M  D  R  T                                 how a file changed, as git writes it
//	words  "two words"                            text, as it stands there or in the other case
//	!term                                         what doesn't have it
//
// What a kind of row can't have is text there: among files, "command" finds command.go. So
// every line means something, and none is wrong.
//
// A Filter never changes and is safe for concurrent use. Rows are hostile text, and are
// only compared.
package find

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Most bounds a line, in bytes.
const Most = 200

// Filter is what a line asks for. The zero Filter has every row.
type Filter struct {
	line  string
	terms []term
}

// term is a part of a line that a row has, or for not hasn't.
type term struct {
	not   bool
	text  string // in lower case
	field string // file, host, program or port: what has to have the text; "" is all that the row says
	is    Is     // where rows can be that
	n     int    // where rows have numbers; -1: it is none
	exit  string // how a command ended: "=" or "≠" n
	kind  string // the letter of a changed file
}

func (f Filter) String() string { return f.line }

// Narrows says whether there are rows that it hasn't.
func (f Filter) Narrows() bool { return len(f.terms) > 0 }

// Number is the action that a line names when it does nothing else.
func (f Filter) Number() (int, bool) {
	if len(f.terms) != 1 {
		return 0, false
	}
	t := f.terms[0]
	return t.n, t.n >= 0 && !t.not && t.exit == "" && t.field == ""
}

// Number is the filter of what an action did.
func Number(n int) Filter { return Parse("#" + strconv.Itoa(n)) }

// Paths are what is asked for that may be a part of the path of a file.
func (f Filter) Paths() []string {
	var out []string
	for _, t := range f.terms {
		if t.file() && !slices.Contains(out, t.text) {
			out = append(out, t.text)
		}
	}
	return out
}

// file says whether a term may name a file: what is called one, or has a / or a . in it.
func (t *term) file() bool {
	return t.field == "file" || t.field == "" && t.is == 0 && t.n < 0 && t.exit == "" && strings.ContainsAny(t.text, "/.")
}

// Parse reads a line. Whatever it is, it means something.
func Parse(line string) Filter {
	f := Filter{line: strings.TrimSpace(line)}
	words := split(f.line)
	for i := 0; i < len(words); i++ {
		w := words[i]
		if t, two := pair(words[i:]); two {
			f.terms = append(f.terms, t)
			i++
		} else if w.text != "" {
			f.terms = append(f.terms, w.term())
		}
	}
	return f
}

// fields are what can be asked for by name.
var fields = [...]string{"file", "host", "program", "port"}

// File is the line that asks for a path.
func File(path string) string { return `file:"` + strings.ReplaceAll(path, `"`, "") + `"` }

// word is a part of a line between blanks or quotes.
type word struct {
	text        string
	not, quoted bool
}

// split divides a line at blanks that aren't quoted. A quote that isn't closed is to its end.
func split(line string) (out []word) {
	for line = strings.TrimLeftFunc(line, unicode.IsSpace); line != ""; line = strings.TrimLeftFunc(line, unicode.IsSpace) {
		var w word
		if rest, ok := strings.CutPrefix(line, "!"); ok {
			w.not, line = true, rest
		}
		if rest, ok := strings.CutPrefix(line, `"`); ok {
			w.quoted = true
			w.text, line, _ = strings.Cut(rest, `"`)
		} else {
			i := strings.IndexFunc(line, unicode.IsSpace)
			if i < 0 {
				i = len(line)
			}
			if field, rest, ok := strings.Cut(line[:i], `:"`); ok && slices.Contains(fields[:], strings.ToLower(field)) {
				rest += line[i:]
				rest, line, _ = strings.Cut(rest, `"`)
				w.text = field + ":" + rest
			} else {
				w.text, line = line[:i], line[i:]
			}
		}
		out = append(out, w)
	}
	return out
}

// pair reads what is said in two words.
func pair(words []word) (term, bool) {
	if len(words) < 2 || words[0].quoted || words[1].quoted || words[1].not {
		return term{}, false
	}
	two := strings.ToLower(words[0].text + " " + words[1].text)
	return term{not: words[0].not, text: two, is: states[two], n: -1}, states[two] != 0
}

// term reads a word.
func (w word) term() term {
	t := term{not: w.not, text: strings.ToLower(w.text), n: -1}
	if w.quoted {
		return t
	}
	field, value, named := strings.Cut(t.text, ":")
	switch {
	case named && field == "" && number(value) >= 0:
		t.n = number(value)
	case strings.HasPrefix(t.text, "#"):
		t.n = number(t.text[1:])
	case named && value != "" && slices.Contains(fields[:], field):
		t.field, t.text = field, value
	case strings.HasPrefix(t.text, "exit"):
		t.exit, t.n = exit(t.text[len("exit"):])
	case len(w.text) == 1 && strings.Contains("AMDRT", w.text):
		t.kind = w.text
	default:
		t.is = states[t.text]
	}
	return t
}

// exit reads how a command ended.
func exit(s string) (how string, n int) {
	for _, op := range [...][2]string{{"≠", "≠"}, {"!=", "≠"}, {"=", "="}} {
		if rest, ok := strings.CutPrefix(s, op[0]); ok && number(rest) >= 0 {
			return op[1], number(rest)
		}
	}
	return "", -1
}

// number reads a number as people write it; -1: it is none.
func number(s string) int {
	if s == "" || len(s) > 9 || strings.Trim(s, "0123456789") != "" {
		return -1
	}
	n, _ := strconv.Atoi(s)
	return n
}
