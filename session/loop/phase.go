package loop

import (
	"fmt"
	"slices"
)

// Phase is where a session is in its life.
type Phase int

const (
	Starting Phase = iota // the sandbox is being made; the agent is held at its first program
	Running               // the agent runs
	Stopping              // nothing is let run any more, and the sandbox is being ended
	Draining              // the sandbox is gone; what it left behind is settled
	Recorded              // the end is in the record, or it is known that it can't be
	Closed                // nothing of the session runs any more
	phases   = int(Closed) + 1
)

func (p Phase) String() string {
	return [phases]string{"starting", "running", "stopping", "draining", "recorded", "closed"}[p]
}

// ways is a session's life: it goes in one direction only. A start that fails
// has no sandbox to drain, and nothing to record when the agent never was.
var ways = [phases][]Phase{
	Starting: {Running, Stopping},
	Running:  {Stopping},
	Stopping: {Draining, Recorded},
	Draining: {Recorded},
	Recorded: {Closed},
}

// life is the phase of a session. The loop moves it on; any goroutine may wait
// until a phase is entered.
type life struct {
	now     Phase // owned by the loop
	entered [phases]chan struct{}
}

func newLife() (l life) {
	for i := range l.entered {
		l.entered[i] = make(chan struct{})
	}
	close(l.entered[Starting])
	return l
}

// to moves on; a move that isn't in the table is a fault of ours and isn't made.
func (l *life) to(next Phase) error {
	if !slices.Contains(ways[l.now], next) {
		return fmt.Errorf("cannot move the session from %s to %s", l.now, next)
	}
	l.now = next
	close(l.entered[next])
	return nil
}

// Now is the phase that the session is in. It is the loop's own to ask.
func (l *life) Now() Phase { return l.now }

// In is closed once the phase was entered. Phases can be skipped: whoever waits
// waits for a later one as well.
func (l *life) In(p Phase) <-chan struct{} { return l.entered[p] }
