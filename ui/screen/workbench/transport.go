package workbench

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/link"
	"stepbox/ui/paint"
)

// speeds are how many seconds of a session can go by in one.
var speeds = [...]float64{0.5, 1, 2, 4, 8, 16, 32, 64}

const usualSpeed = 1 // the index

// again is how often the course of a session is read anew, at most, while things happen in it.
const again = 5 * time.Second

// fewMarks is how many of a kind are read first, so that even a long session's course is
// drawn at once: two for each cell of a wide one.
const fewMarks = 400

// transport is how a person moves along a session's course. What was is shown
// from the first jump's arrival on until the way back to the present.
type transport struct {
	*core
	line    api.Timeline
	gaps    []gap // of line
	rough   bool  // line was read, with some of its marks: enough to draw
	read    bool  // with all of them, or it couldn't be
	whole   bool  // it has all of them, so that it can be continued
	crowded bool  // the person knows that it can't have all of them
	reading bool
	readAt  time.Time
	final   bool            // it had ended by then: what comes behind the end is read when that is due again
	problem string          // why it couldn't be
	later   []intent.Intent // what the person wants done once it was

	playing bool
	speed   int
	seq     uint64 // where it is
	off     time.Duration
	asked   int           // jumps
	made    int           // of them
	goal    time.Duration // of the last one, as far as it is known
	goalSeq uint64        // the same; 0: not known

	hits []api.Hit // what was searched for, in their order
	hit  int       // where the person is among them
	more bool      // there are more of them

	unsearched string // what couldn't be searched, in words

	bar  uv.Rectangle // where the course was drawn
	drag bool         // the mouse moves along it
}

// shown says whether the line has a place on the screen.
func (t *transport) shown() bool { return t.past() || t.caught && t.Over() }

// clock is the time that what is shown is of.
func (t *transport) clock(now time.Time) time.Time {
	if start := t.present().Session.StartedAt; t.past() && !start.IsZero() {
		return start.Add(t.off)
	}
	return now
}

// length is how long the session's course is by now.
func (t *transport) length() time.Duration {
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

// here is where the person is, or will be when the last jump was made.
func (t *transport) here() (off time.Duration, seq uint64) {
	switch {
	case t.wanted && t.asked != t.made:
		return t.goal, t.goalSeq
	case t.past():
		return t.off, t.seq
	}
	return t.length(), math.MaxUint64
}

// due says whether the course is to be read: when it is to be shown, all of its marks
// when what else the screen shows was read, and again while it grows.
func (t *transport) due() bool {
	switch {
	case t.reading || !t.shown() && !t.wanted && len(t.later) == 0:
		return false
	case t.read:
		return (t.Over() && !t.final || t.cfg.Now().Sub(t.readAt) >= again) && (t.problem != "" || t.present().Seq > t.line.Last)
	}
	return !t.rough || len(t.later) > 0 || t.caught && t.asked == t.made
}

// catchUp reads the course when that is due.
func (t *transport) catchUp() tea.Cmd {
	if !t.due() {
		return nil
	}
	most, since := fewMarks, uint64(0)
	if t.rough {
		most = 0
	}
	if t.whole { // what is new
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
func (t *transport) take(line api.Timeline) {
	if line.Damage != t.line.Damage {
		t.tell(themes.Warn, "the record is damaged: %s", line.Damage)
	}
	t.line, t.rough = line, true
	if !t.read {
		return // between some of the marks there are gaps that are none
	}
	if line.More > 0 && !t.crowded {
		t.crowded = true
		t.tell(themes.Info, "so much happened that %d marks of it have no place on the course", line.More)
	}
	t.gaps = gaps(line)
}

// jump goes to a moment, which is about at goal.
func (t *transport) jump(to api.Moment, goal time.Duration) {
	if !t.past() && t.notice.token != themes.Warn {
		t.notice = notice{} // it was of now
	}
	t.wanted, t.goal, t.goalSeq = true, goal, 0
	if p, err := to.Parse(); err == nil {
		t.goalSeq = p.Event
	}
	t.asked = t.link.Replay().Jump(to)
}

// seek goes to an offset.
func (t *transport) seek(off time.Duration) {
	off = max(0, min(off, t.length())).Round(time.Millisecond)
	t.jump(api.Moment("+"+off.String()), off)
}

func (t *transport) play(on bool) {
	if t.playing = on; on {
		t.link.Replay().Speed(speeds[t.speed])
	}
	t.link.Replay().Play(on)
}

// isAction says whether a mark is where an action began that isn't folded away.
func (t *transport) isAction(m api.Mark) bool {
	if m.Kind != api.MarkAction && m.Kind != api.MarkEdit {
		return false
	}
	a, _ := t.present().Action(int(m.Key))
	return !a.Housekeeping
}

// beside is the action's mark before or after where the person is.
func (t *transport) beside(by int) (found api.Mark, ok bool) {
	off, seq := t.here()
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

// printedBeside is where printing went on after a pause, before or after where the person
// is, in a session in which no action ran.
func (t *transport) printedBeside(by int) (found time.Duration, ok bool) {
	if slices.ContainsFunc(t.line.Marks, t.isAction) {
		return 0, false
	}
	off, _ := t.here()
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

// current is the number of the newest action where the person is; 0: none.
func (t *transport) current() int {
	for i := len(t.st.Actions) - 1; i >= 0; i-- {
		a, _ := t.present().Action(t.st.Actions[i].N)
		if !t.st.Actions[i].Housekeeping && !a.Housekeeping {
			return t.st.Actions[i].N
		}
	}
	return 0
}

// toMark goes to just after a mark's event.
func (t *transport) toMark(m api.Mark) { t.jump(api.MomentOf(m.Seq), m.Offset) }

// mark finds where a resource begins.
func (t *transport) mark(key int64, kinds ...api.MarkKind) (api.Mark, bool) {
	for _, m := range t.line.Marks {
		if m.Key == key && slices.Contains(kinds, m.Kind) {
			return m, true
		}
	}
	return api.Mark{}, false
}

// press takes a click on the course.
func (t *transport) press(e tea.Mouse) bool {
	if !uv.Pos(e.X, e.Y).In(t.bar) || e.Button != tea.MouseLeft || !t.shown() {
		return false
	}
	t.drag = true
	t.pull(e.X)
	return true
}

// pull goes where the mouse is along the course.
func (t *transport) pull(x int) {
	if w := t.bar.Dx(); w > 1 {
		x = max(0, min(x-t.bar.Min.X, w-1))
		t.seek(t.widened(t.squeezed(t.length()) / time.Duration(w-1) * time.Duration(x)))
	}
}
