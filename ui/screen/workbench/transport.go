package workbench

import (
	"fmt"
	"math"
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/paint"
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

// sign is how a kind of mark looks on the course. Of several in one cell the one
// with the most weight is shown.
type sign struct {
	glyph  string
	token  themes.Token
	weight int
}

func signOf(k api.MarkKind) sign {
	switch k {
	case api.MarkDenied:
		return sign{"✗", themes.Denied, 7}
	case api.MarkRollback:
		return sign{"↶", themes.Undone, 6}
	case api.MarkApply:
		return sign{"⇑", themes.OK, 5}
	case api.MarkQuestion:
		return sign{"◆", themes.Held, 4}
	case api.MarkResume:
		return sign{"»", themes.Info, 3}
	case api.MarkEdit:
		return sign{"±", themes.AddedWord, 2}
	case api.MarkAttempt:
		return sign{"↗", themes.Info, 1}
	}
	return sign{}
}

// draw draws where the person is, and the course with its marks.
func (t *transport) draw(r uv.Rectangle, f paint.Frame) {
	t.bar = uv.Rectangle{}
	if r.Empty() {
		return
	}
	x, y, end := r.Min.X+1, r.Min.Y, r.Max.X-1
	switch {
	case t.problem != "":
		f.Clip(x, y, end, "no replay: "+t.problem, themes.Warn)
		return
	case !t.rough:
		f.Clip(x, y, end, "reading the session's course…", themes.Muted)
		return
	}
	off, _ := t.here()
	all := t.length()
	mark, token := "‖", themes.Info
	switch {
	case !t.past():
		mark, token = "■", themes.Muted
	case t.playing:
		mark, token = "▶", themes.Running
	}
	x = f.Text(x, y, end, mark+" ", token)
	x = f.Text(x, y, end, paint.Long(off), themes.Strong)
	x = f.Text(x, y, end, " / "+paint.Long(all), themes.Muted)
	x = f.Text(x, y, end, fmt.Sprintf("  %-4s", "×"+strconv.FormatFloat(speeds[t.speed], 'f', -1, 64)), themes.Info)
	if r.Dx() >= 60 {
		words := ""
		if n := t.current(); t.past() && n > 0 {
			words = "#" + strconv.Itoa(n)
		}
		x = f.Text(x, y, end, fmt.Sprintf(" %-5s", words), themes.Strong)
	}
	if t.line.Damage != "" {
		words := " ⚠ damaged"
		end -= f.Width(words)
		f.Text(end, y, r.Max.X-1, words, themes.Warn)
	}
	if x+1 < end {
		t.bar = uv.Rect(x+1, y, end-x-1, 1)
		t.scrub(f, off, all)
	}
}

// scrub draws the course: what is behind, where the person is, what is ahead.
func (t *transport) scrub(f paint.Frame, off, all time.Duration) {
	w := t.bar.Dx()
	whole := t.gaps.squeezed(all)
	cell := func(d time.Duration) int {
		if whole <= 0 {
			return 0
		}
		return int(float64(t.gaps.squeezed(max(0, min(d, all)))) / float64(whole) * float64(w-1))
	}
	cells := make([]sign, w)
	for _, m := range t.line.Marks {
		if s, at := signOf(m.Kind), cell(m.Offset); s.weight > cells[at].weight {
			cells[at] = s
		}
	}
	at := cell(off)
	for i, s := range cells {
		switch {
		case i == at:
			s = sign{glyph: "●", token: themes.Strong}
		case s.weight > 0:
		case i < at:
			s = sign{glyph: "━", token: themes.BorderFocus}
		default:
			s = sign{glyph: "─", token: themes.Border}
		}
		f.Text(t.bar.Min.X+i, t.bar.Min.Y, t.bar.Max.X, s.glyph, s.token)
	}
}
