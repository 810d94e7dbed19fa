package workbench

import (
	"sort"
	"time"

	"stepbox/session/api"
)

// gap is a stretch of more than shortest of a session, in which no action ran and
// nothing else was marked: a person was away, or it had ended and was resumed later.
// However long it is, it has as much room on the course as shortest.
type gap struct {
	from, to time.Duration
	before   time.Duration // what all gaps before it leave out of the course
}

const shortest = time.Minute

// gaps finds them in a course, in order.
func gaps(line api.Timeline) (out []gap) {
	var marked, busy, less time.Duration // the last mark, what ran until when, what is left out
	until := func(to time.Duration) {
		if to-busy > shortest {
			out = append(out, gap{busy, to, less})
			less += to - busy - shortest
		}
	}
	for _, m := range line.Marks {
		if m.Kind == api.MarkResume && busy > marked && busy >= m.Offset {
			busy = marked // what an interruption cut off is told to have ended only then
		}
		until(m.Offset)
		marked = max(marked, m.Offset)
		busy = max(busy, marked, m.Offset+m.Took)
	}
	until(line.Length)
	return out
}

// squeezed is how far along the course an offset is.
func (t *transport) squeezed(off time.Duration) time.Duration {
	i := sort.Search(len(t.gaps), func(i int) bool { return t.gaps[i].from >= off }) - 1
	if i < 0 {
		return off
	}
	g := t.gaps[i]
	if off >= g.to {
		return off - g.before - (g.to - g.from - shortest)
	}
	return g.from - g.before + time.Duration(float64(off-g.from)*float64(shortest)/float64(g.to-g.from))
}

// widened is the offset that is so far along the course.
func (t *transport) widened(at time.Duration) time.Duration {
	i := sort.Search(len(t.gaps), func(i int) bool { return t.gaps[i].from-t.gaps[i].before >= at }) - 1
	if i < 0 {
		return at
	}
	g := t.gaps[i]
	in := at - (g.from - g.before)
	if in >= shortest {
		return in - shortest + g.to
	}
	return g.from + time.Duration(float64(in)*float64(g.to-g.from)/float64(shortest))
}
