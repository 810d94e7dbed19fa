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
func (l *Line) Draw(f paint.Frame, x, y, end int, empty string) *tea.Cursor {
	f.Fill(uv.Rect(x, y, end-x, 1), themes.Inset)
	if l.Value() == "" {
		f.ClipOn(x+1, y, end, empty, themes.SurfaceMuted, themes.Inset)
	}
	runes, at := []rune(l.Value()), l.Position()
	room := max(1, end-x-3)
	before := string(runes[:at])
	if w := f.Width(before); w > room {
		before = paint.From(f.Screen, before, w-room)
	}
	x = f.Text(x+1, y, end-1, before, themes.Inset)
	f.Text(x, y, end-1, string(runes[at:]), themes.Inset)
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
	r := &Reason{equal: equal, question: q, Entry: Entry{
		sheet: sheet{dock: dockRows}, Empty: "a reason, or nothing", Shown: state.Target{Question: q.ID, Hash: print, Place: "reason"},
	}}
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
	case n.State.Print(id) != r.Shown.Hash:
		r.off = "the question changed meanwhile: go back and look again"
	default:
		r.off = ""
	}
}

func (r *Reason) Draw(area uv.Rectangle, f paint.Frame) *tea.Cursor {
	b, q := r.begin(f, area, 92), r.question
	b.gap()
	switch {
	case q.Connection != nil:
		b.say(paint.WhoTo(q.Connection), themes.Strong)
	case q.Request != nil || q.Subject == api.SubjectCall || q.Subject == api.SubjectEdit:
		b.say(q.Title, themes.Strong)
	case q.Command != nil:
		b.command(q.Command.Title())
	default:
		b.command(q.Title)
	}
	b.cut(1 + 4)
	why := "why? The agent reads this on its standard error, so it can do better."
	switch {
	case q.Subject == api.SubjectCall:
		why = "why? The agent gets this as the answer to what it asks, so it can do better."
	case q.Subject == api.SubjectEdit:
		why = "why? The agent is told with its next command, so it can do better."
	case q.Apart():
		why = "why? The agent is told with its next command; the program is just refused."
	}
	b.gap()
	b.muted(why)
	note := text{}
	if r.off != "" {
		note = warning(r.off)
	}
	verb := "deny once"
	if e := r.holds(); e != "" {
		verb = "deny " + extentWords(e)
	}
	hints := []paint.Hint{hint(intent.Yes{}, keys.Denial, verb, r.off != "")}
	if !r.onlyOnce() {
		hints = append(hints, hint(intent.Extent{By: 1}, keys.Denial, "for how long", false))
	}
	hints = append(hints, leave("back, nothing decided"))
	title := []text{{"✗ ", themes.Denied}, {"Deny " + subject(q.Subject), themes.Strong}}
	if q.Subject == api.SubjectEdit {
		hints[0].Words = "roll back"
		title = []text{{"↶ ", themes.Undone}, {"Roll back", themes.Strong}}
	}
	if area.Dy() < len(b.rows)+8 { // what it is may be out of view
		title = append(append(title, text{" ", themes.Strong}), b.rows[1].spans...)
	}
	return r.ask(b, area, f, title, hints, note)
}
