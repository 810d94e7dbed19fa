package workbench

import (
	"testing"
	"time"

	"stepbox/session/api"
)

// However long nothing happened, what happened has the most of the course; and what
// is clicked is what is seen there.
func TestGaps(t *testing.T) {
	const m, month = time.Minute, 30 * 24 * time.Hour
	mark := func(kind api.MarkKind, at, took time.Duration) api.Mark {
		return api.Mark{Kind: kind, Offset: at, Took: took}
	}
	for _, x := range []struct {
		name  string
		line  api.Timeline
		whole time.Duration
	}{
		{"nothing", api.Timeline{}, 0},
		{"no gap", api.Timeline{Length: 3 * m, Marks: []api.Mark{mark(api.MarkAction, m, m/2), mark(api.MarkEdit, 2*m, 0)}}, 3 * m},
		{"a long action", api.Timeline{Length: 60 * m, Marks: []api.Mark{mark(api.MarkAction, 0, 60*m)}}, 60 * m},
		{"a lunch", api.Timeline{Length: 63 * m, Marks: []api.Mark{mark(api.MarkAction, m, 0), mark(api.MarkAction, 62*m, m)}}, 4*m - m},
		{"an apply months later", api.Timeline{Length: month, Marks: []api.Mark{mark(api.MarkAction, 0, 2*m), mark(api.MarkApply, month, 0)}}, 3 * m},
		{"an interruption, and an apply before the resume", api.Timeline{Length: month + 2*m, Marks: []api.Mark{
			mark(api.MarkAction, 0, 2*m), mark(api.MarkAction, 2*m, m), mark(api.MarkApply, month/2, 0), mark(api.MarkResume, month, 0), mark(api.MarkAction, month, 2*m),
		}}, 7 * m},
		{"held for an hour", api.Timeline{Length: 63 * m, Marks: []api.Mark{{Kind: api.MarkAction, Offset: m, Waited: 60 * m, Took: 2 * m}}}, 4 * m},
		{"printed for an hour", api.Timeline{Length: 60 * m, Printed: []api.Stretch{{From: 0, To: 60 * m}}}, 60 * m},
		{"printed, a lunch, printed", api.Timeline{Length: 80 * m, Printed: []api.Stretch{{From: 0, To: 10 * m}, {From: 70 * m, To: 80 * m}}}, 21 * m},
		{"printed while an action ran, and long after", api.Timeline{Length: 90 * m, Marks: []api.Mark{mark(api.MarkAction, 0, 20*m)}, Printed: []api.Stretch{{From: 10 * m, To: 30 * m}}}, 31 * m},
	} {
		c := gapsOf(x.line)
		if got := c.squeezed(x.line.Length); got.Round(time.Millisecond) != x.whole {
			t.Errorf("%s: the course is as long as %v, want %v", x.name, got, x.whole)
		}
		last := time.Duration(-1)
		for i := range time.Duration(101) {
			off := x.line.Length * i / 100
			at := c.squeezed(off)
			if back := c.widened(at) - off; at < last || back.Abs() > time.Second {
				t.Errorf("%s: %v is at %v, after %v, and that is %v", x.name, off, at, last, off+back)
			}
			last = at
		}
	}
}
