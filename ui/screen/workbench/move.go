package workbench

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/dialog"
	"stepbox/ui/find"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/layout"
	"stepbox/ui/pane/actions"
	"stepbox/ui/pane/network"
)

// back leaves what is innermost: reading, zoom, what was, the pane, a past session.
func (s *Screen) back() {
	switch {
	case s.view.focus == intent.Changes && s.changes.pane.Reading:
		s.changes.pane.Reading = false
		s.view.zoom = false
	case s.find.narrowed(s.view.focus):
		s.narrow(s.view.focus, find.Filter{})
	case s.view.focus == intent.Changes && s.changes.pane.Clear():
	case s.view.focus == intent.Actions && s.asking.list.Clear():
	case s.view.zoom:
		s.view.zoom = false
	case s.wanted:
		s.toPresent()
	case s.view.focus != intent.Terminal:
		s.view.setFocus(intent.Terminal)
	case !s.live():
		s.leave = intent.Home{}
	default:
		s.answerKey(themes.Info, "nothing is open here: "+afterLeader(intent.Detach{})+" leaves")
	}
}

// scope switches Changes between the session and the selected action.
func (s *Screen) scope() {
	s.changes.scope(s.asking.list.Selected(), s.view.focus == intent.Changes)
	if s.view.panes.Kind == layout.Medium {
		s.view.side = intent.Changes
	}
}

// openSelected opens what is selected in the focused pane.
func (s *Screen) openSelected() tea.Cmd {
	switch s.view.focus {
	case intent.Actions:
		if q, ok := s.asking.question(); ok && !s.past() {
			s.asking.open(q)
			return nil
		}
		n := s.asking.list.Selected()
		if n == 0 {
			if s.asking.list.Earlier() {
				return s.readEarlier(s.st.Actions[0].N - 1)
			}
			if s.asking.list.Total() > 0 {
				s.asking.list.Fold()
			}
			return nil
		}
		d := dialog.ActionDetails(n, func() (api.Action, bool) { return s.st.Action(n) }, func() []api.Apply { return s.st.Applies }, describe)
		s.asking.dialogs.Open(d)
		return s.ops.execs(n, d)
	case intent.Network:
		if q, ok := s.question(); ok && !s.past() {
			s.asking.open(q)
			return nil
		}
		f, ok := s.reach.pane.Selected()
		if !ok {
			return nil
		}
		var attempts []api.Attempt
		for _, a := range s.st.Attempts {
			if slices.Contains(f.IDs, a.ID) {
				attempts = append(attempts, a)
			}
		}
		s.asking.dialogs.Open(dialog.AttemptDetails(network.Destination(f.Last), attempts))
	case intent.Changes:
		s.changes.pane.Handle(intent.Open{})
		s.view.zoom = s.changes.pane.Reading
	}
	return nil
}

func (s *Screen) help() {
	place := s.scopes()
	intro := ""
	switch {
	case s.reading():
		place = []keys.Scope{keys.CopyMode}
	case s.typing():
		place = nil
		intro = "The Terminal has the focus: every key but the leader, " + keys.LeaderWords() + ", goes to the agent. stepbox config edit sets another, and other keys."
	}
	place = append(place, keys.Leader)
	s.asking.dialogs.Open(&dialog.Help{Place: place, Intro: intro, Off: s.Why})
}

func (s *Screen) palette() {
	all := s.takes(s.below())
	if !slices.ContainsFunc(all, func(b keys.Binding) bool { return b.Intent == intent.Intent(intent.CopyDiff{}) }) {
		all = append(all, copyDiffCommand()) // it says why there is none
	}
	all = slices.Concat(all, s.signals.offers(), s.ops.offers())
	seen := map[string]bool{}
	places := append(s.scopes(), keys.Lists, keys.Actions, keys.Changes, keys.Leader, keys.Panes)
	if s.typing() { // the ways from there come first
		places = []keys.Scope{keys.Leader, keys.Actions, keys.Changes, keys.Lists, keys.Panes}
	}
	for _, scope := range places {
		for _, b := range keys.In(scope) {
			if b.Name == "" || seen[b.Name] || s.whyAtAll(b.Intent) != "" {
				continue
			}
			seen[b.Name] = true
			b.SetHelp(strings.TrimSpace(s.way(scope)+" "+b.First()), b.Help().Desc)
			all = append(all, b)
		}
	}
	all = append(all, keys.Modes()...)
	s.asking.dialogs.Open(dialog.NewPalette(all, s.Why, s.below))
}

// way is what is pressed from here before a key of a place; "": nothing.
func (s *Screen) way(to keys.Scope) string {
	typing := s.typing()
	switch {
	case to == keys.Leader:
		return keys.LeaderKey()
	case typing && (to == keys.Panes || to == keys.Lists):
		return afterLeader(intent.Focus{Pane: intent.Changes})
	case to == keys.Panes, to == keys.Lists, to == keys.Scope(s.view.focus.String()), to == keys.Replay:
		return ""
	}
	for _, p := range intent.Panes {
		if keys.Scope(p.String()) != to {
			continue
		}
		if typing {
			return afterLeader(intent.Focus{Pane: p})
		}
		return keys.First(intent.Focus{Pane: p}, keys.Panes)
	}
	return ""
}

// describe says an action's state for its details.
func describe(a api.Action) dialog.State {
	glyph, k := actions.Glyph(a)
	return dialog.State{Glyph: glyph, Mark: k, Words: actions.Status(a), Token: actions.StatusToken(a)}
}
