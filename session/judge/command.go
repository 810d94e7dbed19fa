package judge

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"stepbox/policy"
	"stepbox/runner/gate"
	"stepbox/session/api"
)

// command is an exec as a person is shown it.
func command(x *Exec, shown, same []string, l *looks) api.Command {
	e, peeled := x.Exec, x.peeled
	env, whole := differing(shown)
	c := api.Command{
		Line:      api.Escape(peeled.Line) + unlike(e, peeled, l),
		Argv:      api.EscapeAll(e.Argv),
		Truncated: e.Truncated || !whole,
		Cwd:       api.Escape(e.Cwd),
		Program:   api.Escape(e.Program.Path),
		Written:   l.made(e),
		Env:       api.EscapeAll(env),
		EnvUsual:  api.EscapeAll(same),
		Unpinned:  api.EscapeAll(e.Unpinned),
		Pid:       e.PID,
	}
	beside := api.Unclear(e.Cwd) || api.Unclear(e.Program.Path) || slices.ContainsFunc(env, api.Unclear)
	c.Unclear = beside || slices.ContainsFunc(e.Argv, api.Unclear)
	c.Clear = c.Unclear && !beside && !api.Unclear(strings.ReplaceAll(peeled.Line, "\n", ""))
	if strings.Contains(c.Line, `\n`) || strings.Contains(c.Line, api.Break) {
		c.Script = api.EscapeScript(peeled.Line) + unlike(e, peeled, l)
	}
	switch {
	case len(e.Pipes) > 0:
		c.Unpinned = append(c.Unpinned, "it may run what it reads there: what it starts is asked about")
	case x.Fed:
		c.Unpinned = append(c.Unpinned, "it may run what it reads from its standard input, which nobody can look into: what it starts is asked about")
	}
	for _, s := range x.sources {
		if f := s.found; !f.there && !f.unclear && f.region != elsewhere {
			c.Unpinned = append(c.Unpinned, "commands that the line doesn't show are read from "+api.Escape(api.Trim(s.file, maxValue))+", if it is made by then")
		}
	}
	for _, file := range e.Writes {
		if l.places.region(file) == inProject {
			c.Unpinned = append(c.Unpinned, "what it prints is written to "+api.Escape(api.Trim(file, maxValue)))
		}
	}
	c.Unpinned = slices.Clip(c.Unpinned)
	for _, a := range e.Ancestors {
		c.Parents = append(c.Parents, api.Escape(a.Name))
	}
	return c
}

// unlike names the program that runs when its name isn't what it calls itself.
// A script and what the system's alternatives lead to are told by /bin/ls and
// the like having one of the names. What the agent or the project may have made
// is named in any case, unless the line has its path.
func unlike(e *gate.Exec, peeled policy.Peeled, l *looks) string {
	runs := " [runs " + api.Escape(e.Program.Path) + "]"
	if len(e.Argv) == 0 {
		return runs
	}
	if l.made(e) || l.at(e.Program.Path).made() {
		at := e.Argv[0]
		if !path.IsAbs(at) {
			at = path.Join(e.Cwd, at)
		}
		if !peeled.Wrapped && strings.Contains(e.Argv[0], "/") && path.Clean(at) == e.Program.Path {
			return ""
		}
		return runs
	}
	name := strings.TrimPrefix(path.Base(e.Argv[0]), "-")
	if name == path.Base(e.Program.Path) || name == path.Base(e.Path) && systems(e.Path) && systems(e.Program.Path) {
		return ""
	}
	return runs
}

// systems says whether a path is in a folder of the system's programs, whose
// links the agent can't have made.
func systems(file string) bool {
	return slices.ContainsFunc([]string{"/usr/", "/bin/", "/sbin/"}, func(dir string) bool { return strings.HasPrefix(path.Clean(file), dir) })
}

// Of one program's variables, at most maxEnv are shown, of each maxValue bytes; of those that load code, all.
const (
	maxEnv   = 256
	maxValue = 4 << 10
)

// differing lists what is shown of the variables that differ from the agent's own,
// and says whether these are all of them, whole.
func differing(foreign []string) (list []string, whole bool) {
	more := 0
	whole = true
	for _, e := range foreign {
		switch {
		case policy.LoadsCode(e): // the gate keeps 64 KiB of all
			list = append(list, e)
			continue
		case len(list) >= maxEnv:
			more++
			continue
		}
		v := api.Trim(e, maxValue)
		if len(v) < len(e) {
			v += "…"
			whole = false
		}
		list = append(list, v)
	}
	if more > 0 {
		list = append(list, fmt.Sprintf("… and %d more", more))
	}
	return list, whole && more == 0
}
