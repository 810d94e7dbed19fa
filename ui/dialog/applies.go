package dialog

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

// Applies lists what was applied from a session, the newest last, so that one can be undone.
type Applies struct {
	board
	list    []api.Apply
	problem string
	loaded  bool
}

// Set takes the applies, oldest first, or why they can't be had.
func (a *Applies) Set(list []api.Apply, problem string) {
	a.list, a.problem, a.loaded = list, problem, true
	var items []item
	for i, x := range list {
		mark, k := "○ ", themes.SurfaceMuted
		if x.State == api.ApplyDone {
			mark, k = "● ", themes.Surface
		}
		words := fmt.Sprintf("%d  %s  %s  ", x.ID, x.At.Local().Format("01-02 15:04"), paint.Count(x.Files, "file", "files"))
		items = append(items, item{what: "apply", n: i, rows: says(mark+words+applyWords(x), k), about: says(applied(x), themes.SurfaceMuted)})
	}
	a.put(items)
	a.at = max(0, len(items)-1)
}

func (a *Applies) Scope() keys.Scope { return keys.List }

func (a *Applies) Why(i intent.Intent) string {
	if _, open := i.(intent.Open); open {
		switch n := a.at; {
		case n >= len(a.list):
			return "nothing was applied: there is nothing to undo"
		case a.list[n].State != api.ApplyDone:
			return fmt.Sprintf("apply %d isn't in the project folder: %s", a.list[n].ID, applyWords(a.list[n]))
		}
	}
	return ""
}

func (a *Applies) Handle(i intent.Intent) intent.Intent {
	if _, open := i.(intent.Open); open {
		if a.Why(i) == "" {
			return intent.UndoApply{ID: a.list[a.at].ID}
		}
		return nil
	}
	return a.board.Handle(i)
}

// applyWords say where an apply is in its life.
func applyWords(a api.Apply) string {
	switch a.State {
	case api.ApplyDone:
		return "applied"
	case api.ApplyFailed:
		return "failed, nothing was written"
	case api.ApplyUndone:
		return "undone"
	}
	return "not finished: the next stepbox command mends it"
}

func (a *Applies) Draw(dst uv.Screen, area uv.Rectangle, f paint.Frame) *tea.Cursor {
	a.measure(area, 150)
	note := text{}
	switch {
	case !a.loaded:
		note = text{"⋯ reading what was applied", themes.Info}
	case a.problem != "":
		note = text{"! " + a.problem, themes.Warn}
	case len(a.list) == 0:
		note = text{"nothing was applied from this session", themes.SurfaceMuted}
	}
	hints := []paint.Hint{{Key: "enter", Words: "undo…", Off: a.Why(intent.Open{}) != ""}, {Key: "esc", Words: "close"}}
	a.show(dst, area, f, paint.Line{{Text: "Applies", Style: f.P.S(themes.Strong)}}, []row{blank()}, hints, note)
	return nil
}

// checkWords say how a check went, before its command.
func checkWords(c api.CheckResult) (string, themes.Token) {
	if c.Passed() {
		return "✓ check passed: ", themes.OK
	}
	return "✗ check failed: ", themes.Fail
}

// applied says in a paragraph what an apply had.
func applied(x api.Apply) string {
	out := []string{x.Failure, strings.Join(x.Paths, ", ")}
	if n := x.Files - len(x.Paths); n > 0 && len(x.Paths) > 0 {
		out[1] += fmt.Sprintf(" and %d more", n)
	}
	for _, c := range x.Checks {
		words, _ := checkWords(c)
		out = append(out, words+c.Command)
	}
	if n := len(x.Fetched); n > 0 {
		out = append(out, paint.Count(n, "commit", "commits")+" below "+x.Ref)
	}
	if x.By != "" {
		out = append(out, "by "+x.By)
	}
	var full []string
	for _, s := range out {
		if s != "" {
			full = append(full, s)
		}
	}
	return strings.Join(full, " · ")
}

// Ended sums up a session that ended while it was looked at, and offers what can
// be done with its work.
type Ended struct {
	sheet
	session api.Session
	why     func(intent.Intent) string
}

// NewEnded opens the summary; why says why something that it offers can't be done.
func NewEnded(s api.Session, why func(intent.Intent) string) *Ended {
	return &Ended{session: s, why: why}
}

func (e *Ended) Scope() keys.Scope { return keys.Ended }

// Target is the summary as a whole: keys that were typed to the agent, which has
// just gone, choose nothing here.
func (e *Ended) Target() state.Target { return state.Target{Hash: e.session.ID, Place: "ended"} }

func (e *Ended) Care(i intent.Intent) state.Care {
	if _, back := i.(intent.Back); back {
		return state.AtOnce
	}
	return state.Quiet
}

func (e *Ended) Why(i intent.Intent) string { return e.why(i) }

func (e *Ended) Handle(i intent.Intent) intent.Intent {
	switch i.(type) {
	case intent.Back:
		return i
	case intent.Focus, intent.Apply, intent.Export, intent.Resume:
		return intent.Run{Intent: i}
	}
	return nil
}

func (e *Ended) Draw(dst uv.Screen, area uv.Rectangle, f paint.Frame) *tea.Cursor {
	width := e.measure(area, 84)
	s := e.session
	rows := []row{blank()}
	say := func(k themes.Token, words string) {
		if words == "" {
			return
		}
		rows = append(rows, wrapped(dst, words, width, k, themes.Surface, 0)...)
	}
	say(themes.Strong, paint.Count(s.Unapplied, "changed file isn't", "changed files aren't")+" in your project yet.")
	say(themes.SurfaceMuted, "All of them stay in the record until you remove the session.")
	if s.Unreviewed > 0 {
		say(themes.Warn, paint.Count(s.Unreviewed, "action has", "actions have")+" changes that nobody reviewed.")
	}
	say(themes.SurfaceMuted, s.Reason)
	rows = append(rows, blank())
	var hints []paint.Hint
	for _, b := range keys.In(keys.Ended) {
		if e.why(b.Intent) == "" {
			hints = append(hints, paint.Hint{Key: b.First(), Words: b.Short, Off: f.Wait > 0 && e.Care(b.Intent) == state.Quiet})
		}
	}
	title := paint.Line{{Text: "Session " + paint.Clean(s.Name) + " ended", Style: f.P.S(themes.Strong)}}
	if s.Exit != nil {
		words := fmt.Sprintf(": exit %d", s.Exit.Code)
		if s.Exit.Signal != "" {
			words = ": " + s.Exit.Signal
		}
		title[0].Text += words
	}
	note := text{}
	if f.Wait > 0 {
		note = text{"⋯ keys answer in a moment", themes.SurfaceMuted}
	}
	e.draw(dst, area, f, title, rows, hints, note)
	return nil
}
