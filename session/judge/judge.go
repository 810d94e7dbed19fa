// Package judge tells what a program start is before anybody decides on it: how
// a person is shown it, what the rules say, whether it is one of the agent's own
// programs, and what about it the agent, or this session, has made.
//
// A [Judge] is made once, at a session's start. All that it holds stays as it is while
// the session lives but the rules, see [Judge.Use], and what variables all commands have. [Judge.Exec] makes an [Exec] of what the gate holds;
// it looks at files and so runs outside the session's loop, on the goroutine
// that the gate calls. An Exec is never changed. What depends on how the session
// stands (its mode, whose the process is, what was approved) is added in session/form.go.
//
// Whom it trusts: the rules and the gate, never what it looks at. Names, argument
// lists and files are the agent's; files are looked at without following links.
// A Judge and an Exec may be used from any goroutine.
package judge

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"stepbox/policy"
	"stepbox/runner"
	"stepbox/runner/gate"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/redact"
)

// Judge holds what a session's program starts are judged by.
type Judge struct {
	Places Places
	Env    []string // the agent's
	// Local is where the person started the agent from: what looks like the agent's
	// program there is, also where it wouldn't be trusted.
	Local map[origin]bool
	// Profiles are those of agents that this one may start; nil: the built-in.
	Profiles *policy.Profiles
	// Secrets hides secrets in what a person is shown; nil: they are shown. What is judged
	// is what really runs.
	Secrets *redact.Redactor

	policy atomic.Pointer[policy.Policy] // nil: noRules
	self   atomic.Pointer[gate.File]     // Stepbox's own program in the sandbox; nil: there is none
	once   sync.Once
	known  map[string]bool // Env, set by once
	met    met
	read   read
}

// Use has what comes be judged by these rules.
func (j *Judge) Use(p *policy.Policy) { j.policy.Store(p) }

var noRules = policy.Of()

// Policy is what is judged by now.
func (j *Judge) Policy() *policy.Policy { return cmp.Or(j.policy.Load(), noRules) }

// foreign lists the variables of a program that the agent's own environment
// doesn't have, or has otherwise, but for those that are of its place.
func (j *Judge) foreign(e *gate.Exec, l *looks) (out, place []string) {
	j.once.Do(func() {
		j.known = make(map[string]bool, len(j.Env))
		for _, v := range j.Env {
			j.known[v] = true
		}
	})
	for _, v := range e.Env {
		switch {
		case j.known[v]:
		case ofItsPlace(v, e, l):
			place = append(place, v)
		default:
			out = append(out, v)
		}
	}
	return out, place
}

// Exec is a program start that was judged.
type Exec struct {
	*gate.Exec
	Profile *policy.Profile // by whose wrappers, helpers and programs it was judged

	Command   api.Command      // as a person is shown it
	Judgement policy.Judgement // of the rules
	Agent     *policy.Profile  // an agent's program: that agent's; nil for others
	Root      bool             // a shell or the like that will be fed commands
	Self      bool             // the agent's own program, started again
	Posing    bool             // it goes by a name that the agent may have chosen
	Ours      bool             // Stepbox's own program, told to do what agents may have it do
	Hook      bool             // a shell that the agent runs Ours in, and nothing else
	Chain     *Chain           // what the same process starts next, as part of this; nil for nothing
	Writable  bool             // its program, or the link that it was started by, is where the agent can write

	Orders

	foreign  []string         // its variables that the agent's own environment hasn't so, but for those of its place
	unmet    bool             // a person hasn't approved it with these variables
	hide     *redact.Redactor // of secrets in what is shown
	policy   *policy.Policy   // by which it was judged
	ruled    policy.Judgement // Judgement, whatever is known of the sources
	peeled   policy.Peeled
	sources  []source     // files that it reads commands from, besides what is shown
	suspects []string     // those of them for which rules doubt what it does, escaped
	scripts  *scriptsSeen // its arguments that may be its program; nil: not looked at
}

// Orders are what a program could be told, while it runs, from outside of what was shown.
type Orders struct {
	Fed   bool // others can write to what it runs commands from
	Obeys bool // for all that is known, it may start what others tell it to, or what nobody was shown
}

// Becomes says whether it is the agent's own program that was started only to become
// the command by which it was judged. It runs nothing until then, when that command is
// judged in its place: denied there, it fails where the agent reads why.
func (x *Exec) Becomes() bool {
	return x.Self && x.peeled.Wrapped && x.Profile.Starter(x.Argv)
}

