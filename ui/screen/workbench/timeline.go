package workbench

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/ui/link"
	"stepbox/ui/paint"
)

// again is how often the course of a session is read anew, at most, while things happen in it.
const again = 5 * time.Second

// fewMarks is how many of a kind are read first, so that even a long session's course is
// drawn at once: two for each cell of a wide one.
const fewMarks = 400

// timeline is a session's course, as far as it was read.
type timeline struct {
	*core
	line    api.Timeline
	gaps    gaps // of line
	rough   bool // line was read, with some of its marks: enough to draw
	read    bool // with all of them, or it couldn't be
	whole   bool // it has all of them, so that it can be continued
	crowded bool // the person knows that it can't have all of them
	reading bool
	readAt  time.Time
	final   bool   // it had ended by then: what comes behind the end is read when that is due again
	problem string // why it couldn't be
}

// length is how long the session's course is by now.
func (t *timeline) length() time.Duration {
	ses := t.present().Session
	until := ses.EndedAt
	if !t.Over() {
		until = t.cfg.Now()
	}
	if ses.StartedAt.IsZero() {
		return t.line.Length
	}
	return max(t.line.Length, until.Sub(ses.StartedAt))
}

// fetch reads the course: first some of its marks, then all, then what is new.
func (t *timeline) fetch() tea.Cmd {
	most, since := fewMarks, uint64(0)
	if t.rough {
		most = 0
	}
	if t.whole {
		since = t.line.Last
	}
	t.reading, t.final = true, t.Over()
	return t.do(func(ctx context.Context, c link.Client, id string) func() tea.Cmd {
		line, err := c.Timeline(ctx, id, most, since)
		return func() tea.Cmd {
			t.reading, t.readAt, t.problem = false, t.cfg.Now(), paint.Failed(err)
			if t.read = err != nil || most == 0 || line.More == 0; err == nil {
				t.whole = t.read
				t.take(t.line.Continued(line))
			}
			return nil
		}
	})
}

// take takes the course as it was read.
func (t *timeline) take(line api.Timeline) {
	if line.Damage != t.line.Damage {
		t.warn("the record is damaged: %s", line.Damage)
	}
	t.line, t.rough = line, true
	if !t.read {
		return // between some of the marks there are gaps that are none
	}
	if line.More > 0 && !t.crowded {
		t.crowded = true
		t.info("so much happened that %d marks of it have no place on the course", line.More)
	}
	t.gaps = gapsOf(line)
}

// isAction says whether a mark is where an action began that isn't folded away.
func (t *timeline) isAction(m api.Mark) bool {
	if m.Kind != api.MarkAction && m.Kind != api.MarkEdit {
		return false
	}
	a, _ := t.present().Action(int(m.Key))
	return !a.Housekeeping
}

// beside is the action's mark before or after an event, or where that is 0, an offset.
func (t *timeline) beside(by int, off time.Duration, seq uint64) (found api.Mark, ok bool) {
	for _, m := range t.line.Marks {
		side := cmp.Compare(m.Seq, seq)
		if seq == 0 {
			side = cmp.Compare(m.Offset, off)
		}
		if side*by <= 0 || !t.isAction(m) {
			continue
		}
		if found, ok = m, true; by > 0 {
			break
		}
	}
	return found, ok
}

// printedBeside is where printing went on after a pause, before or after an offset, in a
// session in which no action ran.
func (t *timeline) printedBeside(by int, off time.Duration) (found time.Duration, ok bool) {
	if slices.ContainsFunc(t.line.Marks, t.isAction) {
		return 0, false
	}
	for _, p := range t.line.Printed {
		if cmp.Compare(p.From, off) != by {
			continue
		}
		if found, ok = p.From, true; by > 0 {
			break
		}
	}
	return found, ok
}

// mark finds where a resource begins.
func (t *timeline) mark(key int64, kinds ...api.MarkKind) (api.Mark, bool) {
	for _, m := range t.line.Marks {
		if m.Key == key && slices.Contains(kinds, m.Kind) {
			return m, true
		}
	}
	return api.Mark{}, false
}

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
