package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Verdict is what is said of a command or a connection.
type Verdict string

const (
	Allow Verdict = "allow"
	Ask   Verdict = "ask"
	Deny  Verdict = "deny"
)

// Stricter orders them: a denial, a question, an approval.
func (v Verdict) Stricter(than Verdict) bool { return v.rank() > than.rank() }

func (v Verdict) rank() int {
	switch v {
	case Allow:
		return 0
	case Deny:
		return 2
	}
	return 1
}

// Rule says what to do with commands of one shape. Its text is words as a
// person would type them: the program, then its arguments, each a glob or
// several with "|" between them.
//
// A rule that asks or denies is matched however the command is spelled: options
// may stand anywhere, bundled, abbreviated or in their long form; other words
// must be there in order, from the first; more arguments don't matter. What is
// known only when the command runs fits wherever it may.
//
// A rule that allows is matched argument for argument, and by nothing that
// isn't known, so that it can't let through what it doesn't show.
//
// In both, "**" is any number of arguments and so is "*" at the end. Words in
// angle brackets are classes of arguments, see class.
type Rule struct {
	Verdict Verdict
	Text    string // the words
	Why     string // completes "it asks because …"
	Nested  bool   // allow covers what the command starts
	Exactly bool   // matched argument for argument
	Line    int    // in its file, from 1

	names    []string // of its program, those without wildcards
	patterns []glob   // the others
	options  [][]glob // for each, one of its alternatives must be there
	elements []element
}

// element stands for one argument, or for any number of them.
type element struct {
	any   bool
	alts  []glob
	class *class
}

// parseRule reads the words of a rule. The offset of what is wrong is returned
// with the error.
func parseRule(verdict Verdict, text string, exactly bool) (r Rule, offset int, err error) {
	r = Rule{Verdict: verdict, Text: text, Exactly: exactly || verdict == Allow}
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return r, 0, fmt.Errorf("a rule needs at least the name of a program")
	}
	at := 0
	for i, f := range fields {
		at += strings.Index(text[at:], f)
		if name, ok := strings.CutPrefix(f, "<"); ok && i > 0 {
			c, ok := classes[strings.TrimSuffix(name, ">")]
			if !ok || !strings.HasSuffix(f, ">") {
				return r, at, fmt.Errorf("%s isn't a class of arguments", f)
			}
			r.elements = append(r.elements, element{class: c})
			at += len(f)
			continue
		}
		var alts []glob
		for _, a := range strings.Split(f, "|") {
			if a == "" {
				return r, at, fmt.Errorf("an alternative in %q is empty", f)
			}
			if err := checkGlob(a); err != nil {
				return r, at, fmt.Errorf("bad pattern %q: %w", f, err)
			}
			alts = append(alts, glob(a))
		}
		switch {
		case i == 0:
			for _, a := range alts {
				if a.literal() {
					r.names = append(r.names, string(a))
				} else {
					r.patterns = append(r.patterns, a)
				}
			}
		case f == "**", f == "*" && i == len(fields)-1:
			r.elements = append(r.elements, element{any: true})
		case !r.Exactly && strings.HasPrefix(f, "-"):
			r.options = append(r.options, alts)
		default:
			r.elements = append(r.elements, element{alts: alts})
		}
		at += len(f)
	}
	if !r.Exactly {
		r.elements = append(r.elements, element{any: true})
	}
	return r, 0, nil
}

// invocation is a simple command, ready to be matched.
type invocation struct {
	names    []string // what its program may be called; never empty
	args     []word
	options  []word // "-x", "--long=value"; a value that follows is joined with "="
	operands []word // the rest
	fewer    []word // operands, if options that aren't known take the next argument
	at       site
}

