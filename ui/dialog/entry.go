package dialog

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
)

// Entry takes a line of text that is said of something: a name, tags, a note.
type Entry struct {
	sheet
	title, about, empty string
	line                Line
	do                  func(text string) intent.Intent
}

// NewEntry opens the input with the text as it is, of at most so many bytes; do
// makes of the new text what follows from it.
func NewEntry(title, about, empty, text string, most int, do func(text string) intent.Intent) *Entry {
	e := &Entry{title: title, about: about, empty: empty, line: NewLine(most), do: do}
	e.line.Insert(text)
	return e
}

func (e *Entry) Scope() keys.Scope      { return keys.Input }
func (e *Entry) Type(k tea.KeyPressMsg) { e.line.Type(k) }
func (e *Entry) Paste(s string)         { e.line.Insert(s) }

// Handle hands the text over or goes back.
func (e *Entry) Handle(i intent.Intent) intent.Intent {
	switch i.(type) {
	case intent.Back:
		return i
	case intent.Yes:
		return e.do(e.line.Value())
	}
	return nil
}

func (e *Entry) Draw(dst uv.Screen, area uv.Rectangle, f paint.Frame) *tea.Cursor {
	width := e.measure(area, 92)
	rows := append([]row{{}}, wrapped(dst, e.about, width, themes.SurfaceMuted)...)
	rows = append(rows, row{}, row{})
	hints := []paint.Hint{{Key: "enter", Words: "keep it"}, {Key: "esc", Words: "back"}}
	body := e.draw(dst, area, f, []text{{e.title, themes.Strong}}, rows, hints, text{})
	return e.line.Draw(dst, body.Min.X, body.Max.Y-1, body.Max.X, f.P, e.empty)
}

// ConfirmResume asks before a session that has ended goes on.
func ConfirmResume(s api.Session) *Confirm {
	return &Confirm{
		Title: "Resume " + paint.Clean(label(s)) + "?", Do: intent.DoResume{}, YesFor: "resume it",
		Shown: confirms("resume " + s.ID),
		build: func(dst uv.Screen, width int) []row {
			rows := wrapped(dst, "Its command runs again in a sandbox of its own, over the files as the session left them. Its actions and checkpoints stay.", width, themes.Surface)
			return append(append(rows, row{}), command(dst, s.Command, width)...)
		},
	}
}

// ConfirmDelete asks before a session goes that is pinned, or has what the project hasn't.
func ConfirmDelete(s api.Session, do intent.Intent) *Confirm {
	var why []string
	if s.Pinned {
		why = append(why, "It is pinned.")
	}
	if s.Unapplied > 0 {
		why = append(why, paint.Count(s.Unapplied, "file that it changed isn't", "files that it changed aren't")+" in the project, and can't be had back without it.")
	}
	return &Confirm{
		Title: "Delete " + paint.Clean(label(s)) + "?", Do: do, YesFor: "delete it",
		Shown: confirms("delete " + s.ID),
		build: func(dst uv.Screen, width int) []row {
			return wrapped(dst, strings.Join(why, " ")+" It goes for good when you leave Stepbox; until then u brings it back.", width, themes.Warn)
		},
	}
}

// ConfirmFork asks before a session starts on the files that another had at a moment.
func ConfirmFork(s api.Session, at api.Moment) *Confirm {
	when := "its end"
	if s.Live() {
		when = "now"
	}
	if at != "" {
		when = "that moment"
	}
	return &Confirm{
		Title: "Fork " + paint.Clean(label(s)) + " at " + when + "?", Do: intent.DoFork{}, YesFor: "fork it",
		Shown: confirms("fork " + s.ID),
		build: func(dst uv.Screen, width int) []row {
			rows := wrapped(dst, "Its command starts as a session of its own, on the files as they were then. What was in memory, in /tmp and on connections isn't there.", width, themes.Surface)
			return append(append(rows, row{}), command(dst, s.Command, width)...)
		},
	}
}

func label(s api.Session) string {
	if s.Name != "" {
		return s.Name
	}
	return s.ID
}
