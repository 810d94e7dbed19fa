package workbench

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/layout"
	"stepbox/ui/paint"
)

// Draw draws the screen and returns the cursor. Without the focus something that isn't the
// workbench's has the keys, and lies over it.
func (s *Screen) Draw(area uv.Rectangle, f paint.Frame) *tea.Cursor {
	s.spin = f.Spin
	cursor := s.draw(area, f)
	s.drag.Draw(f.Screen, f.P)
	return cursor
}

func (s *Screen) draw(area uv.Rectangle, f paint.Frame) *tea.Cursor {
	if s.view.panes.Kind == layout.TooSmall {
		s.tooSmall(area, f)
		return nil
	}
	now, covered := s.cfg.Now(), !f.Focused
	if f.P.Still && !s.past() { // times go on by the minute
		now = now.Truncate(time.Minute)
	}
	f.Now, f.Wait, f.Focused = s.course.clock(now), s.asking.desk.Guard.Wait(s.cfg.Now()), false
	s.title(s.view.panes.Title, f, s.crumbs())
	s.view.tabs(s.view.panes.Tabs, f)
	s.asking.list.Notice, s.asking.list.Auto = nil, s.asking.auto
	if n := s.said(); n.text != "" && !n.ofKey && !s.asking.dialogs.Over(f.Screen) {
		s.asking.list.Notice = paint.Line{f.Span(f.Shorten(n.text, s.view.panes.Of(intent.Actions).Dx()-8), n.token)}
	}
	top := s.asking.dialogs.Top()
	docked, _ := s.asking.dialogs.Docked(f.Screen, s.view.panes.Dock.Dx())
	var cursor *tea.Cursor
	for _, pane := range []struct {
		id   intent.Pane
		draw func(uv.Rectangle, paint.Frame) *tea.Cursor
	}{
		{intent.Terminal, s.agent.pane.Draw},
		{intent.Changes, s.changes.pane.Draw},
		{intent.Network, s.reach.pane.Draw},
		{intent.Actions, s.asking.list.Draw},
	} {
		r := s.view.panes.Of(pane.id)
		if r.Empty() {
			continue
		}
		pf := f
		pf.Number = strconv.Itoa(int(pane.id))
		pf.Focused = pane.id == s.view.focus && (docked == nil || docked != top) && !covered
		pf.Zoomed = pf.Focused && s.view.zoom
		if c := pane.draw(r, pf); c != nil {
			cursor = c
		}
		if c := s.filterBox(r, pane.id, pf); c != nil {
			cursor = c
		}
	}
	s.course.draw(s.view.panes.Transport, f)
	s.heldLine(s.view.panes.Held, f)
	s.tour.draw(uv.Rect(area.Min.X, s.view.rows, area.Dx(), area.Max.Y-s.view.rows), f)
	body := uv.Rect(0, s.view.panes.Title.Max.Y, area.Dx(), s.view.panes.Held.Min.Y-s.view.panes.Title.Max.Y)
	defer s.panel(body, f)
	if docked != nil {
		df := f
		df.Focused = docked == top && !s.panelled() && !covered
		cursor = docked.Draw(s.view.panes.Dock, df)
	}
	if top == nil || docked == top {
		return cursor
	}
	f.Behind(body, themes.Faint)
	f.Focused = !s.panelled() && !covered
	return top.Draw(body, f)
}

func (s *Screen) tooSmall(area uv.Rectangle, f paint.Frame) {
	words := paint.Line{
		f.Span(fmt.Sprintf("stepbox needs %d×%d cells", layout.MinCols, layout.MinRows), themes.Strong),
		f.Span(fmt.Sprintf("this terminal has %d×%d", area.Dx(), area.Dy()), themes.Muted),
	}
	if n := s.Held(); n > 0 {
		words = append(words, f.Span(fmt.Sprintf("◆ %d held", n), themes.Held))
	}
	y := area.Min.Y + max(0, (area.Dy()-len(words))/2)
	for i, w := range words {
		x := area.Min.X + max(0, (area.Dx()-f.Width(w.Text))/2)
		paint.Clip(f.Screen, x, y+i, area.Max.X, w.Text, w.Style)
	}
}

// WindowTitle is what the person's terminal is told to show.
func (s *Screen) WindowTitle() string {
	words := paint.Clean(name(s.present().Session)) + " · stepbox"
	if s.past() {
		words = "replay — " + words
	}
	switch n := s.Held(); {
	case n > 0 && s.caught:
		words = fmt.Sprintf("◆ %d held — %s", n, words)
	case s.Over() && !s.past():
		words = "ended — " + words
	}
	return words
}

// Ended says whether the session that is shown ended while it was.
func (s *Screen) Ended() bool {
	return s.caught && s.Over() && s.cfg.Known.Live()
}

// Waiting is what waits for the person, in a line, and the newest of it; "": nothing does.
func (s *Screen) Waiting() (title, text string) {
	p := s.present()
	switch n := len(p.Questions); {
	case n > 0 && s.caught:
		return fmt.Sprintf("%d held – %s", n, name(p.Session)), p.Questions[n-1].Title
	case s.Ended():
		text = "with nothing to apply"
		if n := p.Session.Unapplied; n > 0 {
			text = paint.Count(n, "changed file", "changed files") + " to apply"
		}
		return "ended – " + name(p.Session), text
	}
	return "", ""
}

// Farewell is what is said after the screen is left.
func (s *Screen) Farewell() string {
	ses := s.present().Session
	if !s.Over() {
		return fmt.Sprintf("Detached from %s; it goes on. stepbox attach %s comes back to it.", paint.Clean(name(ses)), paint.Clean(ses.ID))
	}
	words := fmt.Sprintf("Session %s ended", paint.Clean(name(ses)))
	if ses.Exit != nil {
		words += ": " + cmp.Or(paint.Clean(ses.Exit.Words()), "ended")
	}
	if n := ses.Unapplied; n > 0 {
		words += fmt.Sprintf("; %s in the project: stepbox apply %s writes them there", paint.Count(n, "changed file isn't", "changed files aren't"), paint.Clean(name(ses)))
	}
	return words + "."
}
