package terminal

import "stepbox/session/api"

// mark is the line at which an action began, as the screen numbers it.
type mark struct{ action, line int }

// mostMarks bounds what is kept: more than a scrollback has lines for.
const mostMarks = 2000

// Mark notes that an action begins, so that who reads the terminal finds where. It never
// blocks.
func (t *Terminal) Mark(action int) {
	select {
	case t.begun <- action:
	default:
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
