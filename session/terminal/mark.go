package terminal

import (
	"stepbox/session/api"

	"golang.org/x/sys/unix"
)

// mark is the line at which an action began, as the screen numbers it.
type mark struct{ action, line int }

// mostMarks bounds what is kept: more than a scrollback has lines for.
const mostMarks = 2000

// begun is an action that begins when the agent has printed so many bytes.
type begun struct {
	action int
	at     int64
}

// Mark notes that an action begins, so that who reads the terminal finds where: after what
// was printed before, also where that is still to be read. It never blocks.
func (t *Terminal) Mark(action int) {
	select {
	case t.begun <- begun{action, t.printed()}:
	default:
	}
}

// printed is how many bytes came out of the PTY or wait in it.
func (t *Terminal) printed() int64 {
	raw, err := t.PTY.SyscallConn()
	if err != nil {
		return t.taken.Load()
	}
	for {
		taken, waiting := t.taken.Load(), 0
		if err := raw.Control(func(fd uintptr) {
			// To be polled has the kernel hand on what was printed last (n_tty_poll).
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			waiting, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		}); err != nil {
			waiting = 0 // it is closed: nothing more comes
		}
		if t.taken.Load() == taken {
			return taken + int64(waiting)
		}
	}
}

// due marks the actions that began at a place which is reached.
func (t *Terminal) due(read int64) {
	for len(t.waiting) > 0 && t.waiting[0].at <= read {
		t.mark(t.waiting[0].action)
		t.waiting = t.waiting[1:]
	}
}

// upTo is how many of n bytes that come after others are before the next mark.
func (t *Terminal) upTo(read int64, n int) int {
	for {
		select {
		case b := <-t.begun:
			t.waiting = append(t.waiting, b)
			continue
		default:
		}
		t.due(read)
		if len(t.waiting) > 0 {
			return int(min(int64(n), t.waiting[0].at-read))
		}
		return n
	}
}

// mark tells viewers; in the owner.
func (t *Terminal) mark(action int) {
	if len(t.marks) == mostMarks {
		t.marks = append(t.marks[:0], t.marks[1:]...)
	}
	t.marks = append(t.marks, mark{action, t.screen.Line()})
	for v := range t.views {
		v.push(api.MarksFrame([]api.Begun{{Action: action}}))
	}
}

// marked are the marks whose lines are still there.
func (t *Terminal) marked() api.Frame {
	var out []api.Begun
	now := t.screen.Line()
	for _, m := range t.marks {
		if t.screen.RowOf(m.line) >= 0 && m.line <= now {
			out = append(out, api.Begun{Action: m.action, Back: now - m.line})
		}
	}
	return api.MarksFrame(out)
}
