package dialog

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/paint"
)

// Bisect asks for a command, tells how the search for the action goes that broke it,
// and what was found.
type Bisect struct {
	Entry
	session api.Session
	running bool
	how     []string // what was found out so far
	done    *api.Bisected
	problem string
}

// NewBisect asks for the command that a session broke.
func NewBisect(s api.Session) *Bisect {
	d := &Bisect{Entry: Entry{Empty: "type a command"}, session: s}
	d.Begin("", maxCheck)
	return d
}

func (d *Bisect) Type(k tea.KeyPressMsg) {
	if d.asks() {
		d.line.Type(k)
	}
}

func (d *Bisect) Paste(s string) {
	if d.asks() {
		d.line.Insert(s)
	}
}

func (d *Bisect) asks() bool { return !d.running && d.done == nil }

// found is the action that broke it, when it is one.
func (d *Bisect) found() int {
	if d.done != nil && len(d.done.Steps) == 1 && len(d.done.Steps[0].Actions) > 0 {
		return d.done.Steps[0].Actions[0]
	}
	return 0
}

// Handle begins the search, goes to what was found, or leaves, which ends a search.
func (d *Bisect) Handle(i intent.Intent) intent.Intent {
	switch i.(type) {
	case intent.Back:
		return i
	case intent.Yes:
		switch command := strings.TrimSpace(d.line.Value()); {
		case d.found() != 0:
			return intent.GoTo{Action: d.found()}
		case d.asks() && command != "":
			d.running, d.how, d.problem = true, nil, ""
			return intent.BisectFor{Command: command}
		}
	}
	return nil
}

// Tell takes word of how it goes: all that was found out so far.
func (d *Bisect) Tell(how []string) { d.how = how }

// End takes the answer, or why there is none.
func (d *Bisect) End(b *api.Bisected, problem string) {
	d.running, d.problem = false, problem
	if problem == "" {
		d.done = b
	}
	if b != nil && b.No != "" {
		d.done, d.problem = nil, b.No
	}
}

func (d *Bisect) Draw(dst uv.Screen, area uv.Rectangle, f paint.Frame) *tea.Cursor {
	width := d.measure(area, 100)
	rows := []row{{}}
	title := []text{{"Find what broke this", themes.Strong}}
	leave := paint.Hint{Key: "esc", Words: "back"}
	if d.asks() {
		rows = append(rows, wrapped(dst, "A shell command that passed before the session's actions and fails now, as go test ./... may. It runs in throw-away sandboxes without a network, on the files as they were after one action and another.", width, themes.SurfaceMuted)...)
		for _, r := range wrapped(dst, d.problem, width, themes.Warn) {
			if d.problem != "" {
				rows = append(rows, r)
			}
		}
		return d.ask(dst, area, f, title, rows, []paint.Hint{{Key: "enter", Words: "find it"}, leave}, text{})
	}
	rows = append(rows, command(dst, d.line.Value(), width)...)
	rows = append(rows, row{})
	for _, w := range d.how[max(0, len(d.how)-max(3, area.Dy()-16)):] {
		rows = append(rows, muted(paint.Shorten(dst, w, width)))
	}
	note, hints := text{"⋯ running it", themes.Info}, []paint.Hint{{Key: "esc", Words: "stop"}}
	if d.done != nil {
		there := "go there; W applies all but it"
		if d.session.Live() {
			there = "go there; u takes it back"
		}
		note, hints = text{}, []paint.Hint{{Key: "enter", Words: there, Off: d.found() == 0}, leave}
		rows = append(rows, row{})
		words := "This broke it:"
		if len(d.done.Steps) > 1 {
			words = "One of these broke it: what is between was skipped, or is flaky."
		}
		rows = append(rows, row{spans: []text{{words, themes.Strong}}})
		for _, s := range d.done.Steps {
			rows = append(rows, wrapped(dst, s.Words(), width, themes.Denied)...)
			if s.Said != "" {
				rows = append(rows, wrapped(dst, "said: "+s.Said, width, themes.SurfaceMuted)...)
			}
		}
		if n := len(d.done.Inexact) + d.done.InexactMore; n > 0 {
			rows = append(rows, wrapped(dst, paint.Count(n, "file", "files")+" can't be had as then, and were as they are now: "+d.done.Inexact[0].Path, width, themes.Warn)...)
		}
	}
	d.draw(dst, area, f, title, append(rows, row{}), hints, note)
	return nil
}
