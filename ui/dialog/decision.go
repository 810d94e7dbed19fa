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
)

// Decision is an opened question. It shows all that a decision covers, and lets
// nobody approve what they haven't had in view whole.
type Decision struct {
	sheet
	Keys *keys.Table

	// What the workbench tells before each frame.
	Place, Of int           // its place in the queue, from 1
	Wait      time.Duration // until keys can answer
	Pending   bool          // an answer is on its way
	Notice    string        // what became of the last try

	shown   api.Question
	print   string // fingerprint of what is shown
	raw     bool
	seen    int  // how many rows from the first on have been in view
	seenAt  int  // the width they were counted at
	whole   bool // all that a decision covers has been in view
	over    string
	changed bool
	made    made
}

// made are the rows as they were made last; commands can be long.
type made struct {
	print   string
	width   int
	raw     bool
	method  uv.WidthMethod
	rows    []row
	covered int
}

// NewDecision opens a question.
func NewDecision(q api.Question, print string, t *keys.Table) *Decision {
	return &Decision{shown: q, print: print, Keys: t}
}

// Scope is where its keys are bound.
func (d *Decision) Scope() keys.Scope { return keys.Decision }

// Shown is the question as it is on the screen, and the fingerprint of all its text.
func (d *Decision) Shown() (api.Question, string) { return d.shown, d.print }

// Whole says whether all that a decision covers has been in view.
func (d *Decision) Whole() bool { return d.whole }

// Sync takes the question as it is now. What was read of another text doesn't count.
func (d *Decision) Sync(q api.Question, print string) {
	if d.over != "" || print == d.print {
		return
	}
	d.shown, d.print = q, print
	d.seen, d.whole, d.top, d.changed = 0, false, 0, true
	d.Notice = ""
}

// Close takes its keys away and says why. It stays, so that the same keys don't
// fall on whatever comes next.
func (d *Decision) Close(why string) { d.over = why }

// Over says whether the question can no longer be answered.
func (d *Decision) Over() bool { return d.over != "" }

// Why says why an intent does nothing now, or "".
func (d *Decision) Why(i intent.Intent) string {
	edit := d.shown.Subject == api.SubjectEdit
	switch i.(type) {
	case intent.Always:
		return "rules from a decision come later"
	case intent.Approve, intent.StepInto, intent.StepOver:
		if edit {
			return "changes are kept (y) or rolled back (u)"
		}
		if d.over == "" && !d.whole {
			return "scroll through all of it first (pgdn)"
		}
		if keep, ok := i.(intent.Approve); ok && keep.Keep && d.shown.Subject == api.SubjectNested {
			return "its changes are its action's: approve it (a)"
		}
	case intent.Keep:
		if !edit {
			return "only an edit can be kept before it is let through"
		}
		if d.over == "" && !d.whole {
			return "scroll through all of it first (pgdn)"
		}
	case intent.Deny:
		if edit {
			return "changes are kept (y) or rolled back (u)"
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
	case d.Pending:
		return "the answer is on its way"
	}
	return ""
}

// Handle turns a key's intent into a decision on what is shown.
func (d *Decision) Handle(i intent.Intent) intent.Intent {
	if d.scroll(i) {
		return nil
	}
	decide := func(a api.Answer) intent.Intent {
		return intent.Decide{Question: d.shown.ID, Hash: d.shown.Hash, Answer: a}
	}
	switch i := i.(type) {
	case intent.Back:
		return i
	case intent.Raw:
		d.raw = !d.raw
		return nil
	case intent.HeldStep, intent.Help:
		return i
	}
	if d.Why(i) != "" {
		return nil
	}
	switch i := i.(type) {
	case intent.Approve:
		if i.Keep {
			return decide(api.AnswerApproveKeep)
		}
		return decide(api.AnswerApprove)
	case intent.StepInto:
		return decide(api.AnswerStepInto)
	case intent.StepOver:
		return decide(api.AnswerStepOver)
	case intent.Keep:
		return decide(api.AnswerKeep)
	case intent.Rollback:
		return decide(api.AnswerRollback)
	case intent.Deny:
		return intent.AskReason{Question: d.shown.ID, Hash: d.shown.Hash}
	}
	return nil
}

// Draw draws the question.
func (d *Decision) Draw(dst uv.Screen, area uv.Rectangle, f paint.Frame) *tea.Cursor {
	width := d.measure(area, 116)
	if m := &d.made; m.rows == nil || m.print != d.print || m.width != width || m.raw != d.raw || m.method != dst.WidthMethod() {
		*m = made{print: d.print, width: width, raw: d.raw, method: dst.WidthMethod()}
		m.rows, m.covered = d.rows(dst, width)
	}
	rows, covered := d.made.rows, d.made.covered
	if d.seenAt != width {
		d.seen, d.seenAt = 0, width
	}
	q := d.shown
	title := paint.Line{
		{Text: fmt.Sprintf("◆ #%d ", q.Action), Style: f.P.S(themes.Held)},
		{Text: subject(q.Subject) + " held " + paint.Clock(f.Now.Sub(q.HeldAt)), Style: f.P.S(themes.Strong)},
	}
	if d.Of > 1 {
		title = append(title, paint.Span{Text: fmt.Sprintf("  %d of %d", d.Place, d.Of), Style: f.P.S(themes.SurfaceMuted)})
	}
	hints, note := d.foot()
	d.draw(dst, area, f, title, rows, hints, note)
	if !d.raw && d.over == "" && d.top <= d.seen {
		d.seen = max(d.seen, d.top+d.height)
		d.whole = d.whole || d.seen >= covered
	}
	return nil
}
