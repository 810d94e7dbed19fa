package judge

import (
	"path"
	"slices"
	"strings"

	"stepbox/runner/gate"
)

// Chain is the one exec by which env(1) starts the interpreter of an agent's
// script: #!/usr/bin/env node has the kernel load env, which then becomes node
// in the same process. It goes with the verdict on the script, once, and only
// as that very exec.
type Chain struct {
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
func chainOf(e *gate.Exec, l *looks) *Chain {
	n := len(e.Files)
	if n < 2 || len(e.Prefix) < 3 || e.Truncated || len(e.Argv) == 0 {
		return nil
	}
	env := e.Files[n-1].Path
	if path.Base(e.Prefix[0]) != "env" || !slices.Contains(envPrograms, path.Base(env)) || l.wrote(env) {
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
	c := &Chain{env: e.Env, cwd: e.Cwd, script: e.Files[n-2], at: len(words)}
	c.argv = slices.Concat(words, e.Prefix[2:], e.Argv[1:])
	for _, v := range e.Env {
		if list, ok := strings.CutPrefix(v, "PATH="); ok {
			c.folder = strings.Split(list, ":")
			return c
		}
	}
	return nil
}

// Names says whether an exec looks like the one that the chain is about: all but
// the files is that one's. A nil chain names none.
func (c *Chain) Names(x *Exec) bool {
	if c == nil || x.Truncated || x.Cwd != c.cwd || !slices.Equal(x.Argv, c.argv) || !slices.Equal(x.Env, c.env) {
		return false
	}
	dir, name := path.Split(x.Path)
	return name == c.argv[0] && path.IsAbs(dir) && slices.ContainsFunc(c.folder, func(f string) bool {
		return f != "" && strings.TrimRight(f, "/") == strings.TrimRight(dir, "/")
	})
}

// Continues says whether an exec is the one that a chain is about. Like Exec it
// runs outside the session's loop.
func (j *Judge) Continues(c *Chain, x *Exec) bool {
	l := j.looks()
	if !c.Names(x) || l.made(x.Exec) || slices.ContainsFunc(x.Files, func(f gate.File) bool { return j.untrusted(f.Path, l) }) {
		return false
	}
	script, err := x.Lookup(c.argv[c.at])
	return err == nil && script.Same(c.script)
}
