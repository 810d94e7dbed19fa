package session

import (
	"fmt"
	"slices"
)

// phase is where a session is in its life.
type phase int

const (
	phaseStarting phase = iota // the sandbox is being made; the agent is held at its first program
	phaseRunning               // the agent runs
	phaseStopping              // nothing is let run any more, and the sandbox is being ended
	phaseDraining              // the sandbox is gone; what it left behind is settled
	phaseRecorded              // the end is in the record, or it is known that it can't be
	phaseClosed                // nothing of the session runs any more
	phases        = int(phaseClosed) + 1
)

var phaseNames = [phases]string{"starting", "running", "stopping", "draining", "recorded", "closed"}

func (p phase) String() string { return phaseNames[p] }

// ways is a session's life: it goes in one direction only. A start that fails
// has no sandbox to drain, and nothing to record when the agent never was.
var ways = map[phase][]phase{
	phaseStarting: {phaseRunning, phaseStopping},
	phaseRunning:  {phaseStopping},
	phaseStopping: {phaseDraining, phaseRecorded},
	phaseDraining: {phaseRecorded},
	phaseRecorded: {phaseClosed},
	phaseClosed:   {},
}

// life is the phase of a session. The loop moves it on; any goroutine may wait
// until a phase is entered.
type life struct {
	now     phase // owned by the loop
	entered [phases]chan struct{}
}

func newLife() *life {
	l := new(life)
	for i := range l.entered {
		l.entered[i] = make(chan struct{})
	}
	close(l.entered[phaseStarting])
	return l
}

// to moves on; a move that isn't in the table is a fault of ours and isn't made.
func (l *life) to(next phase) error {
	if !slices.Contains(ways[l.now], next) {
		return fmt.Errorf("cannot move the session from %s to %s", l.now, next)
	}
	l.now = next
	close(l.entered[next])
	return nil
}

// in is closed once the phase was entered. Phases can be skipped: whoever waits
// waits for a later one as well.
func (l *life) in(p phase) <-chan struct{} { return l.entered[p] }
