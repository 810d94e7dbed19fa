package policy

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
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
// several with "|" between them. After a backslash a space, a bar or what a glob has a
// meaning for is itself.
//
// A rule that asks or denies is matched however the command is spelled: options
// may stand anywhere, bundled, abbreviated or in their long form; other words
// must be there in order, from the first; more arguments don't matter. What is
// known only when the command runs fits wherever it may.
//
// A rule that allows is matched argument for argument, and by nothing that
// isn't known, so that it can't let through what it doesn't show: nor what a
// variable makes of a command (see loaders), nor a program that this session wrote.
//
// In both, "**" is any number of arguments and so is "*" at the end. Words in
// angle brackets are classes of arguments, see class.
type Rule struct {
	Verdict Verdict
	Text    string // the words
	Why     string // completes "it asks because …"
	Nested  bool   // allow covers what the command starts
	Exactly bool   // matched argument for argument
	File    string // where it stands; "": nowhere
	Line    int    // in its file, from 1

	in       []folder // where it holds; none: everywhere
	names    []string // of its program, those without wildcards
	patterns []glob   // the others
	options  [][]glob // for each, one of its alternatives must be there
	elements []element
	written  []element // all words but the first as they stand, options too: with just these it is about a command, too; nil where one is any or a class
	secrets  bool      // it is about files that hold secrets
	alts     int       // how much there is to compare with each argument
	wild     int       // how long its globs are that aren't literal
}

// element stands for one argument, or for any number of them.
type element struct {
	any   bool
	alts  []glob
	class *class
	of    []glob // the option that it stands behind in the rule: it may be the value of that
}

// parseRule reads the words of a rule. The offset of what is wrong is returned
// with the error.
func parseRule(verdict Verdict, text string, exactly bool) (r Rule, offset int, err error) {
	r = Rule{Verdict: verdict, Text: text, Exactly: exactly || verdict == Allow}
	fields := Words(text)
	if len(fields) == 0 {
		return r, 0, fmt.Errorf("a rule needs at least the name of a program")
	}
	at := 0
	var of []glob    // the option before
	bundled := false // it stands with others in one word
	ended := false   // no options follow
	open := false    // there is a word that stands for others
	for i, f := range fields {
		at += strings.Index(text[at:], f)
		if name, ok := strings.CutPrefix(f, "<"); ok && i > 0 {
			c, ok := classes[strings.TrimSuffix(name, ">")]
			if !ok || !strings.HasSuffix(f, ">") {
				return r, at, fmt.Errorf("%s isn't a class of arguments", f)
			}
			r.elements = append(r.elements, element{class: c})
			open = true
			of, at = nil, at+len(f)
			continue
		}
		alts, err := alternatives(f)
		if err == nil && i == 0 {
			err = r.program(alts)
		}
		if err != nil {
			return r, at, err
		}
		if i > 0 {
			r.written = append(r.written, element{alts: alts})
			open = open || f == "**" || f == "*" && i == len(fields)-1
		}
		switch {
		case i == 0:
		case f == "**", f == "*" && i == len(fields)-1:
			r.elements = append(r.elements, element{any: true})
		case r.takesNext(of) && !(bundled && len(f) > 1 && f[0] == '-'): // as invoke has it
			r.value(alts)
		case !r.Exactly && !ended && f == "--":
			ended, of, at = true, nil, at+len(f)
			continue
		case !r.Exactly && !ended && strings.HasPrefix(f, "-") && f != "-" && !strings.HasPrefix(f, "-|"):
			n := len(r.options)
			of, at = r.option(alts), at+len(f)
			bundled = len(r.options) > n+1
			continue
		default:
			r.elements = append(r.elements, element{alts: alts, of: of})
		}
		of = nil
		at += len(f)
	}
	if !r.Exactly {
		r.elements = append(r.elements, element{any: true})
	}
	if open || len(r.options) == 0 {
		r.written = nil
	}
	r.secrets = r.secretNamed()
	r.weight()
	return r, 0, nil
}

// weight sets what work is reckoned by.
func (r *Rule) weight() {
	const ofClass = 32 // paths are cleaned
	all := [][]glob{r.patterns}
	all = append(all, r.options...)
	for _, e := range r.elements {
		if all = append(all, e.alts, e.of); e.class != nil {
			r.alts += ofClass
		}
		r.alts++
	}
	for _, alts := range all {
		r.alts += len(alts)
		for _, g := range alts {
			if !g.literal() {
				r.wild += len(g)
			}
		}
	}
}

// work is how many steps it takes at most, or nearly, to see whether a rule is about an
// invocation.
func (r *Rule) work(v *invocation) int {
	return 1 + r.alts*len(v.args) + r.wild*v.size
}

// alternatives are the globs that one word of a rule is.
func alternatives(field string) (alts []glob, err error) {
	for _, a := range cutAt(field, func(r rune) bool { return r == '|' }) {
		if a == "" {
			return nil, fmt.Errorf("an alternative in %q is empty", field)
		}
		if err := checkGlob(a); err != nil {
			return nil, fmt.Errorf("bad pattern %q: %w", field, err)
		}
		alts = append(alts, glob(a))
	}
	return alts, nil
}

