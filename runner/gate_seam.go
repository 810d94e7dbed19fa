package runner

import (
	"os"
	"sync"

	"stepbox/runner/egress"
	"stepbox/runner/gate"
)

// execGate is what a sandbox needs of its gate.
type execGate interface {
	Hold()
	Release()
	Held() []int
	Close() error
}

// Handlers are told what happens in a sandbox.
type Handlers struct {
	Gate   gate.Options
	Egress *egress.Options // nil: no network but loopback
}

func installGate() (int, error) { return gate.Install() }

// gateOptions puts the agent into its own cgroup before anyone hears of it:
// what it starts is born there, and PID 1 is never frozen with it.
func (s *Sandbox) gateOptions(h Handlers) gate.Options {
	o := h.Gate
	tell := o.Exec
	var first sync.Once
	o.Exec = func(e *gate.Exec) {
		var err error
		first.Do(func() { err = s.cgroups.JoinAgent(e.PID) })
		if err != nil {
			e.Deny("it can't be put into its cgroup: " + err.Error())
			return
		}
		tell(e)
	}
	return o
}

func newGate(f *os.File, o gate.Options) (execGate, error) { return gate.New(f, o) }

func allowAll() gate.Options { return gate.Options{Exec: func(e *gate.Exec) { e.Allow() }} }
