package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Policy is layers of rules. A rule that denies wins in whatever layer it
// stands; else the most specific layer decides that has a rule which matches,
// and in it the first such rule. What no rule matches is allowed, since it runs
// in the sandbox, where what it writes is taken back and what leaves is asked about as
// it leaves. No rule is built in. It is safe for concurrent use.
type Policy struct {
	layers []Layer // from the most general to the most specific
}

// Layers are what it is made of, from the most general to the most specific. They
// aren't the caller's to change.
func (p *Policy) Layers() []Layer { return p.layers }

// Of is the policy of some layers, from the most general to the most specific.
func Of(layers ...Layer) *Policy { return &Policy{layers: layers} }

// With is the policy with more specific layers on top.
func (p *Policy) With(layers ...Layer) *Policy {
	return &Policy{layers: append(slices.Clip(p.layers), layers...)}
}

// Command is a program that wants to start.
type Command struct {
	Argv    []string // as execve gets it, or as Profile.Peel made it
	Cwd     string   // in the sandbox; "" isn't known
	Program string   // resolved path of the file that will run; "" isn't known
	Started string   // the path that it was started by, which may be a link's; "" isn't known
	Written bool     // this session wrote that file
	Posing  bool     // Argv[0] may be a name that the agent chose, and not that file's
	Project string   // the project folder in the sandbox; "" isn't known
	Home    string   // the home folder in the sandbox; "" isn't known
	Env     []string // variables that it wasn't given by the agent's own environment
	Cut     bool     // Argv or Env is only the beginning of what it gets
	// Wrote says whether this session wrote a file, given by its path in the
	// sandbox; nil: only Written is known.
	Wrote func(path string) bool
	// Hidden says of a file, by its path in the sandbox, that it isn't shown there; nil: of
	// none.
	Hidden func(path string) bool
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

// more says why it may do more than its words show; "": it doesn't.
func (c *Command) more() string {
	if c.wrote() {
		return "what runs may be this session's own"
	}
	if c.Posing {
		return "it goes by a name that the agent may have chosen"
	}
	var given []string
	curbs := Curbs(c.Env)
	for _, v := range c.Env {
		if name, _, _ := strings.Cut(v, "="); Loads(v) && !curbs[v] && !slices.Contains(given, name) {
			given = append(given, name)
		}
	}
	slices.Sort(given)
	return moreBy(given)
}

// maxGiven bounds how many variables are named, and how much of each.
const maxGiven, maxGivenName = 4, 40

// moreBy says that variables have a command do more than its words show; "" for none.
func moreBy(names []string) string {
	if len(names) == 0 {
		return ""
	}
	var out []string
	for _, n := range names[:min(len(names), maxGiven)] {
		out = append(out, n[:min(len(n), maxGivenName)])
	}
	and := ""
	if n := len(names) - len(out); n > 0 {
		and = fmt.Sprintf(" and %d more", n)
	}
	return "it is given " + strings.Join(out, ", ") + and + ", which may have it do more than it shows"
}

// Where says where something stands.
type Where struct {
	Layer string // "": in none, no rule says it
	File  string // "": in none that a person could edit
	Line  int    // of the file, from 1; 0: nowhere
}

// after puts it behind what stands there.
func (w *Where) after(words string) string {
	switch {
	case w.Layer == "":
		return words
	case w.Line == 0:
		return fmt.Sprintf("%s (%s)", words, w.Layer)
	case path.IsAbs(w.File):
		return fmt.Sprintf("%s (%s, %s:%d)", words, w.Layer, w.File, w.Line)
	}
	return fmt.Sprintf("%s (%s, line %d)", words, w.Layer, w.Line)
}

// Judgement is what the rules say of a command or a connection.
type Judgement struct {
	Verdict Verdict
	Rule    string // what gave the verdict, in words
	Where          // that stands
	Origin  Origin // of that layer, of a connection
	Parts   []Part // the simple commands in it, in order; none for hosts
	// NestedAllowed says that a rule allows what the command starts, too.
	NestedAllowed bool
	// Uncounted is why no rule that allows counts for what is asked about; "": they do. It
	// isn't escaped.
	Uncounted string
	// Special says that the rule names a place that only its own rule opens, see
	// HostRule.Special.
	Special bool
	// Limits are what the connections of the rule may carry in one session, and Budget
	// names the rule, whatever these are.
	Limits []Limit
	Budget string
}

// From is the rule, and where it stands.
func (j *Judgement) From() string { return j.after(j.Rule) }

// Denial is what is said of something that was denied: the rule, where it stands, and
// how a person changes that.
func (j *Judgement) Denial() string {
	switch {
	case j.Layer == "":
		return j.Rule
	case path.IsAbs(j.File):
		return j.From() + "; the person can change it there"
	case j.Line == 0: // in no file
		return j.From() + "; the person forgets it (stepbox deny --forget)"
	}
	return j.From()
}

// Part is one simple command.
type Part struct {
	Text    string // as it stands in the script, or as a person would type it; not escaped
	Verdict Verdict
	Rule    string
	Where

	words []word // nil: it is more than a command and its arguments
}

// maxReadings bounds of how many words a command has readings.
const maxReadings = 64

// Readings are the words of the command as its program gets them, and those of what it may
// be a wrapper of: all that come after some of the words. Nil where a word is known only
// when it runs.
func (p *Part) Readings() (out [][]string) {
	argv := make([]string, len(p.words))
	for i, w := range p.words {
		if argv[i] = w.text; !w.known() || len(argv) > maxReadings {
			return nil
		}
	}
	for i := range argv {
		out = append(out, argv[i:])
	}
	return out
}

// Bounds on what is judged. Beyond them a command is asked about, if no rule denies what is
// known of it: whoever starts a program can give it more arguments than it needs.
const (
	maxBytes = 64 << 10
	maxArgs  = 4096
	maxParts = 256
	maxSteps = 1024 // commands looked at, wrapped ones included
	maxLarge = 8    // likewise of one beyond maxBytes or maxArgs, of which each look takes longer
	maxDepth = 16   // scripts and wrappers in one another
	maxNests = 1000 // parentheses, keywords and the like in a script
)

const (
	noRule   = "no rule asks about it"
	tooLarge = "it is too large to be judged"
	tooMany  = "it has more commands than can be judged"
	tooLong  = "it takes too long to be judged by so many rules"
	tooDeep  = "its scripts are nested too deeply to be judged"
)

// Command judges a program that wants to start. Scripts given to shells are
// taken apart and each simple command is judged; wrappers such as env and
// timeout are looked through; the strictest verdict wins. What can't be told
// before it runs is asked about where it may be what a rule asks about or denies. It takes
// microseconds, and is bounded whatever it is given.
func (p *Policy) Command(c Command) Judgement {
	size := 0
	for _, a := range c.Argv {
		size += len(a) + 1
	}
	if len(c.Argv) == 0 {
		return p.Doubted(Judgement{Verdict: Allow, Rule: noRule}, "it has no arguments, not even a name")
	}
	j := judging{policy: p, home: c.Home, more: c.more()}
	at := site{project: c.Project, home: c.Home, hidden: c.Hidden}
	if c.Cwd != "" {
		at.dirs, at.start = []string{c.Cwd}, c.Cwd
	}
	if size <= maxBytes && len(c.Argv) <= maxArgs && !c.Cut {
		j.simple(Line(c.Argv), words(c.Argv), at, c.Started, c.Program)
		return j.judgement()
	}
	ws := words(c.Argv)
	if c.Cut {
		ws[len(ws)-1].text += unknown
		ws = append(ws, word{text: unknown, many: true, cut: true})
	}
	j.steps = maxSteps - maxLarge
	j.simple("", ws, at, c.Started, c.Program)
	if out := j.judgement(); out.Verdict == Deny {
		out.Parts = nil
		return out
	}
	return p.Doubted(Judgement{Verdict: Allow, Rule: noRule}, tooLarge)
}

// guards says whether a rule asks about a command or denies it.
func (p *Policy) guards() bool {
	return slices.ContainsFunc(p.layers, func(l Layer) bool {
		return slices.ContainsFunc(l.Rules, func(r Rule) bool { return r.Verdict != Allow })
	})
}

// Doubted is what is said of something that rules let run, and that may be more than can be
// told before it runs: it is asked about where a rule asks or denies, since it may be what that
// is about. Without one there is nothing that it could be.
func (p *Policy) Doubted(j Judgement, why string) Judgement {
	if j.Verdict == Allow && p.guards() {
		j.Verdict, j.Rule, j.Where = Ask, why, Where{}
	}
	return j
}

// Nobody is a program that only rules for all programs are about.
const Nobody = "/\x00"

// Connect judges a connection of a program, given by its path; "" isn't known, and
// then no rule for a program allows it. What has a name that isn't a valid host name is
// denied, since no rule can be about it.
func (p *Policy) Connect(d Destination, program string) Judgement {
	d = d.proper()
	if d.Name == improper {
		return Judgement{Verdict: Deny, Rule: "its name isn't a valid host name, which no rule can allow"}
	}
	var found *NetRule
	var in *Layer
	for i := range p.layers {
		l := &p.layers[len(p.layers)-1-i]
		for k := range l.Network {
			r := &l.Network[k]
			if found != nil && r.Verdict != Deny || !r.match(d, program) {
				continue
			}
			if found, in = r, l; r.Verdict == Deny {
				return Judgement{Verdict: Deny, Rule: r.String(), Where: Where{l.Name, r.File, r.Line}, Origin: l.Origin}
			}
		}
	}
	if found == nil {
		return Judgement{Verdict: Ask, Rule: "no rule knows this host"}
	}
	return Judgement{
		Verdict: found.Verdict, Rule: found.String(), Where: Where{in.Name, found.File, found.Line}, Origin: in.Origin,
		Special: found.Host.Special(), Limits: found.Limits, Budget: in.Name + ": " + found.subject(),
	}
}

// AsksPrograms says whether Connect may depend on the program: some rule names one.
func (p *Policy) AsksPrograms() bool {
	return slices.ContainsFunc(p.layers, func(l Layer) bool {
		return slices.ContainsFunc(l.Network, func(r NetRule) bool { return len(r.programs) > 0 })
	})
}

// finding is what was found out about a simple command.
type finding struct {
	verdict Verdict
	rule    string
	Where
	nested bool
}

// unknown is what is found of what can't be told before it runs, see Doubted.
func (j *judging) unknown(why string) *finding {
	if !j.policy.guards() {
		return &finding{verdict: Allow, rule: noRule}
	}
	return &finding{verdict: Ask, rule: why}
}

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

// maxWork bounds what it takes to ask the rules about a command, in steps of a few
// nanoseconds. Rules may come with the project, and both they and the command from who wants
// to keep those who judge busy: what takes more is denied, since no rule was found not to.
const maxWork = 500e6

// weigh asks the rules about one invocation.
func (j *judging) weigh(v *invocation) finding {
	p := j.policy
	v.size = len(v.names)
	for _, n := range v.names {
		v.size += len(n)
	}
	for _, w := range v.args {
		v.size += len(w.text)
	}
	var found *finding
	var guess *Layer // in which found is a rule that asks, and only may be about it
	for i := range p.layers {
		l := &p.layers[len(p.layers)-1-i]
		for k := range l.Rules {
			r := &l.Rules[k]
			if len(r.patterns) == 0 && !r.named(v.names) && !r.typed(v.typed) {
				continue
			}
			if j.work += r.work(v); j.work > maxWork {
				return finding{verdict: Deny, rule: tooLong}
			}
			switch {
			case found != nil && guess == l && r.Verdict == Ask && r.about(v, false): // says better why
				guess = nil
			case found != nil && r.Verdict != Deny || !r.match(v):
				continue
			case found == nil && r.Verdict == Ask && !r.about(v, false):
				guess = l
			}
			found = &finding{r.Verdict, r.String(), Where{l.Name, r.File, r.Line}, r.Nested}
			if r.Verdict == Deny {
				return *found
			}
		}
	}
	switch {
	case found != nil:
		return *found
	case anyMatches(renaming(), v):
		return *j.unknown(renames)
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
	work   int // that asking the rules took, see maxWork
	full   bool
	more   string // why it may do more than its words show, so that no rule allows it; "": it doesn't
}

// add notes a part. What is beyond the bound is one part that asks.
func (j *judging) add(text string, ws []word, f finding) {
	if len(j.parts) >= maxParts {
		if !j.full {
			j.full = true
			f := j.unknown(tooMany)
			j.parts = append(j.parts, Part{Text: text, Verdict: f.verdict, Rule: f.rule})
			j.nested = append(j.nested, false)
		}
		return
	}
	j.parts = append(j.parts, Part{text, f.verdict, f.rule, f.Where, ws})
	j.nested = append(j.nested, f.nested)
}

func (j *judging) judgement() Judgement {
	out := Judgement{Verdict: Allow, Rule: noRule, Parts: j.parts, NestedAllowed: len(j.parts) > 0 && !slices.Contains(j.nested, false)}
	for i, p := range j.parts {
		if i == 0 || p.Verdict.Stricter(out.Verdict) || out.Layer == "" && p.Layer != "" && !out.Verdict.Stricter(p.Verdict) {
			out.Verdict, out.Rule, out.Where = p.Verdict, p.Rule, p.Where
		}
	}
	if out.Verdict == Ask {
		out.Uncounted = j.more
	}
	return out
}

// names are what a program may be called: a link's name tells a program with
// many faces what to be, and the file's name tells what an odd name hides.
func names(argv0 string, files ...string) []string {
	out := []string{path.Base(strings.TrimPrefix(argv0, "-"))} // as busybox and login shells are told
	for _, f := range files {
		if n := path.Base(f); f != "" && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}
