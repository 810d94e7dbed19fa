package session

import (
	"path"
	"slices"
	"strings"

	"stepbox/policy"
	"stepbox/runner/gate"
	"stepbox/session/api"
)

// chain is the one exec by which env(1) starts the interpreter of an agent's
// script: #!/usr/bin/env node has the kernel load env, which then becomes node
// in the same process. It goes with the verdict on the script, once, and only
// as that very exec.
type chain struct {
	argv   []string // all of them
	folder []string // of PATH, where the interpreter may be found
	env    []string
	cwd    string
	script gate.File // what argv[at] has to lead to
	at     int
}

// envFolders are where env(1) is. It may be another name of a program with many.
var (
	envFolders  = []string{"/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin"}
	envPrograms = []string{"env", "coreutils", "busybox"}
)

// chainOf is the chain that an exec begins; nil when it begins none.
func (s *Session) chainOf(e *gate.Exec) *chain {
	n := len(e.Files)
	if n < 2 || len(e.Prefix) < 3 || e.Truncated || len(e.Argv) == 0 {
		return nil
	}
	env := e.Files[n-1].Path
	if path.Base(e.Prefix[0]) != "env" || !slices.Contains(envPrograms, path.Base(env)) || s.places.wrote(env) {
		return nil
	}
	if dir := path.Dir(env); !slices.Contains(envFolders, dir) && !strings.HasPrefix(dir, "/nix/store/") {
		return nil
	}
	words := []string{e.Prefix[1]}
	if split, ok := strings.CutPrefix(e.Prefix[1], "-S"); ok {
		if words = strings.Fields(split); strings.ContainsAny(split, "\"'\\$#") {
			return nil // env(1) has its own rules for these
		}
	}
	if len(words) == 0 || strings.HasPrefix(words[0], "-") || strings.ContainsAny(words[0], "=/") {
		return nil
	}
	c := &chain{env: e.Env, cwd: e.Cwd, script: e.Files[n-2], at: len(words)}
	c.argv = slices.Concat(words, e.Prefix[2:], e.Argv[1:])
	for _, v := range e.Env {
		if list, ok := strings.CutPrefix(v, "PATH="); ok {
			c.folder = strings.Split(list, ":")
			return c
		}
	}
	return nil
}

// continues says whether an exec is the one that a chain is about.
func (s *Session) continues(c *chain, e *gate.Exec) bool {
	if c == nil || e.Truncated || e.Cwd != c.cwd || !slices.Equal(e.Argv, c.argv) || !slices.Equal(e.Env, c.env) {
		return false
	}
	dir, name := path.Split(e.Path)
	if name != c.argv[0] || !path.IsAbs(dir) || !slices.ContainsFunc(c.folder, func(f string) bool {
		return f != "" && strings.TrimRight(f, "/") == strings.TrimRight(dir, "/")
	}) {
		return false
	}
	wrote := s.trusted(policy.Command{Wrote: s.places.wrote}).Wrote
	if s.made(e) || slices.ContainsFunc(e.Files, func(f gate.File) bool { return wrote(f.Path) }) {
		return false
	}
	script, err := e.Lookup(c.argv[c.at])
	return err == nil && script.Same(c.script)
}

// goOn lets an agent's script have its interpreter.
func (s *Session) goOn(e *gate.Exec, p *process) {
	q := &process{kin: p.kin, action: p.action, agent: p.agent, is: p.is}
	s.admit(e, q, p.profile, "the agent's script starts its interpreter")
}

// become is an agent's own process that runs another program in its place.
// When that is approved it is the agent: what it starts is judged, and nothing
// of it is covered.
func (s *Session) become(e *gate.Exec, p *process) {
	if c := s.facts(e, e.Argv); !e.Truncated && !c.Written && !s.loadsMore(e) && p.profile.Self(s.trusted(c)) {
		s.admit(e, selfOf(p, e, p.profile), p.profile, "the agent itself: what it starts is judged")
		return
	}
	s.form(e, &action{parent: p, profile: p.profile, becomes: true, agent: p.profile})
}

// selfOf is a process that runs its agent's own program; before is the agent's
// own process that it was, if it was one.
func selfOf(before *process, e *gate.Exec, profile *policy.Profile) *process {
	if before != nil { // the agent's own process stays that
		return &process{kin: before.kin, action: before.action, agent: true}
	}
	starter := profile.Starter(e.Argv)
	return &process{starter: starter, agent: !starter}
}

// identity is the program of an agent's own process, as it is known again when
// the agent starts that program once more: Node programs do to get more memory,
// launchers to run a native program that is called as they are. Taking a program
// for the agent makes what that starts be judged, so a guess does no harm.
type identity struct {
	script gate.File // without an inode: it is none
	name   string    // what its file is called; "": as others are, an interpreter
}

// mostTried is how many arguments are looked at for an agent's script.
const mostTried = 8

// scriptsOf are the files among an interpreter's arguments that may be its
// program; interprets says whether it is an interpreter.
func scriptsOf(e *gate.Exec) (files []gate.File, interprets bool) {
	list := policy.Scripts(e.Argv, e.Program.Path)
	for _, argument := range list[:min(len(list), mostTried)] {
		if f, err := e.Lookup(argument); err == nil {
			files = append(files, f)
		}
	}
	return files, len(list) > 0
}

func identityOf(e *gate.Exec) *identity {
	if len(e.Prefix) > 0 { // the kernel runs it as a script
		return &identity{e.Files[0], path.Base(e.Path)}
	}
	files, interprets := scriptsOf(e)
	switch {
	case len(files) > 0:
		return &identity{script: files[0]}
	case interprets:
		return &identity{}
	}
	return &identity{name: path.Base(e.Path)}
}

// again says whether a program start is the agent's that this identity is.
func (i *identity) again(e *gate.Exec) bool {
	if i == nil {
		return false
	}
	if i.name != "" && i.name == path.Base(e.Path) {
		return true
	}
	if i.script.Ino == 0 {
		return false
	}
	files, _ := scriptsOf(e)
	if len(e.Prefix) > 0 {
		files = append(files, e.Files[0])
	}
	return slices.ContainsFunc(files, i.script.Same)
}

// turnDown denies a program. Who started an agent's starter waits for the
// program that it becomes, so its end must look like that program's.
func turnDown(e *gate.Exec, p *process, reason string) {
	if p != nil && p.starter {
		e.DenyAsRun(reason)
		return
	}
	e.Deny(reason)
}

// becoming is what a person reads of it.
func becoming(c api.Command) string {
	return "the agent becomes " + api.Trim(c.Program, 200) + ", and what that starts is judged as the agent's"
}
