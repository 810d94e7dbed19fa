package home

import (
	"cmp"
	"fmt"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/paint"
	"stepbox/ui/pane/actions"
	"stepbox/ui/pane/terminal"
)

// beside draws what is known of the selected session.
func (s *Screen) beside(dst uv.Screen, area uv.Rectangle, f paint.Frame) {
	found, ok := s.current()
	x := found.Session
	box := paint.Box{Title: "Preview"}
	if ok {
		box.Title = paint.Clean(name(x))
	}
	inner := box.Draw(dst, area, f.P)
	if !ok || inner.Empty() {
		return
	}
	d := sheet{dst: dst, r: uv.Rect(inner.Min.X+1, inner.Min.Y, inner.Dx()-2, inner.Dy()), f: f}
	d.about(x)
	p := &s.shown
	if p.id != x.ID {
		d.text("…", themes.Faint)
		return
	}
	d.known(x, p)
	if d.r.Dy() < 3 || p.screen == nil {
		return
	}
	d.head("Screen")
	terminal.Show(dst, d.r, p.screen)
}

// sheet draws one row below the other into what is left of an area.
type sheet struct {
	dst uv.Screen
	r   uv.Rectangle // what is left
	f   paint.Frame
}

// text draws a row; what comes after the bottom is left out.
func (d *sheet) text(s string, k themes.Token) {
	if d.r.Dy() > 0 {
		paint.Clip(d.dst, d.r.Min.X, d.r.Min.Y, d.r.Max.X, s, d.f.P.S(k))
		d.r.Min.Y++
	}
}

// head begins a part of its own.
func (d *sheet) head(s string) {
	if d.r.Dy() < 3 {
		d.r.Min.Y = d.r.Max.Y
		return
	}
	d.r.Min.Y++
	d.text(s, themes.Title)
}

// wrap draws a text over some rows.
func (d *sheet) wrap(s string, most int, k themes.Token) {
	for _, l := range paint.Wrap(d.dst, paint.Clean(s), d.r.Dx()) {
		if most--; most < 0 {
			return
		}
		d.text(l, k)
	}
}

// about draws what the list itself knows.
func (d *sheet) about(x api.Session) {
	glyph, token, words := State(x)
	d.text(glyph+" "+words+" · "+paint.Ago(d.f.Now.Sub(x.Last()))+" · took "+took(x, d.f.Now), token)
	d.text(x.Command, themes.Text)
	d.text(x.Workspace, themes.Muted)
	var counts []string
	for _, c := range []struct {
		n         int
		one, many string
	}{
		{x.Actions, "action", "actions"}, {x.Denials, "denial", "denials"}, {x.Rollbacks, "roll back", "roll backs"},
		{x.Changed, "changed file", "changed files"}, {x.Attempts, "attempt", "attempts"},
	} {
		if c.n > 0 {
			counts = append(counts, paint.Count(c.n, c.one, c.many))
		}
	}
	d.wrap(strings.Join(counts, ", "), 2, themes.Text)
	if x.Reason != "" {
		d.wrap(x.Reason, 2, themes.Warn)
	}
	if x.Pinned {
		d.text("pinned: no rule removes it", themes.Info)
	}
	if !x.Trashed.IsZero() {
		d.text("in the trash: u brings it back", themes.Loss)
	}
	if len(x.Tags) > 0 {
		d.text("#"+strings.Join(x.Tags, " #"), themes.Info)
	}
	if x.Note != "" {
		d.wrap(x.Note, 4, themes.Text)
	}
	if from := x.Parent; from != nil {
		d.text(fmt.Sprintf("forked from %s at %s", cmp.Or(from.Name, from.ID), cmp.Or(string(from.At), "its end")), themes.Info)
	}
}

// known draws what was found out.
func (d *sheet) known(x api.Session, p *preview) {
	if p.problem != "" {
		d.wrap("! "+p.problem, 2, themes.Warn)
	}
	for _, fork := range p.forks {
		d.text("forked to "+name(fork), themes.Info)
	}
	if len(p.files) > 0 {
		d.head(paint.Count(x.Unapplied, "file isn't", "files aren't") + " in the project")
		for _, c := range p.files[:min(len(p.files), 5)] {
			d.text(c.Status+" "+c.Path, themes.Text)
		}
		if more := x.Unapplied - 5; more > 0 {
			d.text(fmt.Sprintf("and %d more", more), themes.Muted)
		}
	}
	if len(p.actions) > 0 {
		d.head("Last actions")
		for _, a := range p.actions[max(0, len(p.actions)-5):] {
			glyph, token := actions.Glyph(a)
			d.text(fmt.Sprintf("#%d %s %s", a.N, glyph, a.Title), token)
		}
	}
}
