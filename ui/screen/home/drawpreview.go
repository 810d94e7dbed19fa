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
	"stepbox/ui/state"
)

// beside draws what is known of the selected session.
func (s *Screen) beside(area uv.Rectangle, f paint.Frame) {
	found, ok := s.current()
	x, u := s.now(found.Session)
	f.Focused = false
	box := paint.Box{Title: "Preview"}
	if ok {
		box.Title = paint.Clean(name(x))
	}
	inner := box.Draw(area, f)
	s.boxes = append(s.boxes, inner)
	if !ok || inner.Empty() {
		return
	}
	d := sheet{r: uv.Rect(inner.Min.X+1, inner.Min.Y, inner.Dx()-2, inner.Dy()), f: f}
	d.about(x)
	if x.Live() {
		d.lives(x, u, s.of[x.ID])
	}
	p := &s.shown
	if p.id != x.ID {
		d.text("…", themes.Faint)
		return
	}
	if st := s.of[x.ID]; st != nil && len(st.Actions) > 0 {
		p.actions = st.Actions // which are newer
	}
	d.known(x, u, p)
	if d.r.Dy() < 3 || p.screen == nil {
		return
	}
	d.head("Screen")
	terminal.Show(f.Screen, d.r, p.screen)
}

// sheet draws one row below the other into what is left of an area.
type sheet struct {
	r uv.Rectangle // what is left
	f paint.Frame
}

// text draws a row; what comes after the bottom is left out.
func (d *sheet) text(s string, k themes.Token) {
	if d.r.Dy() > 0 {
		d.f.Clip(d.r.Min.X, d.r.Min.Y, d.r.Max.X, s, k)
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

// hints draws keys and what they do.
func (d *sheet) hints(all []paint.Hint) {
	for _, l := range paint.WrapHints(d.f.Screen, all, d.r.Dx()) {
		if d.r.Dy() > 0 {
			d.f.Hints(d.r.Min.X, d.r.Min.Y, d.r.Max.X, themes.Text, l)
			d.r.Min.Y++
		}
	}
}

// wrap draws a text over some rows.
func (d *sheet) wrap(s string, most int, k themes.Token) {
	for _, l := range paint.Wrap(d.f.Screen, paint.Clean(s), d.r.Dx()) {
		if most--; most < 0 {
			return
		}
		d.text(l, k)
	}
}

// about draws what the list itself knows.
func (d *sheet) about(x api.Session) {
	glyph, token, words := State(x)
	when := paint.Ago(d.f.Now.Sub(x.Last())) + " · took "
	if x.Live() {
		when = "runs "
	}
	d.text(glyph+" "+words+" · "+when+took(line{x: x, now: d.f.Now}), token)
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
	if !x.Live() && x.Trashed.IsZero() {
		d.hints(afterEnd(x))
	}
	if from := x.Parent; from != nil {
		d.text(fmt.Sprintf("forked from %s at %s", cmp.Or(from.Name, from.ID), cmp.Or(string(from.At), "its end")), themes.Info)
	}
}

// lives draws what a live session uses, and what is held in it.
func (d *sheet) lives(x api.Session, u api.Usage, st *state.State) {
	if u.Pids > 0 {
		d.text(fmt.Sprintf("%.0f%% cpu · %s memory · %s", u.CPU*100, paint.Bytes(u.Memory), paint.Count(u.Pids, "process", "processes")), themes.Text)
	}
	if u.Sent+u.Received > 0 {
		d.text(fmt.Sprintf("network: %s out, %s in", paint.Bytes(u.Sent), paint.Bytes(u.Received)), themes.Text)
	}
	for _, s := range x.Spend {
		d.text(paint.Spend(s), themes.Text)
	}
	if st == nil || len(st.Questions) == 0 {
		return
	}
	d.head("Held")
	for _, q := range st.Questions[:min(len(st.Questions), 4)] {
		d.text("◆ "+wants(q), themes.Held)
	}
	if more := len(st.Questions) - 4; more > 0 {
		d.text(fmt.Sprintf("and %d more", more), themes.Muted)
	}
}

// known draws what was found out.
func (d *sheet) known(x api.Session, u api.Usage, p *preview) {
	unapplied := max(x.Unapplied, u.Unapplied)
	if p.problem != "" {
		d.wrap("! "+p.problem, 2, themes.Warn)
	}
	for _, fork := range p.forks {
		d.text("forked to "+name(fork), themes.Info)
	}
	if len(p.files) > 0 {
		d.head(paint.Count(max(unapplied, len(p.files)), "file isn't", "files aren't") + " in the project")
		for _, c := range p.files[:min(len(p.files), 5)] {
			d.text(c.Status+" "+c.Path, themes.Text)
		}
		if more := unapplied - 5; more > 0 {
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
