package judge

import (
	"slices"
	"sync"

	"stepbox/policy"
	"stepbox/session/api"
)

// alike are variables that the agent sets for its commands, always the same: a person
// who is shown them with every question stops looking. Only those are among them that
// have nothing run, whoever set them, and only as long as every command that the agent
// wrapped has had them with the same value. One alone that hasn't, or has it otherwise,
// brings a variable back before the person for the rest of the session.
type alike struct {
	mu  sync.Mutex
	all map[string]bool // guarded by mu; nil: no command was seen yet
}

// maxAlike is the bytes of a variable that may be one of these.
const maxAlike = 200

// split parts a program's variables into those that a person is to be shown and those
// that all commands have alike. Of a command that the agent wrapped it learns.
func (a *alike) split(foreign []string, wrapped bool) (shown, same []string) {
	curbs := policy.Curbs(foreign)
	harmless := func(v string) bool { return policy.Harmless(v) || curbs[v] }
	a.mu.Lock()
	defer a.mu.Unlock()
	if wrapped {
		has := make(map[string]bool)
		for _, v := range foreign {
			if harmless(v) && len(v) <= maxAlike && !api.Unclear(v) && (a.all == nil || a.all[v]) {
				has[v] = true
			}
		}
		a.all = has
	}
	for _, v := range foreign {
		if a.all[v] && harmless(v) {
			same = append(same, v)
		} else {
			shown = append(shown, v)
		}
	}
	return shown, slices.DeleteFunc(same, isUsual)
}