// First judges the agent's own start, before anything else is judged.
func (j *Judge) First(e *gate.Exec, profile *policy.Profile) *Exec {
	j.Local = make(map[origin]bool)
	for _, f := range e.Files {
		j.Local[j.Places.origin(f.Path, j.looks())] = true
	}
	return j.Exec(e, profile).Closer()
}

// Exec judges a program start as one of an agent with this profile.
func (j *Judge) Exec(e *gate.Exec, profile *policy.Profile) *Exec {
	l := j.looks()
	peeled := profile.Peel(e.Argv)
	x := &Exec{Exec: e, Profile: profile, peeled: peeled, policy: j.Policy()}
	x.Posing = len(e.Argv) > 0 && j.Places.posing(e.Argv[0], e.Path, e.Program.Path)
	x.sources = j.sources(peeled, l)
	var place []string
	x.foreign, place = j.foreign(e, l)
	j.orders(x, l)
	x.Writable = j.Places.region(e.Program.Path) != elsewhere || j.Places.region(named(e)) != elsewhere
	j.own(x, l)
	var shown, same []string
	shown, same, x.unmet = j.met.split(e.Program.Path, x.foreign, l)
	x.Command = redact.Of(j.Secrets, command(x, shown, append(same, place...), l))
	x.hide = j.Secrets
	x.Command.Sources, x.suspects = readFrom(x.sources)
	x.judged(j.By(x, x.policy))
	if strings.Contains(peeled.Line, "push") || strings.Contains(peeled.Line, "publish") { // else it isn't looked into
		x.Command.Sends = redact.Of(j.Secrets, j.sends(x.Judgement.Parts, e.Cwd))
	}
	if p := j.Profiles.For(e.Argv, e.Program.Path); p.Agent() {
		x.Agent = p
	}
	x.Chain = chainOf(e, l)
	return x
}

// judged sets what the rules say of an exec.
func (x *Exec) judged(by policy.Judgement) {
	x.ruled, x.Judgement = by, by
	x.Command.Parts, x.Command.Uncounted = nil, api.Escape(by.Uncounted)
	for _, p := range by.Parts {
		x.Command.Parts = append(x.Command.Parts, api.Part{Text: x.hide.Text(api.EscapeScript(p.Text), ""), Verdict: api.Verdict(p.Verdict), Rule: p.Rule})
	}
	x.doubted()
}

// Newest is an exec as the rules judge it that hold now. It looks at no file: what it
// reads commands from is as it was found.
func (j *Judge) Newest(x *Exec) *Exec {
	p := j.Policy()
	if x.policy == p {
		return x
	}
	out := *x
	out.policy = p
	out.judged(j.By(x, p))
	return &out
}

// named is the path that an exec was given, before its links are followed.
func named(e *gate.Exec) string {
	if path.IsAbs(e.Path) {
		return e.Path
	}
	return path.Join(e.Cwd, e.Path)
}

// own tells whether an exec is one that belongs to the agent itself. One that loads
// what this session made never is.
func (j *Judge) own(x *Exec, l *looks) {
	e := x.Exec
	if j.ours(e) {
		x.Ours, x.Writable = true, false
		return
	}
	if l.made(e) || e.Linker != "" || slices.ContainsFunc(x.foreign, policy.LoadsCode) {
		return
	}
	x.Root = x.Profile.Root(asItsFile(e)) && shells[path.Base(e.Program.Path)] && !l.at(e.Program.Path).made()
	if e.Truncated {
		return
	}
	c := j.facts(x, e.Argv, false)
	c.Wrote = func(file string) bool { return j.untrusted(file, l) }
	c.Resolve = func(name string) string {
		f, err := e.Lookup(name)
		if err != nil {
			return ""
		}
		return f.Path
	}
	x.Self = x.Profile.Self(c)
	x.Hook = !x.Self && !slices.ContainsFunc(x.foreign, elsewhereAtHome) && j.hooks(e, l)
}

