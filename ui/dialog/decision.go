package dialog

import (
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

// Decision is an opened question. It shows all that a decision covers, and lets
// nobody approve what they haven't had in view whole.
type Decision struct {
	sheet
	Off string // why nothing can be answered from here, or ""

	place, of int    // its place in the queue, from 1
	pending   bool   // an answer is on its way
	notice    string // what became of the last try
	shown     api.Question
	said      string         // what the agent says that it is for; that may come late
	action    string         // what its action is called
	kind      api.ActionKind // and what that is
	tried     uint64         // up to which change of the attempts it is known
	sofar     string         // how much went over such connections
	equal     []api.Question // others that read the same, which the answer is for, too
	also      string         // those of other sessions, in words
	diffs     []api.FileDiff // of an edit
	unread    string         // why there are none, or not all
	asked     string         // fingerprint of the text that they were asked for
	print     string         // fingerprint of what is shown
	raw       bool
	seen      int  // how many rows from the first on have been in view
	seenAt    int  // the width they were counted at
	whole     bool // all that a decision covers has been in view
	over      string
	changed   bool
	made      made
}

// made are the rows as they were made last; commands can be long.
type made struct {
	print   string
	width   int
	raw     bool
	method  uv.WidthMethod
	signs   paint.Signs
	rows    []row
	covered int
}

// NewDecision opens a question.
func NewDecision(q api.Question, print string) *Decision {
	return &Decision{sheet: sheet{dock: dockRows}, shown: q, print: print}
}

func (d *Decision) Scope() keys.Scope { return keys.Decision }

func (d *Decision) Leave() string {
	if d.over != "" {
		return "close"
	}
	return "leaves it held"
}

// Sync takes the question as it is now. What was read of another text doesn't
// count. When it is no longer held the dialog stays, so that the same keys don't
// fall on whatever comes next.
func (d *Decision) Sync(n News) {
	id := d.shown.ID
	d.pending, d.Off = n.Pending(id), n.Off
	d.place, d.of = n.State.Place(id)
	if d.over == "" {
		d.equal, d.also = n.State.Equal(id), n.State.Also[id]
	}
	if a, ok := n.State.Action(d.shown.Action); ok && (a.Said() != d.said || a.Title != d.action) {
		d.said, d.action, d.kind, d.made = a.Said(), a.Title, a.Kind, made{}
	}
	if c := d.shown.Connection; c != nil && c.Host != "" && (d.sofar == "" || d.tried != n.State.Tried) {
		sent, received := n.State.Traffic(c)
		d.tried, d.sofar = n.State.Tried, paint.Bytes(sent)+" sent, "+paint.Bytes(received)+" received"
		if sent+received == 0 {
			d.sofar = "nothing was sent there, or received"
		}
	}
	q, ok := n.State.Question(id)
	switch print := n.State.Print(id); {
	case d.over != "":
	case !ok && !d.pending:
		d.over = n.Closed(id)
	case ok && print != d.print:
		d.shown, d.print, d.diffs, d.unread = q, print, nil, ""
		d.seen, d.whole, d.top, d.changed = 0, false, 0, true
		d.notice = ""
	case ok: // how often it is tried, and what it offers, moves on
		if q.Offer != d.shown.Offer {
			d.made = made{}
		}
		d.shown = q
	}
}

// Target is the question with all its text, until it is no longer held.
func (d *Decision) Target() state.Target {
	if d.over != "" {
		return state.Target{}
	}
	return state.Target{Question: d.shown.ID, Hash: d.print, Place: "dialog"}
}

// Care: what answers has to wait for a quiet keyboard, but not what asks once more.
func (d *Decision) Care(i intent.Intent) state.Care {
	if d.over == "" && Settles(i, d.shown) {
		return state.Quiet
	}
	return state.AtOnce
}

func (d *Decision) Fail(words string) { d.notice = "! " + words }

func (d *Decision) Why(i intent.Intent) string {
	if d.Off != "" && intent.Decides(i) {
		return d.Off
	}
	edit := d.shown.Subject == api.SubjectEdit
	switch i.(type) {
	case intent.Approve, intent.Always, intent.StepInto, intent.StepOver:
		if why := WhyNot(i, d.shown); why != "" {
			return why
		}
		if d.over == "" && !d.whole && !namesOne(i, d.shown) {
			return d.sheet.unread(d.seen)
		}
	case intent.Keep:
		if !edit {
			return "only an edit can be kept before it is let through"
		}
		if d.over == "" && !d.whole {
			return d.sheet.unread(d.seen)
		}
	case intent.Rollback:
		if !edit {
			return "nothing to roll back: it hasn't run"
		}
	default:
		return ""
	}
	switch {
	case d.over != "":
		return d.over
	case d.pending:
		return OnItsWay
	}
	return ""
}

// Handle turns a key's intent into a decision on what is shown.
func (d *Decision) Handle(i intent.Intent) intent.Intent {
	switch i.(type) {
	case intent.Raw:
		d.raw = !d.raw
		return nil
	case intent.HeldStep, intent.Help:
		return i
	}
	if d.Why(i) != "" {
		return nil
	}
	if of := Answer(i, d.shown, d.print, true); of != nil {
		return of
	}
	was := d.top
	next := d.sheet.Handle(i)
	if !d.raw {
		d.onlySeen(i, was, d.seen)
	}
	return next
}

// make has the rows made, if they aren't as they would be now.
func (d *Decision) make(dst uv.Screen, width int, now time.Time) (rows []row, covered int) {
	if m := &d.made; m.rows == nil || d.shown.Connection != nil || m.print != d.print || m.width != width || m.raw != d.raw || m.method != dst.WidthMethod() || m.signs != paint.SignsOf(dst) {
		b := &paper{dst: dst, width: width}
		*m = made{print: d.print, width: width, raw: d.raw, method: dst.WidthMethod(), signs: paint.SignsOf(dst), covered: d.write(b, now)}
		m.rows = b.rows
	}
	return d.made.rows, d.made.covered
}

// Dock is what all of it needs, and no less than what most do.
func (d *Decision) Dock(dst uv.Screen, cols int) int {
	width := max(10, cols-margin)
	rows, _ := d.make(dst, width, time.Time{})
	hints, _ := d.foot(paint.Frame{})
	return max(dockRows, len(rows)+d.chrome(len(paint.WrapHints(dst, hints, width)), true))
}

func (d *Decision) Draw(area uv.Rectangle, f paint.Frame) *tea.Cursor {
	b, covered := d.begin(f, area, 0), 0
	b.rows, covered = d.make(f.Screen, b.width, f.Now)
	if d.seenAt != b.width {
		d.seen, d.seenAt = 0, b.width
	}
	q := d.shown
	mark := "◆ "
	if q.Action != 0 {
		mark = fmt.Sprintf("◆ #%d ", q.Action)
	}
	title := []text{
		{mark, themes.Held},
		{subject(q.Subject) + " held" + f.Since(q.HeldAt), themes.Strong},
	}
	if d.of > 1 {
		title = append(title, text{fmt.Sprintf("  question %d of %d", d.place, d.of), themes.SurfaceMuted})
	}
	hints, note := d.foot(f)
	d.draw(b, area, f, title, hints, note)
	if f.Focused && !d.raw && d.over == "" && d.top <= d.seen {
		d.seen = max(d.seen, d.top+d.height)
		if !d.whole && d.seen >= covered {
			d.whole = true
			hints, note = d.foot(f) // for as long as one frame it would ask to be read on
			d.draw(b, area, f, title, hints, note)
		}
	}
	return nil
}

// Next is where the next question will be, while none waits and the person is still
// deciding. It has the keys, so that none that is pressed for a question that doesn't
// come is anybody else's.
type Next struct {
	sheet
	Since time.Time
	to    string
}

// NewNext opens one that has so many rows of the dock; to is what has the focus after it.
func NewNext(rows int, since time.Time, to string) *Next {
	return &Next{sheet: sheet{dock: rows}, Since: since, to: to}
}

func (n *Next) Scope() keys.Scope { return keys.Between }
func (n *Next) Leave() string     { return "back to " + n.to }

func (n *Next) Draw(area uv.Rectangle, f paint.Frame) *tea.Cursor {
	b := n.begin(f, area, 0)
	b.say("Nothing waits. What comes in a moment is asked here.", themes.SurfaceMuted)
	n.draw(b, area, f, titled("◇ deciding"), []paint.Hint{leave(n.Leave())}, text{})
	return nil
}
