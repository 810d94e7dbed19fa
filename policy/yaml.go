package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds on what is read, far above what a person writes.
const (
	maxFile     = 1 << 20 // bytes of one file, and of all that a layer is made of
	maxNesting  = 32      // lists and keys in one another
	maxColumn   = 500     // where a key or an entry of a list begins
	maxProblems = 100     // told of a file
	maxTokens   = 100_000 // of a file
	maxKeys     = 500     // side by side; the parser compares each with all others
)

// FileError says what is wrong in a file, and where.
type FileError struct {
	File         string
	Line, Column int // from 1; 0: the whole file
	Err          error
}

// Error is FILE:LINE:COLUMN: and what is wrong, as compilers say it.
func (e *FileError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d:%d: %v", e.File, e.Line, e.Column, e.Err)
}

func (e *FileError) Unwrap() error { return e.Err }

// Problems are all that is wrong in a file, by line. As an error it isn't empty.
type Problems []*FileError

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, e := range p {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives each.
func (p Problems) Unwrap() []error {
	out := make([]error, len(p))
	for i, e := range p {
		out[i] = e
	}
	return out
}

// err is them as an error, in order; nil when there are none.
func (p Problems) err() error {
	if len(p) == 0 {
		return nil
	}
	slices.SortStableFunc(p, func(a, b *FileError) int {
		if a.File != b.File {
			return 0
		}
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return p
}

// in says which file they are in, and is them as an error.
func (p Problems) in(file string) error {
	for _, e := range p {
		e.File = file
	}
	return p.err()
}

// Decode reads strict YAML into a struct whose fields name their keys in a tag yaml. A
// key that isn't known or stands twice is an error, and so are anchors and aliases, tags
// and characters that nobody sees. An error is of type Problems, and says all that is wrong.
func Decode(file string, data []byte, into any) error {
	root, problems := parse(data)
	if problems == nil && root != nil {
		var d decoder
		d.into(root, into)
		problems = d.problems
	}
	return problems.in(file)
}

// wrong is a problem at a place.
func wrong(line, column int, format string, a ...any) Problems {
	return Problems{{Line: line, Column: column, Err: fmt.Errorf(format, a...)}}
}

// parse is the one document in a file; nil when there is nothing in it.
func parse(data []byte) (ast.Node, Problems) {
	if len(data) > maxFile {
		return nil, wrong(0, 0, "it has more than %d bytes", maxFile)
	}
	src := strings.TrimPrefix(string(data), "\ufeff")
	if p := plainText(src); p != nil {
		return nil, p
	}
	tokens := lexer.Tokenize(src)
	if p := simple(tokens); p != nil {
		return nil, p
	}
	f, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, syntaxError(err)
	}
	var root ast.Node
	for _, d := range f.Docs {
		if d.Body == nil {
			continue
		}
		if root != nil {
			p := placeOf(d.Body)
			return nil, p.bad("a second document begins: a file has one")
		}
		root = d.Body
	}
	return root, nil
}

func syntaxError(err error) Problems {
	var ye yaml.Error
	if errors.As(err, &ye) && ye.GetToken() != nil && ye.GetToken().Position != nil {
		p := ye.GetToken().Position
		return wrong(p.Line, p.Column, "it isn't YAML: %s", ye.GetMessage())
	}
	return wrong(0, 0, "it isn't YAML: %w", err)
}

// plainText says where a text has what a person who reads it wouldn't see.
func plainText(s string) Problems {
	line, column := 1, 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		column++
		switch {
		case r == '\n':
			line, column = line+1, 0
		case r == '\t', r == '\r' && strings.HasPrefix(s[i+1:], "\n"):
		case r == utf8.RuneError && n == 1:
			return wrong(line, column, "it isn't UTF-8 text")
		case !seen(r):
			return wrong(line, column, "an invisible character (U+%04X)", r)
		}
		i += n
	}
	return nil
}

// simple refuses, before anything is made of them, what policies have no need of and
// what could be made to take long: anchors with their aliases, tags, deep nesting.
func simple(tokens token.Tokens) Problems {
	if len(tokens) > maxTokens {
		return wrong(0, 0, "it has too much in it: more than %d words and signs", maxTokens)
	}
	var n nesting
	for i, t := range tokens {
		p := t.Position
		switch t.Type {
		case token.AnchorType, token.AliasType:
			return wrong(p.Line, p.Column, "anchors and aliases (& and *) aren't used here: write it out, or quote a text that begins so")
		case token.MergeKeyType:
			return wrong(p.Line, p.Column, "merge keys (<<) aren't used here: write it out")
		case token.TagType:
			return wrong(p.Line, p.Column, "tags (!) aren't used here: quote a text that begins so")
		case token.DirectiveType:
			return wrong(p.Line, p.Column, "directives (%%) aren't used here")
		case token.DoubleQuoteType: // escapes make characters that the file doesn't show
			if hidden := plainText(t.Value); hidden != nil {
				return wrong(p.Line, p.Column, "what is in quotes: %w", hidden[0].Err)
			}
		}
		if what := n.count(tokens, i); what != "" {
			return wrong(p.Line, p.Column, "%s", what)
		}
	}
	return nil
}

// nesting is how deep a document is at a token, and how many keys stand side by side.
type nesting struct {
	flow []int          // keys within each bracket that is open
	keys [maxColumn]int // keys that begin in each column, since something began before it
	row  int            // hyphens and question marks right behind each other
}

// count takes a token in, and says what there is too much of.
func (n *nesting) count(tokens token.Tokens, i int) string {
	const deep = "it is nested too deeply"
	t, column := tokens[i], tokens[i].Position.Column
	n.row++
	switch t.Type {
	case token.SequenceEntryType, token.MappingKeyType:
		if n.row > maxNesting || column >= maxColumn && len(n.flow) == 0 {
			return deep
		}
		if len(n.flow) == 0 {
			clear(n.keys[column+1:])
		}
		return ""
	case token.MappingStartType, token.SequenceStartType:
		if n.flow = append(n.flow, 0); len(n.flow) > maxNesting {
			return deep
		}
	case token.MappingEndType, token.SequenceEndType:
		n.flow = n.flow[:max(0, len(n.flow)-1)]
	case token.MappingValueType:
		if i > 0 {
			column = tokens[i-1].Position.Column
		}
		var keys *int
		switch {
		case len(n.flow) > 0:
			keys = &n.flow[len(n.flow)-1]
		case column >= maxColumn:
			return deep
		default:
			keys = &n.keys[column]
			clear(n.keys[column+1:])
		}
		if *keys++; *keys > maxKeys {
			return fmt.Sprintf("more than %d keys stand side by side", maxKeys)
		}
	}
	n.row = 0
	return ""
}
