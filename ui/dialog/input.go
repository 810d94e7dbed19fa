package dialog

import (
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

// line is an editable line of text, bounded in bytes.
type line struct {
	before, after string // around the cursor
	most          int
}

func (l *line) String() string { return l.before + l.after }

func (l *line) insert(s string) {
	s = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == '\t' {
			return ' '
		}
		return r
	}, s)
	s = paint.Clean(s)
	for s != "" {
		_, n := utf8.DecodeRuneInString(s)
		if len(l.before)+len(l.after)+n > l.most {
			return
		}
		l.before += s[:n]
		s = s[n:]
	}
}

// key edits, and says whether it did.
func (l *line) key(k tea.KeyPressMsg) bool {
	switch k.String() {
	case "backspace", "ctrl+h":
		_, n := utf8.DecodeLastRuneInString(l.before)
		l.before = l.before[:len(l.before)-n]
	case "delete":
		_, n := utf8.DecodeRuneInString(l.after)
		l.after = l.after[n:]
	case "left", "ctrl+b":
		_, n := utf8.DecodeLastRuneInString(l.before)
		l.after = l.before[len(l.before)-n:] + l.after
		l.before = l.before[:len(l.before)-n]
	case "right", "ctrl+f":
		_, n := utf8.DecodeRuneInString(l.after)
		l.before += l.after[:n]
		l.after = l.after[n:]
	case "home", "ctrl+a":
		l.before, l.after = "", l.before+l.after
	case "end", "ctrl+e":
		l.before, l.after = l.before+l.after, ""
	case "ctrl+u":
		l.before = ""
	case "ctrl+w", "alt+backspace":
		trimmed := strings.TrimRight(l.before, " ")
		l.before = trimmed[:strings.LastIndex(trimmed, " ")+1]
	default:
		if k.Text == "" || k.Mod&^tea.ModShift != 0 {
			return false
		}
		l.insert(k.Text)
	}
	return true
}

// draw draws the line in a row and returns the cursor's place in it.
func (l *line) draw(dst uv.Screen, x, y, end int, st uv.Style, empty string, hint uv.Style) *tea.Cursor {
	paint.Fill(dst, uv.Rect(x, y, end-x, 1), st)
	if l.String() == "" {
		paint.Clip(dst, x+1, y, end, empty, hint)
	}
	room := max(1, end-x-3)
	before := l.before
	if w := paint.Width(dst, before); w > room {
		before = paint.From(dst, before, w-room)
	}
	at := paint.Text(dst, x+1, y, end-1, before, st)
	paint.Text(dst, at, y, end-1, l.after, st)
	c := tea.NewCursor(at, y)
	c.Shape = tea.CursorBar
	return c
}

// maxReason is what the API takes of a denial's reason, in bytes.
const maxReason = 500

// Reason takes the reason of a denial, bound to the question that was shown.
type Reason struct {
	sheet
	line     line
	question api.Question
	print    string
	off      string // why enter does nothing now, or ""
}

// NewReason opens the input for the denial of a question.
func NewReason(q api.Question, print string) *Reason {
	return &Reason{question: q, print: print, line: line{most: maxReason}}
}

// Scope is where its keys are bound.
func (r *Reason) Scope() keys.Scope { return keys.Input }

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

// Handle sends the line or goes back.
func (r *Reason) Handle(i intent.Intent) intent.Intent {
	switch i := i.(type) {
	case intent.Back:
		return i
	case intent.Yes:
		if r.off != "" {
			return nil
		}
		return intent.Decide{Question: r.question.ID, Hash: r.question.Hash, Answer: api.AnswerDeny, Reason: strings.TrimSpace(r.line.String())}
	}
	return nil
}

// Type takes a key.
func (r *Reason) Type(k tea.KeyPressMsg) bool { return r.line.key(k) }

// Paste takes pasted text.
func (r *Reason) Paste(s string) { r.line.insert(s) }

// Draw draws the input.
func (r *Reason) Draw(dst uv.Screen, area uv.Rectangle, f paint.Frame) *tea.Cursor {
	width := r.measure(area, 92)
	name := r.question.Title
	if c := r.question.Command; c != nil {
		name = c.Line
	}
	rows := []row{blank()}
	cmd := command(dst, name, width)
	if len(cmd) > 4 {
		cmd = append(cmd[:4], muted("⋯"))
	}
	rows = append(rows, cmd...)
	rows = append(rows, blank(), muted("why? The agent reads this on its standard error, so it can do better."), blank(), blank())
	note := text{}
	if r.off != "" {
		note = text{"! " + r.off, themes.Warn}
	}
	hints := []paint.Hint{{Key: "enter", Words: "deny", Off: r.off != ""}, {Key: "esc", Words: "back, nothing decided"}}
	title := paint.Line{{Text: "✗ ", Style: f.P.S(themes.Denied)}, {Text: "Deny " + subject(r.question.Subject), Style: f.P.S(themes.Strong)}}
	body := r.draw(dst, area, f, title, rows, hints, note)
	y := body.Max.Y - 1
	return r.line.draw(dst, body.Min.X, y, body.Max.X, f.P.S(themes.Inset), "a reason, or nothing", f.P.On(themes.SurfaceMuted, themes.Inset))
}