// match says whether a rule is about an invocation.
func (r *Rule) match(v *invocation) bool {
	if !r.named(v.names) {
		return false
	}
	if r.Exactly {
		return fit(r.elements, v.args, &v.at, r.Verdict != Allow)
	}
	operands := v.operands
	for _, alts := range r.options {
		if hasOption(alts, v.options) {
			continue
		}
		n := slices.IndexFunc(operands, word.wild)
		if n < 0 || strings.Contains(string(alts[0]), "=") {
			return false
		}
		if !operands[n].many { // what stands for an option can't be an operand too
			operands = slices.Delete(slices.Clone(operands), n, n+1)
		}
	}
	return fit(r.elements, operands, &v.at, true) ||
		r.elements[0].alts != nil && len(v.fewer) < len(v.operands) && fit(r.elements, v.fewer, &v.at, true)
}

// anyMatches says whether one of some rules is about an invocation.
func anyMatches(rules []Rule, v *invocation) bool {
	return slices.ContainsFunc(rules, func(r Rule) bool { return r.match(v) })
}

func (r *Rule) named(names []string) bool {
	for _, n := range names {
		if slices.Contains(r.names, n) {
			return true
		}
		for _, g := range r.patterns {
			if g.match(n) {
				return true
			}
		}
	}
	return false
}

// hasOption says whether one of the alternatives is among the options.
func hasOption(alts []glob, options []word) bool {
	for _, o := range options {
		name, _, valued := strings.Cut(o.text, "=")
		for _, a := range alts {
			switch {
			case a.match(o.text), valued && a.match(name):
				return true
			case strings.HasPrefix(string(a), "--"): // an unambiguous beginning will do
				if len(name) > 2 && strings.HasPrefix(string(a), strings.TrimSuffix(name, unknown)) {
					return true
				}
			case len(a) == 2 && a.literal(): // one letter, maybe among others
				if !strings.HasPrefix(name, "--") && strings.IndexByte(name, a[1]) > 0 && letters(name[1:]) {
					return true
				}
			}
			if i := strings.Index(o.text, unknown); i > 1 && a.mayBegin(o.text[:i]) {
				return true
			}
		}
	}
	return false
}

func letters(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}

// mayBegin says whether a text that g matches may begin with s.
func (g glob) mayBegin(s string) bool {
	lit := string(g)
	if i := strings.IndexAny(lit, `*?[\`); i >= 0 {
		lit = lit[:i]
		return strings.HasPrefix(lit, s) || strings.HasPrefix(s, lit)
	}
	return strings.HasPrefix(lit, s)
}

// fit matches arguments against elements. With may, what isn't known fits
// wherever it could; else only where anything does. Patterns and arguments are
// few enough for plain recursion: each "**" is tried at each argument once.
func fit(es []element, args []word, at *site, may bool) bool {
	for len(es) > 0 && !es[0].any {
		if len(args) == 0 {
			return false
		}
		w := args[0]
		if may && w.many && w.wild() {
			return true // it may be all that is missing
		}
		if !es[0].fits(w, at, may) {
			return false
		}
		es, args = es[1:], args[1:]
	}
	if len(es) == 0 {
		return len(args) == 0
	}
	rest := es[1:]
	for len(rest) > 0 && rest[0].any {
		rest = rest[1:]
	}
	if len(rest) == 0 {
		return true
	}
	if c := rest[0].class; may && c != nil && c.together != nil && len(rest) == 2 && rest[1].any && c.together(args, at) {
		return true
	}
	for i := range args {
		if fit(rest, args[i:], at, may) {
			return true
		}
	}
	return false
}

func (e *element) fits(w word, at *site, may bool) bool {
	if e.class != nil {
		return e.class.is(w, at)
	}
	for _, g := range e.alts {
		if w.known() && g.match(w.text) {
			return true
		}
		if w.known() || !may {
			continue
		}
		if i := strings.Index(w.text, unknown); i >= 0 && g.mayBegin(w.text[:i]) {
			return true
		}
		if w.glob { // what it expands to begins like it
			if i := strings.IndexAny(w.text, "*?["); i >= 0 && g.mayBegin(w.text[:i]) {
				return true
			}
		}
	}
	return false
}
