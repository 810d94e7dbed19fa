package policy

import (
	_ "embed"
	"path"
	"slices"
	"sync"
)

// Policy is layers of rules. A rule that denies wins in whatever layer it
// stands; else the most specific layer decides that has a rule which matches,
// and in it the first such rule. What no rule matches is allowed, since it runs
// in the sandbox. It is safe for concurrent use.
type Policy struct {
	layers []Layer // from the most general to the most specific
}

//go:embed builtin.yaml
var builtinYAML []byte

var builtin = sync.OnceValue(func() *Policy {
	l, err := ParseLayer("built-in", "builtin.yaml", builtinYAML)
	if err != nil {
		panic(err) // the file is part of the program, and tested
	}
	return &Policy{layers: []Layer{l}}
})

// Builtin is the policy that applies when nobody has said anything.
func Builtin() *Policy { return builtin() }

// With is the policy with more specific layers on top.
func (p *Policy) With(layers ...Layer) *Policy {
	return &Policy{layers: append(slices.Clip(p.layers), layers...)}
}

// Command is a program that wants to start.
type Command struct {
	Argv    []string // as execve gets it, or as Profile.Peel made it
	Cwd     string   // in the sandbox; "" isn't known
	Program string   // resolved path of the file that will run; "" isn't known
	Written bool     // this session wrote that file
	Project string   // the project folder in the sandbox; "" isn't known
	Home    string   // the home folder in the sandbox; "" isn't known
	Env     []string // variables that it wasn't given by the agent's own environment
	// Wrote says whether this session wrote a file, given by its path in the
	// sandbox; nil: only Written is known.
	Wrote func(path string) bool
	// Resolve gives the file that a path leads to for the program, all links
	// followed; "" when there is none. nil: paths are taken as they are.
	Resolve func(path string) string
}

func (c *Command) file(name string) string {
	if c.Resolve == nil {
		return name
	}
	return c.Resolve(name)
}

func (c *Command) wrote() bool {
	return c.Written || c.Wrote != nil && c.Program != "" && c.Wrote(c.Program)
}

// Judgement is what the rules say of a command or a connection.
type Judgement struct {
	Verdict Verdict
	Rule    string // what gave the verdict, in words
	Layer   string // where that stands; "" when no rule matched
	Line    int    // in the layer's file; 0 when no rule matched
	Parts   []Part // the simple commands in it, in order; none for hosts
	// NestedAllowed says that a rule allows what the command starts, too.
	NestedAllowed bool
}

// Part is one simple command.
type Part struct {
	Text    string // as it stands in the script, or as a person would type it; not escaped
	Verdict Verdict
	Rule    string
	Layer   string
	Line    int
}

// Bounds on what is judged. Beyond them a command is asked about.
const (
	maxBytes = 64 << 10
	maxArgs  = 4096
	maxParts = 256
	maxSteps = 1024 // commands looked at, wrapped ones included
	maxDepth = 16   // scripts and wrappers in one another
	maxNests = 1000 // parentheses, keywords and the like in a script
)

const (
	noRule   = "no rule asks about it"
	tooLarge = "it is too large to be judged"
	tooMany  = "it has more commands than can be judged"
	tooDeep  = "its scripts are nested too deeply to be judged"
)

// Command judges a program that wants to start. Scripts given to shells are
// taken apart and each simple command is judged; wrappers such as env and
// timeout are looked through; the strictest verdict wins. What can't be told
// before it runs is asked about where it may be what a rule is about. It takes
// microseconds, and is bounded whatever it is given.
func (p *Policy) Command(c Command) Judgement {
	size := 0
	for _, a := range c.Argv {
		size += len(a) + 1
	}
	if len(c.Argv) == 0 {
		return Judgement{Verdict: Ask, Rule: "it has no arguments, not even a name"}
	}
	if size > maxBytes || len(c.Argv) > maxArgs {
		return Judgement{Verdict: Ask, Rule: tooLarge}
	}
	j := judging{policy: p, home: c.Home}
	at := site{project: c.Project, home: c.Home}
	if c.Cwd != "" {
		at.dirs = []string{c.Cwd}
	}
	j.simple(Line(c.Argv), words(c.Argv), c.Program, at)
	return j.judgement()
}

