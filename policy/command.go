package policy

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// simple judges one command and adds its parts. text is how it is shown,
// files are what its program is called beside that, where it is known.
func (j *judging) simple(text string, ws []word, at site, files ...string) {
	f := j.chain(text, ws, at, files...)
	if f != nil {
		j.add(text, ws, *f)
	}
}

const (
	whatUnknown = "which program it runs is only known when it runs"
	fromInput   = "it runs what another command writes"
	renames     = "it gives a command another name, so that what follows may be something else"
)

// renaming are commands that give others another name.
var renaming = sync.OnceValue(func() (out []Rule) {
	for _, text := range []string{"alias *=*", "hash -p", "enable -f", "git -c=alias.*|--config-env=alias.*"} {
		r, err := ParseRule(Ask, text)
		if err != nil {
			panic(err) // it is part of the program, and tested
		}
		out = append(out, r)
	}
	return out
})

// chain judges a command and all that it is a wrapper of. nil: all that there
// is to say of it has been added as parts.
func (j *judging) chain(text string, ws []word, at site, files ...string) *finding {
	if len(ws) == 0 {
		return nil
	}
	if j.steps++; j.steps > maxSteps {
		return j.unknown(tooMany)
	}
	if j.depth >= maxDepth {
		return j.unknown(tooDeep)
	}
	j.depth++
	defer func() { j.depth-- }()
	name, ok := ws[0].name()
	called := names(name, files...)
	odd := !ok || name == ""
	if odd { // whoever starts it chose that: what its file is called counts
		called = called[1:]
	}
	if len(called) == 0 {
		return j.unknown(whatUnknown)
	}
	var all findings
	typed := ""
	if ws[0].known() && strings.Contains(ws[0].text, "/") {
		typed = ws[0].text
	}
	for _, r := range readings(called, ws[1:]) {
		r.typed = typed
		all.add(j.read(r, at, text))
	}
	if odd {
		all.add(j.unknown(whatUnknown))
	}
	if all.parts && all.found != nil && all.found.Layer == "" && all.found.verdict == Allow {
		return nil
	}
	return all.found
}

// reading is one way to understand a command: as what its program may be called,
// with the arguments that it then has.
type reading struct {
	called []string
	typed  string // see invocation
	g      *program
	args   []word
}

// readings are all of them. Whoever starts a program chooses the name that it is
// called by, and so may not choose by which name its arguments are understood.
func readings(called []string, args []word) (out []reading) {
	for _, n := range called {
		stem, first, ok := strings.Cut(n, "-")
		if read := grammar()[stem]; ok && read != nil && read().Stem {
			out = append(out, reading{called: []string{stem}, g: read(), args: append(words([]string{first}), args...)})
		}
	}
	plain := reading{called: called, g: noGrammar, args: args}
	for _, n := range called {
		g := grammarOf([]string{n})
		if g != noGrammar && plain.g != noGrammar && g != plain.g {
			out = append(out, plain)
		}
		if g != noGrammar {
			plain.g = g
		}
	}
	return append(out, plain)
}

// read judges one reading, and what it is a wrapper of. nil is as with chain.
func (j *judging) read(r reading, at site, text string) *finding {
	v := r.g.invoke(r.called, r.args, at)
	v.typed = r.typed
	if !r.g.Shell && sets(r.args, r.g.Runs != nil && r.g.Runs.Assignments) {
		j.more = cmp.Or(j.more, setsMore)
	}
	v.more = j.more != ""
	f := j.weigh(v)
	switch inner, more := j.within(r.called, r.g, r.args, at, text); {
	case inner == nil && !more:
		return &f
	case inner != nil && inner.verdict == f.verdict && f.verdict != Allow:
		return inner // says more than what it is wrapped in
	case inner != nil:
		f = f.or(*inner)
		return &f
	case f.Layer != "": // a wrapper that a rule is about is a part of its own
		return &f
	}
	return nil
}