// hooks says whether an exec is a shell of the system's that an agent runs Stepbox's own program in, as
// agents run their hooks. What it starts is judged by itself.
func (j *Judge) hooks(e *gate.Exec, l *looks) bool {
	line, first, ok := policy.Told(e.Argv)
	words := strings.Split(line, " ")
	if !ok || len(e.Files) != 1 || !policy.IsShell(e.Program.Path) || j.untrusted(e.Program.Path, l) || j.self.Load() == nil {
		return false
	}
	there := func(name string) bool { return j.Places.Home == "" || l.at(path.Join(j.Places.Home, name)).made() }
	return words[0] == runner.SelfPath && speaks(words[1:]) && !slices.ContainsFunc(first, there)
}

// elsewhereAtHome says whether a variable has programs read their settings, and shells what
// they run first, where others may have written it.
func elsewhereAtHome(variable string) bool { return strings.HasPrefix(variable, "HOME=") }

// Know has this file be known as Stepbox's own program.
func (j *Judge) Know(self gate.File) { j.self.Store(&self) }

// ours says whether an exec is of Stepbox's own program, by the file that it is, and
// tells it no more than to speak for the agent. That is nothing that a person would be
// asked about: it can only say what any program of the sandbox can.
func (j *Judge) ours(e *gate.Exec) bool {
	self := j.self.Load()
	if self == nil || e.Truncated || e.Linker != "" || len(e.Files) != 1 || !isSelf(e.Files[0], *self) {
		return false
	}
	args := e.Argv[min(1, len(e.Argv)):]
	opens := len(args) == 1 && path.Base(e.Argv[0]) == "xdg-open" && strings.Contains(args[0], ":") // a page, and none of its own parts
	return opens || speaks(args)
}

// speaks says whether Stepbox's own program is told to speak for the agent.
func speaks(args []string) bool {
	switch len(args) {
	case 1:
		return args[0] == "mcp"
	case 3:
		return args[0] == "hook" && aName(args[1]) && aName(args[2])
	}
	return false
}

// isSelf says whether a file is Stepbox's own program, unchanged. One whose name is gone
// was replaced on the host while the session ran, by a newer version: that alone changes
// its time. The sandbox holds on to it, so its inode is nobody else's, and without a name
// nothing can open it to change it.
func isSelf(f, self gate.File) bool {
	return f.Same(self) || f.Nameless && f.Dev == self.Dev && f.Ino == self.Ino && f.Size == self.Size
}

