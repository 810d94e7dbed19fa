package judge

import (
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"stepbox/policy"
	"stepbox/runner/gate"
	"stepbox/session/api"
)

// met are variables that a person has been shown, and has approved a program with: who is shown the
// same ones with every question stops looking. With another program they are shown again, as they may
// mean something else to that. What has a program load code or run another, what
// leads to a file that the agent can have made, and what can't be read is shown each time.
type met struct {
	mu  sync.Mutex
	all map[string]bool // guarded by mu, by program and variable; at most maxMet
}

const (
	maxMet   = 4096 // variables that are remembered
	maxAlike = 1000 // bytes of one that may be
)

// split parts variables into those that a person is to be shown, what loads code first, and those that
// were approved before. Unmet says that one of them wasn't approved with this program, with this value.
func (m *met) split(program string, vars []string, l *looks) (shown, same []string, unmet bool) {
	curbs := policy.Curbs(vars)
	m.mu.Lock()
	defer m.mu.Unlock()
	var more, rest []string
	for _, v := range vars {
		unmet = unmet || !m.all[program+"\x00"+v] || !curbs[v] && policy.LoadsCode(v)
		switch {
		case policy.LoadsCode(v):
			shown = append(shown, v)
		case (policy.Loads(v) || strings.HasPrefix(v, "PATH=")) && !curbs[v]:
			more = append(more, v)
		case m.all[program+"\x00"+v] && !leadsTo(v, l):
			same = append(same, v)
		default:
			rest = append(rest, v)
		}
	}
	return slices.Concat(shown, more, rest), same, unmet
}

// add notes variables that were approved, as far as all of them was shown.
func (m *met) add(program string, vars []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, v := range vars {
		if len(v) <= maxAlike && !api.Unclear(v) && len(m.all) < maxMet {
			if m.all == nil {
				m.all = make(map[string]bool)
			}
			m.all[program+"\x00"+v] = true
		}
	}
}

// leadsTo says whether a variable names a file that the agent can have made.
func leadsTo(variable string, l *looks) bool {
	_, value, _ := strings.Cut(variable, "=")
	return slices.ContainsFunc(strings.Split(value, ":"), func(file string) bool {
		return path.IsAbs(file) && file != os.DevNull && l.at(file).file
	})
}

// Approved notes that a person has seen an exec, and approved it.
func (j *Judge) Approved(x *Exec) {
	if !x.Command.Truncated {
		j.met.add(x.Program.Path, x.foreign)
		j.read.approve(x.sources)
	}
}

// ofItsPlace says whether a variable only says, truly, where a program runs: how programs that start
// others set it for each.
func ofItsPlace(variable string, e *gate.Exec, l *looks) bool {
	name, value, _ := strings.Cut(variable, "=")
	switch name {
	case "PWD":
		return value == e.Cwd
	case "_": // who started it, or what that is
		return path.IsAbs(value) && l.at(value).region == elsewhere
	case "SHLVL", "COLUMNS", "LINES":
		return policy.IsNumber(variable)
	case "SHELL":
		return systems(value) && policy.IsShell(value) && !l.at(value).made()
	}
	return false
}