// within judges what a command runs in turn: an inner command as a finding, or
// a script as parts of their own (more).
func (j *judging) within(called []string, g *program, args []word, at site, text string) (inner *finding, more bool) {
	switch {
	case g.Shell:
		return j.shell(called, args, at, text)
	case g.Interpreter && at.piped && g.told(args).reads():
		return j.unknown(fromInput), false
	case g.Interpreter:
		return j.interpreted(g, args, at, text)
	case slices.Contains(called, "find"), slices.Contains(called, "bfs"):
		return j.find(args, at, text)
	case slices.Contains([]string{"eval", "source", ".", "trap"}, called[0]):
		return j.builtin(called[0], args, at, text)
	case g.Runs != nil:
		return j.wrapper(g, args, at, text)
	}
	return nil, false
}

// interpreted judges what an interpreter is told to run.
func (j *judging) interpreted(g *program, args []word, at site, text string) (*finding, bool) {
	var all findings
	for _, ws := range filesOf(g, args) {
		all.join(j.file(ws, at, text))
	}
	if g.Runs != nil {
		all.join(j.wrapper(g, args, at, text))
	}
	return all.found, all.parts
}

// maxFiles bounds what of an interpreter's arguments is taken for the file that it runs.
const maxFiles = 8

// filesOf are the files that an interpreter may be told to run, with their arguments. An
// option that isn't known may take the word behind it or not.
func filesOf(g *program, args []word) (out [][]word) {
	odd := false // the word before is such an option
	for i := 0; i < len(args) && len(out) < maxFiles; i++ {
		t := args[i].text
		whole := slices.Contains(g.Values, t)
		switch {
		case t == "--" && i+1 < len(args):
			return append(out, args[i+1:])
		case t == "-":
			return out
		case !strings.HasPrefix(t, "-"):
			if out = append(out, args[i:]); !odd {
				return out
			}
			odd = false
		case whole || len(t) > 2 && t[1] != '-' && slices.Contains(g.Values, t[:2]):
			if !slices.Contains(g.Flags, t) && !slices.Contains(g.Flags, t[:2]) { // what it runs is in there
				return out
			}
			if whole {
				i++
			}
		default:
			last := "-" + t[len(t)-1:] // of several letters, as in -wI
			odd = !strings.Contains(t, "=") && !strings.HasPrefix(t, "--no-") &&
				(t[1] == '-' || slices.Contains(g.Values, last) && slices.Contains(g.Flags, last))
		}
	}
	return out
}

// wrapper judges what a wrapper runs.
func (j *judging) wrapper(g *program, args []word, at site, text string) (found *finding, more bool) {
	var all findings
	u := g.unwrap(args)
	for _, s := range u.scripts {
		all.join(j.script(s.text, s.known(), "bash", at, text))
	}
	rest := u.rest
	switch {
	case u.split != nil:
		all.join(j.split(*u.split, rest, at, text))
		return all.found, all.parts
	case len(rest) == 0:
		return all.found, all.parts
	case g.Runs.Joined:
		all.join(j.joined(rest, at, text))
		return all.found, all.parts
	}
	if g.Runs.Input {
		rest = append(slices.Clone(rest), word{text: unknown, many: true})
		for i := range rest {
			if strings.Contains(rest[i].text, "{}") { // replaced with what comes in, or left
				rest[i].text = strings.ReplaceAll(rest[i].text, "{}", unknown)
			}
		}
		at.piped = false
	}
	n := 1
	if u.unsure {
		n = min(len(rest), 32)
	}
	for k := range n {
		f := j.chain(text, rest[k:], at)
		if k > 0 && f != nil && f.Layer == "" && f.rule != tooMany && f.rule != tooDeep && f.rule != tooLong {
			continue // most of these are no commands at all
		}
		all.add(f)
	}
	return all.found, all.parts
}

// split is env -S: one argument that holds several.
func (j *judging) split(val word, rest []word, at site, text string) (*finding, bool) {
	if !val.known() || strings.ContainsAny(val.text, `\'"$`) {
		return j.unknown(whatUnknown), false
	}
	f := j.chain(text, append(words(append([]string{"env"}, strings.Fields(val.text)...)), rest...), at)
	return f, f == nil
}

// joined is a command given in pieces to a shell.
func (j *judging) joined(ws []word, at site, text string) (*finding, bool) {
	parts := make([]string, len(ws))
	known := true
	for i, w := range ws {
		parts[i] = w.text
		known = known && w.known()
	}
	return j.script(strings.Join(parts, " "), known, "bash", at, text)
}