// aName says whether an argument is a name and nothing else.
func aName(arg string) bool {
	return arg != "" && len(arg) <= 40 && strings.IndexFunc(arg, func(r rune) bool { return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z') }) < 0
}

// untrusted says whether a file can't be the agent's own program: this session wrote it,
// or it is where others may have put one that looks like it.
func (j *Judge) untrusted(file string, l *looks) bool {
	o := j.Places.origin(file, l)
	return l.wrote(file) || o != ofTheSystem && !j.Local[o]
}

// asItsFile is what a program is told, called as its file is: the agent chooses
// what its programs call themselves. A file of many programs goes by that.
func asItsFile(e *gate.Exec) []string {
	name := path.Base(e.Program.Path)
	if len(e.Argv) == 0 || name == "busybox" {
		return e.Argv
	}
	return append([]string{name}, e.Argv[1:]...)
}

// shells are the files that a root may be, whatever it calls itself.
var shells = map[string]bool{
	"bash": true, "rbash": true, "dash": true, "sh": true, "zsh": true, "zsh5": true, "fish": true, "ksh": true, "mksh": true,
	"ksh93": true, "busybox": true, "tmux": true, "screen": true,
}

// By asks some rules about an exec.
func (j *Judge) By(x *Exec, p *policy.Policy) policy.Judgement {
	e, made := x.Exec, x.Command.Written
	f := j.facts(x, x.peeled.Argv, made)
	if len(e.Argv) > 0 && len(f.Argv) > 0 && f.Argv[0] == e.Argv[0] { // it isn't what a wrapper was told to run
		f.Started, f.Posing = e.Path, x.Posing
	}
	out := p.Command(f)
	if n := len(e.Files); len(e.Prefix) > 0 && n > 1 && len(e.Argv) > 0 {
		// The kernel runs the script's interpreter with its arguments.
		f = j.facts(x, slices.Concat(e.Prefix, e.Argv[1:]), made)
		f.Program = e.Files[n-1].Path
		f.Posing = j.Places.posing(e.Prefix[0], e.Prefix[0], f.Program)
		if k := p.Command(f); k.Verdict.Stricter(out.Verdict) {
			out = k
		}
	}
	if e.Linker != "" {
		return p.Doubted(out, linked(e.Linker))
	}
	return out
}

// facts is an exec as the rules see it.
func (j *Judge) facts(x *Exec, argv []string, made bool) policy.Command {
	e := x.Exec
	return policy.Command{
		Argv: argv, Cwd: e.Cwd, Program: e.Program.Path, Written: made || e.Linker != "",
		Project: j.Places.Project, Home: j.Places.Home, Hidden: j.Places.hides, Env: x.foreign, Cut: e.Truncated,
	}
}

// orders finds out whether a program starts only what was shown: that is what an approval covers, whatever it is given to read
// and whoever reaches it. What isn't known to, may start anything.
func (j *Judge) orders(x *Exec, l *looks) {
	e := x.Exec
	if x.Fed, x.Obeys = len(e.Pipes) > 0, true; len(e.Argv) == 0 {
		return
	}
	argv, program := started(e)
	x.Fed = x.Fed || e.Open && policy.ReadsInput(argv, program)
	unknown := func(v string) bool { return policy.LoadsCode(v) && !j.reviewed(v, e.Cwd) }
	made := j.Places.region(program) != elsewhere // or can be: then its name says nothing
	x.Obeys = x.Fed || e.Truncated || made || j.elsewhere(x, argv[0], l) || !policy.Deaf(argv, program) || slices.ContainsFunc(e.Env, unknown) || j.unseen(e, argv, program, l) || j.away(x, l)
}

// elsewhere says whether a program may take itself for one in another place, and load from there what belongs to it: it is called by
// a name of the agent's choosing, or along PATH that name leads to what the agent made.
func (j *Judge) elsewhere(x *Exec, called string, l *looks) bool {
	switch name := path.Base(called); {
	case strings.Contains(called, "/"):
		return j.loose(path.Join(x.Cwd, called)) && !path.IsAbs(called) || j.loose(path.Clean(called))
	case x.Posing && (name != path.Base(x.Path) || j.Places.region(named(x.Exec)) != inProject):
		return true
	default:
		return slices.ContainsFunc(along(x.Exec, name), func(file string) bool { return j.loose(file) && l.wrote(file) })
	}
}

// away says whether a program works where nobody is asked about what the agent makes, or is given something from there that
// this session made.
func (j *Judge) away(x *Exec, l *looks) bool {
	argv, program := started(x.Exec)
	dirs := []string{x.Cwd} // where options have it go, too
	for _, a := range argv[1:] {
		if path.IsAbs(a) && len(dirs) < mostFolders {
			dirs = append(dirs, a)
		}
	}
	left := mostNamed
	made := func(word string) bool {
		files := namedIn(dirs, word)
		left -= len(files)
		return left < 0 || slices.ContainsFunc(files, func(file string) bool { return j.loose(file) && (j.Places.top(file) || l.wrote(file)) })
	}
	told := func(v string) bool {
		_, value, _ := strings.Cut(v, "=")
		return policy.Loads(v) && (policy.TakesInput(v) || made(value))
	}
	return slices.ContainsFunc(x.foreign, told) || !policy.IsShell(program) && slices.ContainsFunc(policy.Obeyed(argv, program), made) || j.loose(x.Cwd) && policy.ObeysFolder(argv[0], program)
}

// mostNamed is how many files are looked at, in at most mostFolders folders; more may be anything.
const mostNamed, mostFolders = 20_000, 20

// namedIn are the files that a word may name in some folders: by its parts between the signs that programs set a name apart with,
// and by what of such a part begins with a slash (-f/tmp/x).
func namedIn(dirs []string, word string) (out []string) {
	parts := strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune("=:,@; \t", r) })
	for _, name := range append(parts, word) {
		i := strings.IndexByte(name, '/')
		if i >= 0 {
			out = append(out, path.Clean(name[i:]))
		}
		for _, dir := range dirs {
			if i != 0 {
				out = append(out, path.Join(dir, name))
			}
		}
	}
	return out
}

// started is the command that the kernel makes of an exec, which has at least one argument: a script's
// is its interpreter's.
func started(e *gate.Exec) (argv []string, program string) {
	if n := len(e.Files); len(e.Prefix) > 0 && n > 0 {
		return slices.Concat(e.Prefix, e.Argv[1:]), e.Files[n-1].Path
	}
	return e.Argv, e.Program.Path
}

