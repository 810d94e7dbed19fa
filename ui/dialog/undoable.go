package dialog

import (
	"fmt"
	"slices"
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
	for _, x := range list {
		mark, k := "○ ", themes.SurfaceMuted
		if x.State == api.ApplyDone {
			mark, k = "● ", themes.Surface
		}
		words := fmt.Sprintf("%d  %s  %s  ", x.ID, x.At.Local().Format("01-02 15:04"), paint.Files(x.Files))
		items = append(items, item{id: fmt.Sprint(x.ID), rows: says(mark+words+applyWords(x), k), about: says(applied(x), themes.SurfaceMuted)})
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

func (a *Applies) Draw(area uv.Rectangle, f paint.Frame) *tea.Cursor {
	note := text{}
	switch {
	case !a.loaded:
		note = text{"⋯ reading what was applied", themes.Info}
	case a.problem != "":
		note = warning(a.problem)
	case len(a.list) == 0:
		note = text{"nothing was applied from this session", themes.SurfaceMuted}
	}
	hints := Foot(keys.List, func(i intent.Intent) bool { return a.Why(i) != "" })
	a.show(a.begin(f, area, 150), area, f, titled("Applies"), hints, note)
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
	return strings.Join(slices.DeleteFunc(out, func(s string) bool { return s == "" }), " · ")
}

// Rules lists the rules that were made in a session, the newest first, so that each can
// be taken back.
type Rules struct {
	board
	Off    string // why none can be taken back, or ""
	list   []api.Rule
	failed string
}

func (d *Rules) Scope() keys.Scope { return keys.Rules }
func (d *Rules) Fail(words string) { d.failed = words }

// Target is the selected rule.
func (d *Rules) Target() state.Target {
	return state.Target{Hash: d.selected().id, Place: "rules"}
}

// Care: what is taken back must have been what is selected.
func (d *Rules) Care(i intent.Intent) state.Care {
	if _, drop := i.(intent.Deny); drop {
		return state.Quiet
	}
	return state.AtOnce
}

// Sync takes the rules as they are now.
func (d *Rules) Sync(n News) {
	d.list = n.State.Session.Rules
	var items []item
	for _, r := range d.list {
		mark, k := "✓ ", themes.OK
		switch r.Verdict {
		case api.Deny:
			mark, k = "✗ ", themes.Denied
		case api.Ask:
			mark, k = "◆ ", themes.Held
		}
		words := RuleWords(r)
		by := "by " + paint.Clean(r.By)
		if !r.At.IsZero() {
			by += ", " + r.At.Local().Format("01-02 15:04")
		}
		items = append(items, item{id: words, rows: func(b *paper) {
			for i, s := range paint.Wrap(b.dst, words, b.width-2) {
				if i == 0 {
					b.line(text{mark, k}, text{s, themes.Surface})
				} else {
					b.add(row{indent: 2, spans: []text{{s, themes.Surface}}})
				}
			}
			b.add(row{indent: 2, spans: []text{{by, themes.SurfaceMuted}}})
		}})
	}
	d.put(items)
}

func (d *Rules) Why(i intent.Intent) string {
	if _, drop := i.(intent.Deny); !drop {
		return ""
	}
	if len(d.list) == 0 {
		return "no rule was made in this session"
	}
	return d.Off
}

// Handle moves, and takes the selected rule back.
func (d *Rules) Handle(i intent.Intent) intent.Intent {
	if _, drop := i.(intent.Deny); drop {
		if d.Why(i) != "" {
			return nil
		}
		d.failed = ""
		return intent.DropRule{Rule: d.list[d.at]}
	}
	return d.board.Handle(i)
}

func (d *Rules) Draw(area uv.Rectangle, f paint.Frame) *tea.Cursor {
	note := waiting(f)
	switch {
	case d.failed != "":
		note = warning(d.failed)
	case len(d.list) == 0:
		note = text{"no rule was made in this session: A answers with one", themes.SurfaceMuted}
	}
	hints := Foot(keys.Rules, func(i intent.Intent) bool { return i != intent.Intent(intent.Back{}) && (d.Why(i) != "" || f.Wait > 0) })
	d.show(d.begin(f, area, 100), area, f, titled("Rules made in this session"), hints, note)
	return nil
}