// Host judges a connection. name is the name that was asked for, or an address.
func (p *Policy) Host(name string, port int) Judgement {
	for _, l := range p.layers {
		for _, r := range l.Deny {
			if r.Match(name, port) {
				return Judgement{Verdict: Deny, Rule: "deny " + r.String(), Layer: l.Name}
			}
		}
	}
	for _, l := range slices.Backward(p.layers) {
		for _, r := range l.Allow {
			if r.Match(name, port) {
				return Judgement{Verdict: Allow, Rule: "allow " + r.String(), Layer: l.Name}
			}
		}
	}
	return Judgement{Verdict: Ask, Rule: "no rule knows this host"}
}

// finding is what was found out about a simple command.
type finding struct {
	verdict Verdict
	rule    string
	layer   string
	line    int
	nested  bool
}

func askFor(why string) *finding { return &finding{verdict: Ask, rule: why} }

func (f finding) or(g finding) finding {
	if g.verdict.Stricter(f.verdict) {
		return g
	}
	f.nested = f.nested && g.nested
	return f
}

// findings are what was found out about a command, or about what it runs in turn:
// one finding, parts of their own, or both.
type findings struct {
	found *finding
	parts bool
}

// add puts another finding to them. Nil is one that has nothing of its own to say,
// only its parts.
func (i *findings) add(f *finding) { i.join(f, f == nil) }

func (i *findings) join(f *finding, parts bool) {
	if f != nil && i.found != nil {
		worse := i.found.or(*f)
		f = &worse
	}
	if f != nil {
		i.found = f
	}
	i.parts = i.parts || parts
}

// weigh asks the rules about one invocation.
func (p *Policy) weigh(v *invocation) finding {
	var found *finding
	for i := range p.layers {
		l := &p.layers[len(p.layers)-1-i]
		for k := range l.Rules {
			r := &l.Rules[k]
			if found != nil && r.Verdict != Deny || !r.match(v) {
				continue
			}
			found = &finding{r.Verdict, r.String(), l.Name, r.Line, r.Nested}
			if r.Verdict == Deny {
				return *found
			}
		}
	}
	if found != nil {
		return *found
	}
	return finding{verdict: Allow, rule: noRule}
}

// String is the rule in words.
func (r *Rule) String() string {
	s := string(r.Verdict) + " " + r.Text
	if r.Why != "" {
		s += ": " + r.Why
	}
	return s
}

// judging is one command being judged.
type judging struct {
	policy *Policy
	home   string
	parts  []Part
	nested []bool
	depth  int
	steps  int
	full   bool
}

// add notes a part. What is beyond the bound is one part that asks.
func (j *judging) add(text string, f finding) {
	if len(j.parts) >= maxParts {
		if !j.full {
			j.full = true
			j.parts = append(j.parts, Part{Text: text, Verdict: Ask, Rule: tooMany})
			j.nested = append(j.nested, false)
		}
		return
	}
	j.parts = append(j.parts, Part{text, f.verdict, f.rule, f.layer, f.line})
	j.nested = append(j.nested, f.nested)
}

func (j *judging) judgement() Judgement {
	out := Judgement{Verdict: Allow, Rule: noRule, Parts: j.parts, NestedAllowed: len(j.parts) > 0 && !slices.Contains(j.nested, false)}
	for i, p := range j.parts {
		if i == 0 || p.Verdict.Stricter(out.Verdict) || out.Layer == "" && p.Layer != "" && !out.Verdict.Stricter(p.Verdict) {
			out.Verdict, out.Rule, out.Layer, out.Line = p.Verdict, p.Rule, p.Layer, p.Line
		}
	}
	return out
}

// names are what a program may be called: a link's name tells a program with
// many faces what to be, and the file's name tells what an odd name hides.
func names(argv0, program string) []string {
	out := []string{path.Base(argv0)}
	if n := path.Base(program); program != "" && n != out[0] {
		out = append(out, n)
	}
	return out
}
