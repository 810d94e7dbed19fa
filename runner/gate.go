package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"stepbox/runner/egress"
	"stepbox/runner/gate"
	"stepbox/runner/socket"
)

// Handlers are who decides on what the sandbox asks for. Callbacks run on other
// goroutines and may come before Start returns.
type Handlers struct {
	Gate   gate.Options
	Egress *egress.Options // nil: no network but the sandbox's own loopback
	// Sockets are those at which the sandbox's programs may speak to the caller, by
	// their names ([a-z0-9-]; see SocketPath).
	Sockets map[string]socket.Service
}

// agentOOM is added to the agent's badness when memory runs out, so that the
// kernel takes it rather than PID 1. See proc_pid_oom_score_adj(5).
const agentOOM = 300

// installGate is PID 1's part.
func installGate() (int, error) { return gate.Install() }

// openGate begins to answer the execs of PID 1's listener, which it owns.
func (s *Sandbox) openGate(listener *os.File, o gate.Options) error {
	decide := o.Exec
	if decide == nil {
		decide = func(e *gate.Exec) { e.Deny("nobody decides on programs here") }
	}
	var first sync.Once
	o.Exec = func(e *gate.Exec) {
		first.Do(func() { s.adopt(e.PID) })
		decide(e)
	}
	g, err := gate.New(listener, o)
	if err != nil {
		listener.Close()
		return err
	}
	s.gate = g
	return nil
}

// adopt leaves the agent's first process, held before its first exec, as the
// only one where it can be frozen: all others descend from it. That takes a
// while and the agent needn't wait for it; a freeze does.
func (s *Sandbox) adopt(pid int) {
	path := filepath.Join("/proc", strconv.Itoa(pid), "oom_score_adj")
	_ = os.WriteFile(path, fmt.Append(nil, agentOOM), 0)
	s.tasks.Go(func() {
		if err := s.cgroups.Leave(s.box.PID); err != nil {
			// A freeze would take PID 1 along, and with it the watch over its supervisor.
			s.box.Kill()
			return
		}
		close(s.adopted)
	})
}

// allowAll lets every program run that is what was shown, as a person would.
func allowAll() gate.Options {
	return gate.Options{Exec: func(e *gate.Exec) { e.Allow(gate.NoExit) }}
}
