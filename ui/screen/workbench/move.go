package workbench

import (
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/layout"
	"stepbox/ui/pane/actions"
	"stepbox/ui/pane/network"
)

func (s *Screen) setFocus(p intent.Pane) {
	if p == intent.NoPane {
		return
	}
	s.focus = p
	if p == intent.Changes || p == intent.Network {
		s.side = p
	}
	s.drag, s.pressed = false, false
}

func (s *Screen) stepFocus(by int) {
	n := int(s.focus) - 1 + by
	s.setFocus(intent.Pane((n%4+4)%4 + 1))
}

// moveFocus focuses the pane in a direction, as they lie on the screen.
func (s *Screen) moveFocus(dx, dy int) {
	from := s.panes.Of(s.focus)
	if from.Empty() {
		return
	}
	at := from.Min.Add(from.Max).Div(2)
	at.X += dx * (from.Dx()/2 + 2)
	at.Y += dy * (from.Dy()/2 + 2)
	if p := s.panes.At(at.X, at.Y); p != intent.NoPane {
		s.setFocus(p)
	}
}

func (s *Screen) cycleSide() {
	next := intent.Changes
	if s.side == intent.Changes {
		next = intent.Network
	}
	s.side = next
	if s.focus == intent.Changes || s.focus == intent.Network {
		s.focus = next
	}
}

func (s *Screen) splitNow() int {
	if s.split != 0 {
		return s.split
	}
	if s.cols > 0 && !s.panes.Terminal.Empty() {
		return s.panes.Terminal.Dx() * 100 / s.cols
	}
	return layout.SplitDefault
}

func (s *Screen) setSplit(percent int) {
	s.split = max(layout.SplitLeast, min(percent, layout.SplitMost))
}

// back leaves what is innermost: reading, zoom, the pane, a past session.
func (s *Screen) back() {
	switch {
	case s.focus == intent.Changes && s.changes.Reading:
		s.changes.Reading = false
		s.zoom = false
	case s.zoom:
		s.zoom = false
	case s.focus != intent.Terminal:
		s.setFocus(intent.Terminal)
	case !s.live():
		s.leave = intent.Home{}
	}
}

// inPane moves in the focused pane.
func (s *Screen) inPane(i intent.Intent) tea.Cmd {
	switch s.focus {
	case intent.Actions:
		return s.inActions(i)
	case intent.Network:
		total := s.network.Total()
		switch i := i.(type) {
		case intent.Move:
			s.network.List.Move(i.By, total)
		case intent.Page:
			s.network.List.Page(i.By, total)
		case intent.Top:
			s.network.List.Select(0)
		case intent.Bottom:
			s.network.List.Follow()
		}
	case intent.Changes:
		switch i := i.(type) {
		case intent.Move:
			s.changes.Move(i.By)
		case intent.Page:
			s.changes.Page(i.By)
		case intent.Top:
			s.changes.Move(-s.changes.Count())
		case intent.Bottom:
			s.changes.End()
		case intent.Slide:
			s.changes.Slide(i.By)
		case intent.Scope:
			return s.scope()
		}
		return s.wantDiff(diffPause)
	}
	return nil
}

func (s *Screen) inActions(i intent.Intent) tea.Cmd {
	total := s.actions.Total()
	s.auto = false
	switch i := i.(type) {
	case intent.Move:
		s.actions.List.Move(i.By, total)
	case intent.Page:
		s.actions.List.Page(i.By, total)
	case intent.Top:
		s.actions.List.Select(0)
	case intent.Bottom:
		s.actions.List.Follow()
	case intent.Fold:
		s.actions.Fold()
	case intent.Scope:
		return s.scope()
	}
	return nil
}

// scope switches Changes between the session and the selected action.
func (s *Screen) scope() tea.Cmd {
	n := s.actions.Selected()
	if s.changes.Action == n || s.focus == intent.Changes && s.changes.Action != 0 {
		n = 0
	}
	s.changes.SetScope(n)
	if s.panes.Kind == layout.Medium {
		s.side = intent.Changes
	}
	s.fetch.failed = false // of the scope that was shown before
	return nil
}

// walk goes to the next held thing, and opens it when opened is set.
func (s *Screen) walk(by int, opened bool) tea.Cmd {
	n := len(s.st.Questions)
	if n == 0 {
		return nil
	}
	at := slices.IndexFunc(s.st.Questions, func(q api.Question) bool { return q.ID == s.cursor })
	if cur, ok := s.question(); ok {
		at = slices.IndexFunc(s.st.Questions, func(q api.Question) bool { return q.ID == cur.ID })
	}
	switch {
	case !opened && s.focus != intent.Actions && at >= 0:
		// Coming from another pane, the selected one is the next one.
	case at < 0:
		at = 0
	default:
		at = ((at+by)%n + n) % n
	}
	q := s.st.Questions[at]
	s.cursor, s.auto = q.ID, false
	s.actions.Select(q.Action)
	if opened {
		s.openQuestion(q)
		return nil
	}
	s.setFocus(intent.Actions)
	return nil
}

func (s *Screen) openQuestion(q api.Question) {
	s.cursor = q.ID
	s.actions.Select(q.Action)
	s.open(dialog.NewDecision(q, s.st.Print(q.ID), s.cfg.Keys))
}

// openSelected opens what is selected in the focused pane.
func (s *Screen) openSelected() tea.Cmd {
	switch s.focus {
	case intent.Actions:
		if q, ok := s.question(); ok {
			s.openQuestion(q)
			return nil
		}
		n := s.actions.Selected()
		if n == 0 {
			if s.actions.Total() > 0 {
				s.actions.Fold()
			}
			return nil
		}
		d := dialog.ActionDetails(n, func() (api.Action, bool) { return s.st.Action(n) }, describe)
		s.open(d)
		return s.execs(n, d)
	case intent.Network:
		f, ok := s.network.Selected()
		if !ok {
			return nil
		}
		var attempts []api.Attempt
		for _, a := range s.st.Attempts {
			if slices.Contains(f.IDs, a.ID) {
				attempts = append(attempts, a)
			}
		}
		s.open(dialog.AttemptDetails(network.Destination(f.Last), attempts))
	case intent.Changes:
		s.changes.Reading = !s.changes.Reading
		s.zoom = s.changes.Reading
	}
	return nil
}

func (s *Screen) help() {
	place := s.scopes()
	intro := ""
	if s.focus == intent.Terminal && s.live() {
		place = nil
		intro = "The Terminal has the focus: every key but the leader goes to the agent."
	}
	place = append(place, keys.Leader)
	s.open(&dialog.Help{Keys: s.cfg.Keys, Place: place, Intro: intro, Off: s.Why})
}

func (s *Screen) palette() {
	var all []keys.Binding
	seen := map[string]bool{}
	for _, scope := range append(s.scopes(), keys.Actions, keys.Changes, keys.Leader, keys.Panes) {
		for _, b := range s.cfg.Keys.In(scope) {
			if b.Name != "" && !seen[b.Name] {
				seen[b.Name] = true
				all = append(all, b)
			}
		}
	}
	all = append(all, keys.Modes()...)
	s.open(dialog.NewPalette(all, s.Why, s.below))
}

// describe says an action's state for its details.
func describe(a api.Action, now time.Time) dialog.State {
	glyph, k := actions.Glyph(a)
	return dialog.State{Glyph: glyph, Mark: k, Words: actions.Status(a, now), Token: actions.StatusToken(a)}
}
