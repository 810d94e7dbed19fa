package e2e

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"
)

// inside is the size of the agent's pane as the terminal shows it.
func (tm *terminal) inside() string {
	in := tm.box("1 Terminal")
	if len(in) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d %d", len(in), utf8.RuneCountInString(in[0]))
}

// other says whether the pane's border tells of a size that isn't the pane's.
func (tm *terminal) other() bool { return strings.Contains(tm.text(), "×") }

// asked is how often the agent's size was waited for.
var asked atomic.Int64

// sized waits until the agent has the size of a person's pane: what it prints then is no
// earlier answer, which may be in view until the shell clears it.
func (tm *terminal) sized(by *terminal) {
	tm.t.Helper()
	want, n := by.inside(), fmt.Sprint(asked.Add(1))
	tm.line("clear; until [ \"$(stty size)\" = '"+want+"' ]; do sleep 0.02; done; echo size "+n+" \"is $(stty size)\"", "size "+n+" is "+want)
}

// Two people with terminals of different sizes look at one agent. It has the size of who
// was active last: whoever types, or comes back to their window. Who detaches, is killed or
// doesn't answer any more has no say.
func TestSizeOfTheActiveViewer(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	large := p.shell(120, 35)
	small := p.open(80, 24, "attach", "shell")
	small.prompt()
	small.sized(small)
	large.sized(large) // small hangs, say: it types nothing and is still there
	small.until("it isn't this one's", small.other)
	small.press("\x1b[I")
	small.until("the agent has the size of who came back", func() bool { return !small.other() })
	large.until("it isn't this one's", large.other)
	small.kill9()
	large.until("the agent has the size of who is left", func() bool { return !large.other() })
	large.sized(large)

	again := p.open(80, 24, "attach", "shell")
	again.prompt()
	again.sized(again)
	large.until("it isn't this one's", large.other)
	again.press(leader + "d")
	again.ended()
	large.until("the agent has the size of who is left", func() bool { return !large.other() })
	large.sized(large)
}
