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

// Draw draws the screen and returns the cursor.
func (s *Screen) Draw(dst uv.Screen, area uv.Rectangle, p *paint.Palette) *tea.Cursor {
	cursor := s.draw(dst, area, p)
	s.drag.Draw(dst, p)
	return cursor
}

func (s *Screen) draw(dst uv.Screen, area uv.Rectangle, p *paint.Palette) *tea.Cursor {
	if s.view.panes.Kind == layout.TooSmall {
		s.tooSmall(dst, area, p)
		return nil
	}
	now := s.cfg.Now()
	if p.Still && !s.past() { // times go on by the minute
		now = now.Truncate(time.Minute)
	}
	f := paint.Frame{P: p, Now: s.course.clock(now), Wait: s.asking.desk.Guard.Wait(s.cfg.Now()), Spin: s.Spin}
	s.title(dst, s.view.panes.Title, f, s.crumbs())
	s.view.tabs(dst, s.view.panes.Tabs, f)
	s.asking.list.Notice, s.asking.list.Auto = nil, s.asking.auto
	if n := s.said(); n.text != "" && !n.ofKey && !s.asking.dialogs.Over(dst) {
		s.asking.list.Notice = paint.Line{{
			Text:  paint.Shorten(dst, n.text, s.view.panes.Of(intent.Actions).Dx()-8),
			Style: p.S(n.token),
		}}
	}
	top := s.asking.dialogs.Top()
	docked, _ := s.asking.dialogs.Docked(dst, s.view.panes.Dock.Dx())
	var cursor *tea.Cursor
	for _, pane := range []struct {
		id   intent.Pane
		draw func(uv.Screen, uv.Rectangle, paint.Frame) *tea.Cursor
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
		pf.Focused = pane.id == s.view.focus && (docked == nil || docked != top) && !s.Covered
		pf.Zoomed = pf.Focused && s.view.zoom
		if c := pane.draw(dst, r, pf); c != nil {
			cursor = c
		}
		if c := s.filterBox(dst, r, pane.id, pf); c != nil {
			cursor = c
		}
	}
	s.course.draw(dst, s.view.panes.Transport, f)
	s.heldLine(dst, s.view.panes.Held, f)
	s.tour.draw(dst, uv.Rect(area.Min.X, s.view.rows, area.Dx(), area.Max.Y-s.view.rows), f)
	body := uv.Rect(0, s.view.panes.Title.Max.Y, area.Dx(), s.view.panes.Held.Min.Y-s.view.panes.Title.Max.Y)
	defer s.panel(dst, body, f)
	if docked != nil {
		df := f
		df.Focused = docked == top && !s.panelled() && !s.Covered
		cursor = docked.Draw(dst, s.view.panes.Dock, df)
	}
	if top == nil || docked == top {
		return cursor
	}
	paint.Behind(dst, body, p.S(themes.Faint))
	f.Focused = !s.panelled() && !s.Covered
	return top.Draw(dst, body, f)
}

func (s *Screen) tooSmall(dst uv.Screen, area uv.Rectangle, p *paint.Palette) {
	words := paint.Line{
		{Text: fmt.Sprintf("stepbox needs %d×%d cells", layout.MinCols, layout.MinRows), Style: p.S(themes.Strong)},
		{Text: fmt.Sprintf("this terminal has %d×%d", area.Dx(), area.Dy()), Style: p.S(themes.Muted)},
	}
	if n := s.Held(); n > 0 {
		words = append(words, paint.Span{Text: fmt.Sprintf("◆ %d held", n), Style: p.S(themes.Held)})
	}
	y := area.Min.Y + max(0, (area.Dy()-len(words))/2)
	for i, w := range words {
		x := area.Min.X + max(0, (area.Dx()-paint.Width(dst, w.Text))/2)
		paint.Clip(dst, x, y+i, area.Max.X, w.Text, w.Style)
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
