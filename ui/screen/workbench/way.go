package workbench

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/ui/find"
	"stepbox/ui/intent"
)

// whereabouts are where a person was: what had the focus, and what was selected and listed.
type whereabouts struct {
	focus   intent.Pane
	action  int
	attempt int64
	scope   api.Scope
	file    string
	of      [intent.Actions + 1]find.Filter
	past    bool
	seq     uint64
	off     time.Duration
}

const maxWay = 50

// here is where the person is.
func (s *Screen) here() whereabouts {
	f, _ := s.reach.pane.Selected()
	p := whereabouts{
		focus: s.view.focus, action: s.asking.list.Selected(), scope: s.changes.pane.Scope(), file: s.changes.pane.File(),
		of: s.find.of, past: s.past(), seq: s.course.seq, off: s.course.off,
	}
	if len(f.IDs) > 0 {
		p.attempt = f.IDs[0]
	}
	return p
}

// leave remembers where the person was before something leads elsewhere.
func (n *finding) leave(p whereabouts) {
	n.way = append(n.way, p)
	n.way = n.way[max(0, len(n.way)-maxWay):]
}

// retrace goes back to where the person was last.
func (s *Screen) retrace() {
	n := len(s.find.way)
	p := s.find.way[n-1]
	s.find.way = s.find.way[:n-1]
	switch {
	case p.past && (!s.past() || s.course.seq != p.seq):
		s.course.jump(api.MomentOf(p.seq), p.off)
	case !p.past && s.wanted:
		s.toPresent()
	}
	for _, pane := range []intent.Pane{intent.Changes, intent.Network, intent.Actions} {
		if p.of[pane].String() != s.find.filter(pane).String() {
			s.narrow(pane, p.of[pane])
		}
	}
	s.view.setFocus(p.focus)
	s.asking.auto = false
	s.asking.list.Select(p.action)
	s.reach.pane.Select(p.attempt)
	p.scope.To = ""
	s.changes.show(p.scope)
	s.changes.pane.Select(p.file)
}

// selectedAction is the action that what is selected is of, or 0.
func (s *Screen) selectedAction() int {
	switch s.view.focus {
	case intent.Actions:
		return s.asking.list.Selected()
	case intent.Network:
		if q, ok := s.reach.question(); ok {
			return q.Action
		}
		f, _ := s.reach.pane.Selected()
		return f.Last.Action
	case intent.Changes:
		return s.changes.pane.Action
	}
	return s.course.current()
}

// whyRelated says why nothing belongs to what is selected, or "".
func (s *Screen) whyRelated(i intent.Intent) string {
	to, ok := i.(intent.Related)
	switch {
	case !ok:
		if _, back := i.(intent.Return); back && len(s.find.way) == 0 {
			return "nothing has led elsewhere yet"
		}
		return ""
	case to.To == s.view.focus && to.To != intent.Actions:
		return "that is what is shown here"
	case to.To == intent.Actions && (s.view.focus == intent.Actions || s.changes.pane.File() != "" && s.view.focus == intent.Changes):
		return ""
	case s.selectedAction() != 0:
		return ""
	case s.view.focus == intent.Changes:
		return "these are the changes of many actions: # goes to those that changed this file"
	case s.view.focus == intent.Network:
		if f, any := s.reach.pane.Selected(); any && f.Last.Pid == 0 && f.Question == nil {
			return "it isn't known which action did this"
		}
		return "no action did this: it was the agent itself"
	}
	return noAction
}

// related goes to what belongs to what is selected.
func (s *Screen) related(to intent.Pane) tea.Cmd {
	n := s.selectedAction()
	switch {
	case to == intent.Actions && s.view.focus == intent.Actions:
		s.openFilter("#")
		return nil
	case to == intent.Actions && n != 0:
		return s.toAction(n, s.here())
	}
	s.find.leave(s.here())
	switch to {
	case intent.Changes:
		s.view.setFocus(to)
		s.changes.show(api.Scope{Action: n})
		s.narrow(to, find.Filter{})
		return nil
	case intent.Network:
		s.view.setFocus(to)
		s.narrow(to, find.Number(n))
		return nil
	}
	path := s.changes.pane.Path()
	s.view.setFocus(to)
	s.narrow(to, find.Parse(find.File(path)))
	return nil
}

// toNumber goes to what a number means in a list: an action, or its changes.
func (s *Screen) toNumber(in intent.Pane, n int) tea.Cmd {
	if _, ok := s.st.Action(n); in == intent.Changes && ok {
		s.find.leave(s.find.from)
		s.changes.show(api.Scope{Action: n})
		return nil
	}
	return s.toAction(n, s.find.from)
}

// toAction selects an action in Actions, from where the person was: one that isn't on the screen is read, or while
// what was is shown, gone to in the session's course.
func (s *Screen) toAction(n int, from whereabouts) tea.Cmd {
	s.find.leave(from)
	s.view.setFocus(intent.Actions)
	if s.reveal(n) {
		return nil
	}
	if m, ok := s.course.mark(int64(n), api.MarkAction, api.MarkEdit); ok && s.past() {
		s.course.toMark(m)
		return nil
	}
	if all := s.st.Actions; len(all) > 0 && n > 0 && n < all[0].N {
		if read := s.readEarlier(n); read != nil {
			return read
		}
	}
	s.info("there is no #%d here", n)
	return nil
}

// reveal selects an action that the screen has, whether or not it is listed.
func (s *Screen) reveal(n int) bool {
	list := &s.asking.list
	s.asking.auto = false
	if _, ok := s.st.Action(n); !ok {
		return false
	}
	if list.Select(n) {
		return true
	}
	s.narrow(intent.Actions, find.Filter{})
	if !list.Select(n) {
		list.Fold()
	}
	return list.Select(n)
}
