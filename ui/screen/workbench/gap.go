package workbench

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"stepbox/session/api"
)

// gap is a stretch of more than shortest of a session, in which no action ran, nothing
// was printed and nothing else was marked: a person was away, or it had ended and was
// resumed later. However long it is, it has as much room on the course as shortest.
type gap struct {
	from, to time.Duration
	before   time.Duration // what all gaps before it leave out of the course
}

const shortest = time.Minute

// gaps are those of a course, in order.
type gaps []gap

func gapsOf(line api.Timeline) (out gaps) {
	var busy, less time.Duration // until when something happened, what is left out
	spans := make([]gap, 0, len(line.Marks)+len(line.Printed))
	for _, p := range line.Printed {
		spans = append(spans, gap{from: p.From, to: p.To})
	}
	for _, m := range line.Marks {
		spans = append(spans, gap{from: m.Offset, to: m.Offset})
		if began := m.Offset + m.Waited; m.Took > 0 {
			spans = append(spans, gap{from: began, to: began + m.Took})
		}
	}
	slices.SortFunc(spans, func(a, b gap) int { return cmp.Compare(a.from, b.from) })
	for _, s := range append(spans, gap{from: line.Length}) {
		if s.from-busy > shortest {
			out = append(out, gap{busy, s.from, less})
			less += s.from - busy - shortest
		}
		busy = max(busy, s.to)
	}
	return out
}

// squeezed is how far along the course an offset is.
func (all gaps) squeezed(off time.Duration) time.Duration {
	i := sort.Search(len(all), func(i int) bool { return all[i].from >= off }) - 1
	if i < 0 {
		return off
	}
	g := all[i]
	if off >= g.to {
		return off - g.before - (g.to - g.from - shortest)
	}
	return g.from - g.before + time.Duration(float64(off-g.from)*float64(shortest)/float64(g.to-g.from))
}

// widened is the offset that is so far along the course.
func (all gaps) widened(at time.Duration) time.Duration {
	i := sort.Search(len(all), func(i int) bool { return all[i].from-all[i].before >= at }) - 1
	if i < 0 {
		return at
	}
	g := all[i]
	in := at - (g.from - g.before)
	if in >= shortest {
		return in - shortest + g.to
	}
	return g.from + time.Duration(float64(in)*float64(g.to-g.from)/float64(shortest))
}
