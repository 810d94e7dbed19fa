package session

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"stepbox/runner/gate"
	"stepbox/session/api"
	"stepbox/session/loop"
)

// mayReach is gate.Options.Reach. A signal that isn't let pass by itself is asked about; all else is
// refused, and told once, as there may be many.
func (s *Session) mayReach(ctx context.Context, r gate.Reach) bool {
	may, of := s.reaches(r)
	if may || r.Kind == gate.ReachShare {
		return may
	}
	why := "was refused"
	if r.Kind == gate.ReachSignal {
		err := s.request(ctx, signalling(r, of))
		if err == nil { // by the time of the answer it may be another program
			_, now := s.reaches(r)
			return now == of
		}
		why = "was refused: " + err.Error()
	}
	s.loop.WhenStarted(func() {
		if said := r.Kind == gate.ReachSignal; !s.reachSaid[said] && s.loop.Now() < loop.Stopping {
			s.reachSaid[said] = true
			s.note(true, "%s and %s", reached(r), why)
		}
	})
	return false
}

// target is what a process was at a moment: the last program that began in it or above it, and the action
// whose approval covers it, 0 for none.
type target struct {
	program *process
	action  int
}

// reaches is what holds without an answer of a person's, and what the target is.
func (s *Session) reaches(r gate.Reach) (may bool, of target) {
	done := make(chan struct{})
	s.loop.WhenStarted(func() {
		defer close(done)
		may = s.roster.mayReach(r, s.info.Mode)
		of.program, _, _ = s.roster.descends(r.Target)
		if k := s.roster.covering(r.Target); k != nil {
			of.action = k.action.N
		}
	})
	select {
	case <-done:
		return may, of
	case <-s.loop.In(loop.Stopping):
		return false, target{}
	}
}

// signalling is what a person is asked about a signal.
func signalling(r gate.Reach, of target) request {
	from, to, signal := listedArgs([]string{r.Caller.Name}), listedArgs([]string{r.Target.Name}), unix.SignalName(r.Signal)
	if signal == "" {
		signal = fmt.Sprintf("signal %d", r.Signal)
	}
	does := "which handles it"
	switch r.Signal {
	case unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
		does = "which is stopped by it"
	case unix.SIGCONT:
		does = "which goes on by it"
	}
	return request{
		Request: api.Request{
			Facts: []api.Fact{{Name: "signal", Value: signal}, {Name: "to", Value: fmt.Sprintf("%s, %d, of #%d, %s", to, r.Target.PID, of.action, does)}, {Name: "from", Value: from}},
			Warn:  []string{"the program may take it for an order to do what nobody has approved"},
			Lasts: true, Program: programOf(r.Caller.PID), Pid: r.Caller.PID,
		},
		title: fmt.Sprintf("send %s to %s of #%d, %s", signal, to, of.action, does),
		same:  strings.Join([]string{"signal", signal, fmt.Sprint(r.Caller.PID, r.Caller.Start, r.Target.PID, r.Target.Start, of.action)}, "\x00"),
	}
}

// reached says what a process tried with another.
func reached(r gate.Reach) string {
	caller := listedArgs([]string{r.Caller.Name})
	if r.Kind != gate.ReachSignal {
		return caller + " tried to get hold of another program (ptrace)"
	}
	return fmt.Sprintf("%s tried to send %s to the approved program %s, which may take it for an order,", caller, unix.SignalName(r.Signal), listedArgs([]string{r.Target.Name}))
}