// option adds the options that a word stands for, and gives the last of them, by all names.
func (r *Rule) option(alts []glob) (last []glob) {
	r.options = append(r.options, grammarOf(r.names).options(alts)...)
	return r.options[len(r.options)-1]
}

// takesNext says whether an option is known to take the next word as its value.
func (r *Rule) takesNext(option []glob) bool {
	values := grammarOf(r.names).Values
	return len(option) > 0 && !slices.ContainsFunc(option, func(name glob) bool { return !slices.Contains(values, string(name)) })
}

// value makes the last option one with a value.
func (r *Rule) value(alts []glob) {
	last := &r.options[len(r.options)-1]
	names := *last
	*last = nil
	for _, name := range names {
		for _, a := range alts {
			*last = append(*last, name+"="+a)
		}
	}
}

// program sets what the rule's program may be called. Whatever folder it is typed with, a
// rule that asks or denies is about each of that name; one that allows is about what is
// typed so.
func (r *Rule) program(alts []glob) error {
	for _, a := range alts {
		if r.Verdict != Allow {
			if a = a[strings.LastIndexByte(string(a), '/')+1:]; a == "" {
				return fmt.Errorf("it begins with a folder, and not with a program")
			}
		}
		if a.literal() {
			r.names = append(r.names, string(a))
		} else {
			r.patterns = append(r.patterns, a)
		}
	}
	return nil
}

// Words takes the text of a rule on commands apart, at spaces without a backslash. They
// are as the text has them, backslashes included.
func Words(text string) []string {
	return slices.DeleteFunc(cutAt(text, unicode.IsSpace), func(w string) bool { return w == "" })
}

// cutAt takes a text apart at runes that no backslash takes their meaning from.
func cutAt(s string, sep func(rune) bool) (out []string) {
	begin, escaped := 0, false
	for i, r := range s {
		switch {
		case escaped:
			escaped = false
		case r == '\\':
			escaped = true
		case sep(r):
			out = append(out, s[begin:i])
			begin = i + utf8.RuneLen(r)
		}
	}
	return append(out, s[begin:])
}

// invocation is a simple command, ready to be matched.
type invocation struct {
	names    []string // what its program may be called; never empty
	typed    string   // its program as it was typed, with a folder; "" without, or when that isn't known
	args     []word
	options  []word // "-x", "--long=value"; a value that follows is joined with "="
	operands []word // the rest
	at       site
	size     int  // of its names and arguments, in bytes
	more     bool // it may do more than it shows
}

// match says whether a rule is about an invocation, or may be as far as it is known.
func (r *Rule) match(v *invocation) bool { return r.about(v, r.Verdict != Allow) }

// about says whether a rule is about an invocation. With may, what isn't known is taken
// for what would make it so.
func (r *Rule) about(v *invocation, may bool) bool {
	if v.more && r.Verdict == Allow || !r.named(v.names) && !r.typed(v.typed) || len(r.in) > 0 && !r.holds(&v.at) {
		return false
	}
	if r.Exactly {
		return fit(r.elements, v.args, nil, &v.at, may)
	}
	if r.written != nil && fit(r.written, v.args, nil, &v.at, may) {
		return true
	}
	operands := v.operands
	cut := len(v.args) > 0 && v.args[len(v.args)-1].cut
	for _, alts := range r.options {
		if hasOption(alts, v.options, may) {
			continue
		}
		n := slices.IndexFunc(operands, word.wild)
		if n < 0 || !may || !cut && strings.Contains(string(alts[0]), "=") {
			return false
		}
		if !operands[n].many { // what stands for an option can't be an operand too
			operands = slices.Delete(slices.Clone(operands), n, n+1)
		}
	}
	if r.secrets && !cut {
		operands, may = v.read(operands), false // nearly anything may be a secret
	}
	return fit(r.elements, operands, v.options, &v.at, may)
}

// Folders are the globs of the folders in which the rule holds, as they are written; none:
// everywhere.
func (r *Rule) Folders() (out []string) {
	for _, f := range r.in {
		out = append(out, f.text)
	}
	return out
}

// holds says whether a rule holds where a command runs. One that allows does only in
// the folder that the command was started in: a script's own cd says where it goes
// to, not where a link on the way leads. Others do wherever it may be.
func (r *Rule) holds(at *site) bool {
	if r.Verdict == Allow && (len(at.dirs) != 1 || at.dirs[0] != at.start) || len(at.dirs) == 0 {
		return r.Verdict != Allow
	}
	return slices.ContainsFunc(r.in, func(f folder) bool {
		return slices.ContainsFunc(at.dirs, func(dir string) bool {
			in, known := f.holds(dir, at.project, at.home)
			return in || !known && r.Verdict != Allow
		})
	})
}

// anyMatches says whether one of some rules is about an invocation.
func anyMatches(rules []Rule, v *invocation) bool {
	return slices.ContainsFunc(rules, func(r Rule) bool { return r.match(v) })
}

func (r *Rule) named(names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		known := r.Verdict != Allow && usual[n] != ""
		return r.calls(n) || known && r.calls(usual[n])
	})
}