// Shell says whether what runs is a shell, for a script its interpreter.
func (x *Exec) Shell() bool {
	if len(x.Argv) == 0 {
		return false
	}
	_, program := started(x.Exec)
	return policy.IsShell(program)
}

// reviewed says whether a variable only has code looked for in folders where what the agent makes is asked about.
func (j *Judge) reviewed(variable, cwd string) bool {
	name, value, _ := strings.Cut(variable, "=")
	return (strings.HasSuffix(name, "PATH") || strings.HasSuffix(name, "LIB")) &&
		!slices.ContainsFunc(strings.Split(value, ":"), func(dir string) bool { return j.loose(path.Join(cwd, dir)) || j.loose(path.Clean(dir)) })
}

// loose says whether a path is where nobody is asked about what the agent makes. It makes nothing in /dev, which leads to what a program was given.
func (j *Judge) loose(file string) bool {
	switch j.Places.region(file) {
	case inHome, inMount:
		return true
	case inTemp:
		return !manifest.Within(file, "/dev") || manifest.Within(file, "/dev/shm") || manifest.Within(file, "/dev/fd")
	}
	return false
}

// Plain says whether an exec does what its words say as far as a question would tell: it is no shell and no
// interpreter with a file, the agent can't have made its program, its variables were approved with it before,
// and there is nothing to warn of.
func (x *Exec) Plain() bool {
	c := &x.Command
	return len(x.Argv) > 0 && len(x.Prefix) == 0 && !policy.RunsScripts(path.Base(x.Program.Path)) && x.Linker == "" && !x.Posing && !x.Writable && x.Agent == nil && !x.Self &&
		!(x.Obeys && x.Given) && !x.unmet && !c.Written && !c.Truncated && len(c.Unpinned)+len(c.Sources)+len(c.Sends) == 0 && len(policy.Scripts(x.Argv, x.Program.Path, x.Env...)) == 0
}

// Scripts is gate.Options.Scripts: of what isn't known to be deaf, the standard input is one, and so is what a wrapper of the
// agent's reads before the command that is shown.
func Scripts(e *gate.Exec, profile *policy.Profile) []string {
	list := slices.Concat(policy.Scripts(e.Argv, e.Program.Path, e.Env...), profile.Peel(e.Argv).Sources, searched(e))
	if list == nil && len(e.Argv) > 0 && !policy.Deaf(started(e)) {
		return []string{"/dev/stdin"}
	}
	return list
}

// mostDirs is how many folders of PATH are looked at.
const mostDirs = 64

// along are the files of a name in the folders of PATH, as a program is given that.
func along(e *gate.Exec, name string) (out []string) {
	i := slices.IndexFunc(e.Env, func(v string) bool { return strings.HasPrefix(v, "PATH=") })
	if i < 0 {
		return nil
	}
	for dir := range strings.SplitSeq(strings.TrimPrefix(e.Env[i], "PATH="), ":") {
		if out = append(out, path.Join("/", dir, name)); len(out) == mostDirs {
			break
		}
	}
	return out
}

// searched are the files that a shell looks for along PATH when its script isn't in the folder.
func searched(e *gate.Exec) []string {
	if len(e.Argv) == 0 {
		return nil
	}
	name := policy.Script(e.Argv, e.Program.Path)
	if name == "" || strings.Contains(name, "/") || !policy.IsShell(e.Program.Path) {
		return nil
	}
	return along(e, name)
}

// unseen says whether the program, or a file that it may be given as one, is one that the session made
// where nobody is asked about edits: it may obey anything.
func (j *Judge) unseen(e *gate.Exec, argv []string, program string, l *looks) bool {
	made := func(file string) bool {
		r := j.Places.region(file)
		return (r == inTemp || r == inHome || r == inMount) && (j.Places.top(file) || l.wrote(file))
	}
	if slices.ContainsFunc(e.Files, func(f gate.File) bool { return made(f.Path) }) {
		return true
	}
	scripts := policy.Scripts(argv, program)
	for _, a := range slices.Concat([]string{policy.Script(argv, program)}, scripts[:min(len(scripts), mostTried)], searched(e)) {
		if !path.IsAbs(a) {
			a = path.Join(e.Cwd, a)
		}
		if a != e.Cwd && a != "/dev/stdin" && made(a) { // "" is none
			return true
		}
	}
	return false
}
