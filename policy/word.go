package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// unknown stands in a word's text for what only the run will tell. No argument
// can hold a NUL, so it can't be mistaken.
const unknown = "\x00"

// word is one argument as far as it is known before the command runs.
type word struct {
	text string // with unknown for what a shell will put in
	glob bool   // a shell expands its wildcards, of which those that are meant are in text and others escaped in pattern
	// pattern is text as a glob, where glob is set.
	pattern string
	many    bool     // what is unknown may become several arguments, or none
	process bool     // it is the name of a pipe from a process: <(…)
	near    []string // what its program may take it for
	value   bool     // it may be the value of the option before it, and no operand
	cut     bool     // it stands for all that was too much to be read
}

// known says whether the argument is exactly text.
func (w word) known() bool { return !w.glob && !strings.Contains(w.text, unknown) }

// wild says whether it may be any argument at all.
func (w word) wild() bool { return strings.HasPrefix(w.text, unknown) }

// words makes words of arguments as execve gets them.
func words(argv []string) []word {
	out := make([]word, len(argv))
	for i, a := range argv {
		out[i].text = a
	}
	return out
}

// name is the part after the last slash, when it is known: what a program is called.
func (w word) name() (string, bool) {
	s := w.text[strings.LastIndexByte(w.text, '/')+1:]
	if w.glob || w.many || strings.Contains(s, unknown) {
		return "", false
	}
	return s, true
}

// reader makes words of a script's.
type reader struct {
	home string          // what ~ is; "" isn't known
	set  map[string]bool // variables that the script itself sets
	own  map[string]bool // functions that the script defines
	pwd  string          // what $PWD is; "" isn't known
}

// build collects one word.
type build struct {
	text, pattern strings.Builder
	w             word
}

func (b *build) lit(s string) {
	b.text.WriteString(s)
	for i := range len(s) {
		if strings.IndexByte(`*?[\`, s[i]) >= 0 {
			b.pattern.WriteByte('\\')
		}
		b.pattern.WriteByte(s[i])
	}
}

func (b *build) unknown(many bool) {
	b.text.WriteString(unknown)
	b.pattern.WriteString(unknown)
	b.w.many = b.w.many || many
}

// word is what a word without braces becomes.
func (r *reader) word(w *syntax.Word) word {
	var b build
	for i, p := range w.Parts {
		r.part(&b, p, false, i == 0)
	}
	b.w.text = b.text.String()
	if b.w.text == "[" { // the command
		b.w.glob = false
	}
	if b.w.glob {
		b.w.pattern = b.pattern.String()
	}
	return b.w
}

func (r *reader) part(b *build, p syntax.WordPart, quoted, first bool) {
	switch p := p.(type) {
	case *syntax.Lit:
		if quoted {
			b.lit(unescape(p.Value, "$`\"\\"))
			return
		}
		r.bare(b, p.Value, first)
	case *syntax.SglQuoted:
		if !p.Dollar {
			b.lit(p.Value)
		} else if s, ok := ansi(p.Value); ok {
			b.lit(s)
		} else {
			b.unknown(false)
		}
	case *syntax.DblQuoted:
		if p.Dollar { // looked up in a translation
			b.unknown(false)
			return
		}
		for _, q := range p.Parts {
			r.part(b, q, true, false)
		}
	case *syntax.ParamExp:
		r.param(b, p, quoted)
	case *syntax.ArithmExp:
		b.lit("0") // some number
	case *syntax.ProcSubst:
		b.w.process = true
		b.lit("/dev/fd/63")
	case *syntax.CmdSubst:
		if s, ok := here(p); ok && quoted && !r.own["cat"] {
			b.lit(s)
			return
		}
		b.unknown(!quoted)
	default: // extended globs
		b.unknown(!quoted)
	}
}

// bare is text outside of quotes.
func (r *reader) bare(b *build, s string, first bool) {
	if first && strings.HasPrefix(s, "~") {
		user, rest := s, ""
		if i := strings.IndexByte(s, '/'); i >= 0 {
			user, rest = s[:i], s[i:]
		}
		if user == "~" && r.home != "" && !r.set["HOME"] {
			b.lit(r.home)
		} else {
			b.unknown(false)
		}
		s = rest
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			if i++; i < len(s) && s[i] != '\n' {
				b.lit(s[i : i+1])
			}
		case '*', '?', '[':
			b.w.glob = true
			b.text.WriteByte(c)
			b.pattern.WriteByte(c)
		case ']', '^', '!', '-':
			b.text.WriteByte(c)
			b.pattern.WriteByte(c)
		default:
			b.lit(s[i : i+1])
		}
	}
}

// unescape takes the backslashes before any of chars and before newlines off.
func unescape(s, chars string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if s[i+1] == '\n' {
				i++
				continue
			}
			if strings.IndexByte(chars, s[i+1]) >= 0 {
				i++
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// numeric variables hold some number unless a script sets them.
var numeric = map[string]bool{
	"?": true, "$": true, "!": true, "#": true, "RANDOM": true, "SECONDS": true, "UID": true, "EUID": true,
	"PPID": true, "LINENO": true, "BASHPID": true, "EPOCHSECONDS": true, "SHLVL": true,
}

func (r *reader) param(b *build, p *syntax.ParamExp, quoted bool) {
	plain := p.Param != nil && p.Flags == nil && !p.Excl && !p.Width && !p.IsSet && p.Index == nil && p.NestedParam == nil &&
		len(p.Modifiers) == 0 && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil
	if !plain {
		b.unknown(!quoted)
		return
	}
	name := p.Param.Value
	switch {
	case p.Length, numeric[name] && !r.set[name]:
		b.lit("0")
	case name == "HOME" && r.home != "" && !r.set[name]:
		b.lit(r.home)
	case name == "PWD" && r.pwd != "" && !r.set[name]:
		b.lit(r.pwd)
	default:
		b.unknown(!quoted || name == "@")
	}
}