func (r *Rule) calls(name string) bool {
	return slices.Contains(r.names, name) || slices.ContainsFunc(r.patterns, func(g glob) bool { return g.match(name) })
}

// typed says whether the rule names its program with just this folder.
func (r *Rule) typed(name string) bool {
	return name != "" && r.Verdict == Allow && (slices.Contains(r.names, name) ||
		slices.ContainsFunc(r.patterns, func(g glob) bool { return strings.Contains(string(g), "/") && g.match(name) }))
}

// hasOption says whether one of the alternatives is among the options.
func hasOption(alts []glob, options []word, may bool) bool {
	return slices.ContainsFunc(options, func(o word) bool {
		return slices.ContainsFunc(alts, func(a glob) bool { return a.option(o, may) })
	})
}

// option says whether a pattern of an option, maybe with a value, is about one.
func (g glob) option(o word, may bool) bool {
	if g.match(o.text) {
		return true
	}
	if i := strings.Index(o.text, unknown); may && i > 1 && (g.mayBegin(o.text[:i]) || len(g) == 2 && letters(o.text[1:i])) {
		return true
	}
	name, value, valued := strings.Cut(string(g), "=")
	val, has, is := glob(name).valueIn(o)
	return is && (!valued || has && glob(value).match(val.text))
}

// valueIn says whether a pattern of an option without a value is about one, and which
// value that has: "-nVALUE" may have one.
func (g glob) valueIn(o word) (value word, has, is bool) {
	name, val, has := strings.Cut(o.text, "=")
	value.text = val
	switch {
	case g.match(name):
		return value, has, true
	case strings.HasPrefix(string(g), "--"): // an unambiguous beginning will do
		return value, has, len(name) > 2 && strings.HasPrefix(string(g), strings.TrimSuffix(name, unknown))
	case len(g) != 2 || !g.literal() || strings.HasPrefix(name, "--"):
		return value, false, false
	}
	// One letter, maybe behind others: all that follows may be its value, whatever is in there.
	if i := strings.IndexByte(name, g[1]); i > 0 && letters(name[1:i]) {
		if i+1 < len(name) {
			value.text, has = o.text[i+1:], true
		}
		return value, has, true
	}
	if value.text, has = strings.CutPrefix(o.text, string(g)); has {
		return value, true, false
	}
	return value, false, false
}

// letters says whether options of one letter, as curl's -# is too, are all that s has.
func letters(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789#:") == ""
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
// wherever it could; else only where anything does. An argument that may be the value of
// an option before it may be left out, and so may an element that is one of the options'
// values. It follows all ways to do so at once, by how many arguments each has taken.
func fit(es []element, args, options []word, at *site, may bool) bool {
	here := []int{0}
	for len(es) > 0 {
		e := &es[0]
		es = es[1:]
		if here = left(here, args); len(here) == 0 {
			return false
		}
		if e.any {
			for len(es) > 0 && es[0].any {
				es = es[1:]
			}
			if len(es) == 0 {
				return true
			}
			least := here[0]
			if c := es[0].class; may && c != nil && c.together != nil && len(es) == 2 && es[1].any && c.together(args[least:], at) {
				return true
			}
			here = here[:0]
			for i := least; i <= len(args); i++ {
				here = append(here, i)
			}
			continue
		}
		var next []int
		given := e.given(options, at, may)
		for _, i := range here {
			if given && (len(next) == 0 || next[len(next)-1] < i) {
				next = append(next, i)
			}
			switch {
			case i == len(args):
			case may && args[i].many && args[i].wild():
				return true // it may be all that is missing
			case e.fits(args[i], at, may):
				next = append(next, i+1)
			}
		}
		here = next
	}
	here = left(here, args)
	return len(here) > 0 && here[len(here)-1] == len(args)
}

// left adds to some numbers of arguments, in order, those that are reached by leaving out
// what may be an option's value.
func left(here []int, args []word) []int {
	value := func(i int) bool { return i < len(args) && args[i].value }
	if !slices.ContainsFunc(here, value) {
		return here
	}
	var out []int
	for k, i := range here {
		for out = append(out, i); value(i) && (k+1 == len(here) || here[k+1] > i+1); out = append(out, i) {
			i++
		}
	}
	return out
}

// given says whether an element that stands behind an option is the value of such a one.
func (e *element) given(options []word, at *site, may bool) bool {
	return slices.ContainsFunc(options, func(o word) bool {
		return slices.ContainsFunc(e.of, func(g glob) bool {
			value, has, _ := g.valueIn(o)
			return has && e.fits(value, at, may)
		})
	})
}

func (e *element) fits(w word, at *site, may bool) bool {
	if e.class != nil {
		return e.class.is(w, at)
	}
	for _, g := range e.alts {
		if w.known() && g.match(w.text) || may && slices.ContainsFunc(w.near, g.match) {
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

// ParseRule reads the words of a rule that stands in no file.
func ParseRule(verdict Verdict, text string) (Rule, error) {
	r, _, err := parseRule(verdict, text, false)
	if err != nil {
		return Rule{}, fmt.Errorf("cannot use the rule %q: %w", text, err)
	}
	return r, nil
}
