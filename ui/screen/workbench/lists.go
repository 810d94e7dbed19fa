package workbench

import (
	"stepbox/themes"
	"stepbox/ui/find"
	"stepbox/ui/intent"
	"stepbox/ui/selection"
)

// lister is a pane that lists something: Actions, Network or Changes.
type lister interface {
	Handle(i intent.Intent) (why string) // moves, or says why it doesn't
	Filter(f find.Filter)                // only what a filter has is listed
	Match(by int)                        // goes to the next or previous row that it has
	Wheel(x, y, by int)                  // scrolls what is at a point
	Text(x, y int) selection.Region      // the text around it
	Empty() bool                         // there is nothing that keys could be about
}

// list is what a pane lists; nil: nothing.
func (s *Screen) list(p intent.Pane) lister {
	switch p {
	case intent.Actions:
		return &s.asking.list
	case intent.Network:
		return &s.reach.pane
	case intent.Changes:
		return &s.changes.pane
	}
	return nil
}

// moving is a list in which the person moves now: what is held doesn't lead its selection any more.
func (s *Screen) moving(p intent.Pane) lister {
	if p == intent.Actions {
		s.asking.auto = false
	}
	return s.list(p)
}

// inPane moves in the focused pane.
func (s *Screen) inPane(i intent.Intent) {
	l := s.moving(s.view.focus)
	if l == nil {
		return
	}
	if _, scope := i.(intent.Scope); scope && s.view.focus != intent.Network {
		s.scope()
	} else if why := l.Handle(i); why != "" {
		s.tell(themes.Info, "%s", why)
	}
}

// narrow shows only the rows of a list that a filter has.
func (s *Screen) narrow(p intent.Pane, f find.Filter) {
	s.find.of[p] = f
	if l := s.moving(p); l != nil {
		l.Filter(f)
	}
}

// match goes to the next or previous row that the filter has.
func (s *Screen) match(by int) {
	if l := s.moving(s.view.focus); l != nil {
		l.Match(by)
	}
}

// empty says whether the focused pane lists nothing that keys could be about.
func (s *Screen) empty() bool {
	l := s.list(s.view.focus)
	return l != nil && l.Empty()
}
