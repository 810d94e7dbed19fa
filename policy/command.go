package policy

import (
	"slices"
	"strings"
)

// simple judges one command and adds its parts. text is how it is shown,
// program the file that will run, where that is known.
func (j *judging) simple(text string, ws []word, program string, at site) {
	f := j.chain(text, ws, program, at)
	if f != nil {
		j.add(text, *f)
	}
}

const (
	whatUnknown = "which program it runs is only known when it runs"
	fromInput   = "it runs what another command writes"
)

// chain judges a command and all that it is a wrapper of. nil: all that there
// is to say of it has been added as parts.
func (j *judging) chain(text string, ws []word, program string, at site) *finding {
	if len(ws) == 0 {
		return nil
	}
	if j.steps++; j.steps > maxSteps {
		return askFor(tooMany)
	}
	if j.depth >= maxDepth {
		return askFor(tooDeep)
	}
	j.depth++
	defer func() { j.depth-- }()
	name, ok := ws[0].name()
	if !ok || name == "" {
		return askFor(whatUnknown)
	}
	var all findings
	for _, r := range readings(names(name, program), ws[1:]) {
		all.add(j.read(r, at, text))
	}
	if all.parts && all.found != nil && all.found.layer == "" && all.found.verdict == Allow {
		return nil
	}
	return all.found
}

// reading is one way to understand a command: as what its program may be called,
// with the arguments that it then has.
type reading struct {
	called []string
	g      *program
	args   []word
}

// readings are all of them. Whoever starts a program chooses the name that it is
// called by, and so may not choose by which name its arguments are understood.
func readings(called []string, args []word) (out []reading) {
	for _, n := range called {
		if stem, first, ok := strings.Cut(n, "-"); ok && grammar()[stem] != nil && grammar()[stem].Stem {
			out = append(out, reading{[]string{stem}, grammar()[stem], append(words([]string{first}), args...)})
		}
	}
	if len(out) == len(called) {
		return out
	}
	plain := reading{called, noGrammar, args}
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
	f := j.policy.weigh(r.g.invoke(r.called, r.args, at))
	switch inner, more := j.within(r.called, r.g, r.args, at, text); {
	case inner == nil && !more:
		return &f
	case inner != nil:
		f = f.or(*inner)
		return &f
	case f.layer != "": // a wrapper that a rule is about is a part of its own
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
	case g.Interpreter && at.piped && readsInput(g, args):
		return askFor(fromInput), false
	case slices.Contains(called, "find"), slices.Contains(called, "bfs"):
		return j.find(args, at, text)
	case slices.Contains([]string{"eval", "source", ".", "trap"}, called[0]):
		return j.builtin(called[0], args, at, text)
	case g.Runs != nil:
		return j.wrapper(g, args, at, text)
	}
	return nil, false
}

// readsInput says whether an interpreter has neither a file nor an option that
// holds its program.
func readsInput(g *program, args []word) bool {
	for i := 0; i < len(args); i++ {
		switch t := args[i].text; {
		case t == "-", isInput(t):
			return true
		case t == "--":
			return i+1 == len(args)
		case !strings.HasPrefix(t, "-"):
			return false
		case slices.Contains(g.Values, t):
			if !slices.Contains(g.Flags, t) { // flags there: harmless values
				return false
			}
			i++
		case !strings.HasPrefix(t, "--") && slices.Contains(g.Values, t[:2]) && !slices.Contains(g.Flags, t[:2]):
			return false
		}
	}
	return true
}

// wrapped is what was found in a wrapper's arguments.
type wrapped struct {
	scripts []word // given to a shell
	split   *word  // to be split into arguments, before rest
	rest    []word // the command
	unsure  bool   // it may begin later in rest
}

// unwrap finds the command in a wrapper's arguments.
func (g *program) unwrap(args []word) (out wrapped) {
	r := g.Runs
	skip, module := r.Skip, r.Module == ""
	i := 0
	for ; i < len(args); i++ {
		w := args[i]
		opt, val, attached := strings.Cut(w.text, "=")
		switch {
		case slices.Contains(r.Lookup, w.text):
			return wrapped{}
		case w.wild():
			out.unsure = true
			if skip == 0 {
				goto found
			}
			skip--
		case w.text == "--":
			if i++; skip > 0 {
				i += skip
			}
			goto found
		case !module && takes([]string{r.Module}, &opt, &val, attached):
			module = true
			if i++; val != "" { // python -mtwine
				out.rest = append([]word{{text: val}}, args[i:]...)
				return out
			}
			goto found
		case len(w.text) > 1 && w.text[0] == '-':
			if takes(r.Scripts, &opt, &val, attached) || takes(r.Split, &opt, &val, attached) {
				value := word{text: val}
				if val == "" && !attached {
					if i++; i == len(args) {
						goto found
					}
					value = args[i]
				}
				if slices.Contains(r.Split, opt) {
					out.split, out.rest = &value, args[i+1:]
					return out
				}
				out.scripts = append(out.scripts, value)
				continue
			}
			switch {
			case slices.Contains(g.Values, w.text):
				i++
			case slices.Contains(g.Flags, w.text), slices.Contains(g.Flags, opt), attached && slices.Contains(g.Values, opt),
				len(w.text) > 2 && w.text[1] != '-' && (slices.Contains(g.Values, w.text[:2]) || bundle(w.text[1:], g.Flags)):
			default:
				out.unsure = true
			}
		case w.text == "-" && slices.Contains(g.Flags, "-"):
		case r.Assignments && strings.IndexByte(w.text, '=') > 0:
		case slices.Contains(g.Flags, w.text): // words such as pipx' run
		case skip == 0:
			goto found
		default:
			if skip--; skip == 0 && !r.Options {
				i++
				goto found
			}
		}
	}
found:
	for r.Assignments && i < len(args) && strings.IndexByte(args[i].text, '=') > 0 {
		i++
	}
	if i < len(args) && args[i].text == "--" {
		i++
	}
	if i < len(args) && module {
		out.rest = args[i:]
	}
	return out
}

// takes says whether an option is one of those that take a value, also when the
// value is attached or flags are in front.
func takes(options []string, opt, val *string, attached bool) bool {
	return slices.Contains(options, *opt) || !attached && short(options, opt, val)
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
		f := j.chain(text, rest[k:], "", at)
		if k > 0 && f != nil && f.layer == "" && f.rule != tooMany && f.rule != tooDeep {
			continue // most of these are no commands at all
		}
		all.add(f)
	}
	return all.found, all.parts
}

// short finds a one-letter option with its value attached, or at the end of a bundle.
func short(options []string, opt, val *string) bool {
	s := *opt
	if len(s) < 3 || s[1] == '-' {
		return false
	}
	for _, o := range options {
		if len(o) != 2 {
			continue
		}
		if i := strings.IndexByte(s, o[1]); i > 0 && letters(s[1:i+1]) {
			*opt, *val = o, s[i+1:]
			return true
		}
	}
	return false
}

// bundle says whether s is made of one-letter flags only.
func bundle(s string, flags []string) bool {
	for i := range len(s) {
		if !slices.Contains(flags, "-"+s[i:i+1]) {
			return false
		}
	}
	return true
}

// split is env -S: one argument that holds several.
func (j *judging) split(val word, rest []word, at site, text string) (*finding, bool) {
	if !val.known() || strings.ContainsAny(val.text, `\'"$`) {
		return askFor(whatUnknown), false
	}
	f := j.chain(text, append(words(append([]string{"env"}, strings.Fields(val.text)...)), rest...), "", at)
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
