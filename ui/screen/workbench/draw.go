package workbench

import (
	"fmt"
	"strconv"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/layout"
	"stepbox/ui/paint"
	"stepbox/ui/pane/actions"
)

// Draw draws the screen and returns the cursor.
func (s *Screen) Draw(dst uv.Screen, area uv.Rectangle, p *paint.Palette) *tea.Cursor {
	if s.panes.Kind == layout.TooSmall {
		s.tooSmall(dst, area, p)
		return nil
	}
	now := s.cfg.Now()
	f := paint.Frame{P: p, Now: now, Wait: s.guard.Wait(now), Spin: s.Spin}
	s.title(dst, s.panes.Title, f)
	s.tabs(dst, s.panes.Tabs, f)
	s.actions.Notice, s.actions.Auto = nil, s.auto
	if n := s.said(); n.text != "" {
		s.actions.Notice = paint.Line{{
			Text:  paint.Shorten(dst, n.text, s.panes.Actions.Dx()-8),
			Style: p.S(n.token),
		}}
	}
	var cursor *tea.Cursor
	for _, pane := range []struct {
		id   intent.Pane
		draw func(uv.Screen, uv.Rectangle, paint.Frame) *tea.Cursor
	}{
		{intent.Terminal, s.terminal.Draw},
		{intent.Changes, s.changes.Draw},
		{intent.Network, s.network.Draw},
		{intent.Actions, s.actions.Draw},
	} {
		r := s.panes.Of(pane.id)
		if r.Empty() {
			continue
		}
		pf := f
		pf.Number = strconv.Itoa(int(pane.id))
		pf.Focused = pane.id == s.focus
		if c := pane.draw(dst, r, pf); c != nil {
			cursor = c
		}
	}
	s.heldLine(dst, s.panes.Held, f)
	if len(s.dialogs) == 0 {
		return cursor
	}
	body := uv.Rect(0, s.panes.Title.Max.Y, area.Dx(), s.panes.Held.Min.Y-s.panes.Title.Max.Y)
	paint.Dim(dst, body, p.S(themes.Faint))
	return s.dialog().Draw(dst, body, f)
}

func (s *Screen) tooSmall(dst uv.Screen, area uv.Rectangle, p *paint.Palette) {
	words := []string{
		fmt.Sprintf("stepbox needs %d×%d cells", layout.MinCols, layout.MinRows),
		fmt.Sprintf("this terminal has %d×%d", area.Dx(), area.Dy()),
	}
	if n := len(s.st.Questions); n > 0 {
		words = append(words, fmt.Sprintf("◆ %d held", n))
	}
	y := area.Min.Y + max(0, (area.Dy()-len(words))/2)
	for i, w := range words {
		k := themes.Strong
		if i > 0 {
			k = themes.Muted
		}
		if i == 2 {
			k = themes.Held
		}
		x := area.Min.X + max(0, (area.Dx()-paint.Width(dst, w))/2)
		paint.Clip(dst, x, y+i, area.Max.X, w, p.S(k))
	}
}

// tabs are the panes' names where only one is shown at a time.
func (s *Screen) tabs(dst uv.Screen, r uv.Rectangle, f paint.Frame) {
	s.tabAt = s.tabAt[:0]
	if r.Empty() {
		return
	}
	x := r.Min.X + 1
	for _, pane := range []intent.Pane{intent.Terminal, intent.Changes, intent.Network, intent.Actions} {
		k := themes.Title
		if pane == s.focus {
			k = themes.TitleFocus
		}
		words := fmt.Sprintf("%d %s", pane, pane)
		if pane == s.focus {
			words = "▸" + words
		} else {
			words = " " + words
		}
		n := paint.Text(dst, x, r.Min.Y, r.Max.X, words, f.P.S(k))
		s.tabAt = append(s.tabAt, uv.Rect(x, r.Min.Y, n-x, 1))
		x = n + 2
	}
}

func (s *Screen) clickTab(e tea.Mouse) {
	for i, r := range s.tabAt {
		if uv.Pos(e.X, e.Y).In(r) {
			s.setFocus(intent.Pane(i + 1))
		}
	}
}

// WindowTitle is what the person's terminal is told to show.
func (s *Screen) WindowTitle() string {
	words := paint.Clean(name(s.st.Session)) + " · stepbox"
	switch n := len(s.st.Questions); {
	case n > 0 && s.caught:
		words = fmt.Sprintf("◆ %d held — %s", n, words)
	case s.Over():
		words = "ended — " + words
	}
	return words
}

// Farewell is what is said after the screen is left.
func (s *Screen) Farewell() string {
	ses := s.st.Session
	if s.live() {
		return fmt.Sprintf("Detached from %s; it goes on. stepbox attach %s comes back to it.", paint.Clean(name(ses)), paint.Clean(ses.ID))
	}
	words := fmt.Sprintf("Session %s ended", paint.Clean(name(ses)))
	if ses.Exit != nil {
		words += ": " + actions.ExitWords(ses.Exit)
	}
	return words + "."
}
