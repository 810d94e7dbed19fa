package workbench

import (
	"math"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
)

// speeds are how many seconds of a session can go by in one.
var speeds = [...]float64{0.5, 1, 2, 4, 8, 16, 32, 64}

const usualSpeed = 1 // the index

// transport is how a person moves along a session's course. What was is shown
// from the first jump's arrival on until the way back to the present.
type transport struct {
	timeline
	later []intent.Intent // what the person wants done once the course was read

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
	return t.fetch()
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
		t.seek(t.gaps.widened(t.gaps.squeezed(t.length()) / time.Duration(w-1) * time.Duration(x)))
	}
}
