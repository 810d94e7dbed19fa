package dialog

import (
	"strings"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

// Line is an editable line of text, bounded in bytes. What is hostile in it is
// escaped when it comes in, so that the line is what is seen of it.
type Line struct {
	textinput.Model
	most int
}

// NewLine makes one that holds at most so many bytes.
func NewLine(most int) Line {
	l := Line{textinput.New(), most}
	l.SetVirtualCursor(false)
	l.KeyMap.Paste.SetEnabled(false) // it would run programs to find the clipboard; the terminal pastes
	l.Focus()
	return l
}

// Insert adds text at the cursor, as much as there is room for.
func (l *Line) Insert(s string) {
	s = paint.Clean(strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\t", " ").Replace(s))
	l.Model, _ = l.Update(tea.PasteMsg{Content: api.Trim(s, max(0, l.most-len(l.Value())))})
}

// Type takes text and edits.
func (l *Line) Type(k tea.KeyPressMsg) {
	if k.Text != "" && k.Mod&^tea.ModShift == 0 {
		l.Insert(k.Text)
		return
	}
	k.Text = ""
	l.Model, _ = l.Update(k)
}

// Draw draws the line in a row and returns the cursor's place in it.
func (l *Line) Draw(dst uv.Screen, x, y, end int, p *paint.Palette, empty string) *tea.Cursor {
	st := p.S(themes.Inset)
	paint.Fill(dst, uv.Rect(x, y, end-x, 1), st)
	if l.Value() == "" {
		paint.Clip(dst, x+1, y, end, empty, p.On(themes.SurfaceMuted, themes.Inset))
	}
	runes, at := []rune(l.Value()), l.Position()
	room := max(1, end-x-3)
	before := string(runes[:at])
	if w := paint.Width(dst, before); w > room {
		before = paint.From(dst, before, w-room)
	}
	x = paint.Text(dst, x+1, y, end-1, before, st)
	paint.Text(dst, x, y, end-1, string(runes[at:]), st)
	c := tea.NewCursor(x, y)
	c.Shape = tea.CursorBar
	return c
}

// maxReason is what the API takes of a reason, in bytes.
const maxReason = 500

// Reason takes the reason of a denial, or why an edit is taken back, bound to the question that was shown.
type Reason struct {
	Entry
	question api.Question
	print    string
	off      string // why enter does nothing now, or ""
	equal    bool   // the denial is for all that read the same, too
	extent   int    // 0 is once, others are those of extents
}

// NewReason opens the input for the denial of a question, or to take back what it is about, and with equal of all that
// read the same.
func NewReason(q api.Question, print string, equal bool) *Reason {
	answer := api.AnswerDeny
	if q.Subject == api.SubjectEdit {
		answer = api.AnswerRollback
	}
	r := &Reason{equal: equal, Entry: Entry{sheet: sheet{dock: dockRows}, Empty: "a reason, or nothing"}, question: q, print: print}
	r.Do = func(why string) intent.Intent {
		if r.off != "" {
			return nil
		}
		return intent.Decide{Question: q.ID, Hash: q.Hash, Answer: answer, Reason: strings.TrimSpace(why), For: r.holds(), Equal: r.equal}
	}
	r.Begin("", maxReason)
	return r
}

func (r *Reason) Scope() keys.Scope { return keys.Denial }

// Handle chooses for how long, and denies.
func (r *Reason) Handle(i intent.Intent) intent.Intent {
	if i, ok := i.(intent.Extent); ok {
		if !r.sent && !r.onlyOnce() {
			r.extent = (r.extent + i.By + len(extents) + 1) % (len(extents) + 1)
		}
		return nil
	}
	return r.Entry.Handle(i)
}

// onlyOnce says that no rule can be made of the denial: it is of many destinations, or at
// a limit, which stands in a file.
func (r *Reason) onlyOnce() bool {
	c := r.question.Connection
	return r.question.Subject == api.SubjectLimit || r.question.Subject == api.SubjectEdit || r.question.Request != nil || r.question.Subject == api.SubjectCall || c != nil && (c.Host == "" || c.Limit != "")
}

// holds is for how long it is denied; "" is once.
func (r *Reason) holds() api.Extent {
	if r.extent == 0 {
		return ""
	}
	return extents[r.extent-1]
}

// Sync says when the question isn't what it was any more.
func (r *Reason) Sync(n News) {
	id := r.question.ID
	_, ok := n.State.Question(id)
	switch {
	case !ok:
		r.off = n.Closed(id)
	case n.State.Print(id) != r.print:
		r.off = "the question changed meanwhile: go back and look again"
	default:
		r.off = ""
	}
}

// Target is the question that a denial would be for.
func (r *Reason) Target() state.Target {
	return state.Target{Question: r.question.ID, Hash: r.print, Place: "reason"}
}

// Care: the line is typed and then sent, so the question must have been in view,
// but the keyboard not quiet.
func (r *Reason) Care(i intent.Intent) state.Care {
	if _, yes := i.(intent.Yes); yes {
		return state.InView
	}
	return state.AtOnce
}

func (r *Reason) Draw(dst uv.Screen, area uv.Rectangle, f paint.Frame) *tea.Cursor {
	width := r.measure(area, 92)
	name := r.question.Title
	if c := r.question.Command; c != nil {
		name = c.Title()
	}
	rows := []row{{}}
	cmd := command(dst, name, width)
	if r.question.Request != nil || r.question.Subject == api.SubjectCall || r.question.Subject == api.SubjectEdit {
		cmd = wrapped(dst, r.question.Title, width, themes.Strong)
	}
	if c := r.question.Connection; c != nil {
		cmd = wrapped(dst, paint.WhoTo(c), width, themes.Strong)
	}
	if len(cmd) > 4 {
		cmd = append(cmd[:4], muted("⋯"))
	}
	rows = append(rows, cmd...)
	why := "why? The agent reads this on its standard error, so it can do better."
	switch {
	case r.question.Subject == api.SubjectCall:
		why = "why? The agent gets this as the answer to what it asks, so it can do better."
	case r.question.Subject == api.SubjectEdit:
		why = "why? The agent is told with its next command, so it can do better."
	case r.question.Apart():
		why = "why? The agent is told with its next command; the program is just refused."
	}
	rows = append(rows, row{}, muted(why))
	note := text{}
	if r.off != "" {
		note = text{"! " + r.off, themes.Warn}
	}
	verb := "deny once"
	if e := r.holds(); e != "" {
		verb = "deny " + extentWords(e)
	}
	hints := []paint.Hint{{Key: keys.First(intent.Yes{}, keys.Denial), Words: verb, Off: r.off != ""}}
	if !r.onlyOnce() {
		hints = append(hints, paint.Hint{Key: keys.First(intent.Extent{By: 1}, keys.Denial), Words: "for how long"})
	}
	hints = append(hints, paint.Hint{Key: "esc", Words: "back, nothing decided"})
	title := []text{{"✗ ", themes.Denied}, {"Deny " + subject(r.question.Subject), themes.Strong}}
	if r.question.Subject == api.SubjectEdit {
		hints[0].Words = "roll back"
		title = []text{{"↶ ", themes.Undone}, {"Roll back", themes.Strong}}
	}
	if area.Dy() < len(rows)+8 { // what it is may be out of view
		title = append(append(title, text{" ", themes.Strong}), cmd[0].spans...)
	}
	return r.ask(dst, area, f, title, rows, hints, note)
}
