package workbench

import (
	"context"
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/dialog"
	"stepbox/ui/find"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/link"
	"stepbox/ui/paint"
	"stepbox/ui/selection"
)

// finding is which rows of each list are shown, the line in which that is said, and the
// way that the person came.
type finding struct {
	*core
	line dialog.Line
	in   intent.Pane // whose line has the keys; NoPane: none has
	from whereabouts // where the person was when it got them
	of   [intent.Actions + 1]find.Filter

	upTo  int64         // the version of the session's changes at which it was read who wrote files
	early bool          // the actions before those that are shown were asked for
	busy  bool          // that is being read
	way   []whereabouts // where the person was, the newest last; at most maxWay
}

// pathsPause is how long typing must have rested before it is looked up who wrote files.
const pathsPause = 200 * time.Millisecond

func (n *finding) filter(p intent.Pane) find.Filter { return n.of[p] }

// narrowed says whether a list has a filter.
func (n *finding) narrowed(p intent.Pane) bool { return n.of[p].Narrows() }

// openFilter gives the keys to the line of the focused list.
func (s *Screen) openFilter(begin string) {
	n := &s.find
	n.in, n.from, n.line = s.view.focus, s.here(), dialog.NewLine(find.Most)
	if begin == "" {
		begin = n.filter(n.in).String()
	}
	n.line.Insert(begin)
}

// filterKey takes a key for the line. None of them decides anything.
func (s *Screen) filterKey(k tea.KeyPressMsg) tea.Cmd {
	b, ok := keys.Find(k, keys.Filtering)
	if !ok {
		s.find.line.Type(k)
		s.typedFilter()
		return nil
	}
	p := s.find.in
	switch b.Intent.(type) {
	case intent.Yes:
		f := find.Parse(s.find.line.Value())
		s.find.in = intent.NoPane
		if action, ok := f.Number(); ok && p != intent.Network {
			return s.toNumber(p, action)
		}
	case intent.Back:
		s.find.in = intent.NoPane
		s.narrow(p, find.Filter{})
	default:
		s.inPane(b.Intent)
	}
	return nil
}

// typedFilter shows what the line asks for by now. The number of an action isn't looked
// for: it is gone to.
func (s *Screen) typedFilter() {
	f := find.Parse(s.find.line.Value())
	n, number := f.Number()
	if !number || s.find.in == intent.Network {
		n = s.find.from.action
	} else {
		f = find.Filter{}
	}
	s.narrow(s.find.in, f)
	if s.find.in == intent.Actions {
		s.asking.list.Near(n)
	}
}

// lookUp reads what the filter of Actions asks for and the screen doesn't know: which
// actions wrote files, and those before the ones that are shown.
func (s *Screen) lookUp() tea.Cmd {
	n := &s.find
	if n.in != intent.NoPane && n.in != s.view.focus {
		n.in = intent.NoPane // the line stays behind where the focus goes
	}
	var early tea.Cmd
	if n.narrowed(intent.Actions) {
		early = s.readEarlier(0)
	}
	paths := n.filter(intent.Actions).Paths()
	lacks := func(p string) bool { _, ok := s.asking.list.Wrote[p]; return !ok }
	if n.busy || len(paths) == 0 || n.upTo == n.present().Changes && !slices.ContainsFunc(paths, lacks) {
		return early
	}
	n.busy = true
	return tea.Batch(early, n.after(pathsPause, s.readWriters))
}

// readWriters reads which actions wrote the files that the filter asks for.
func (s *Screen) readWriters() tea.Cmd {
	n := &s.find
	paths, upTo := n.filter(intent.Actions).Paths(), n.present().Changes
	do := n.do
	if slices.ContainsFunc(paths, func(p string) bool { _, ok := s.asking.list.Wrote[p]; return !ok }) {
		do = func(f request) tea.Cmd { return n.long("looking for who wrote that", f) }
	}
	return do(func(ctx context.Context, c link.Client, id string) func() tea.Cmd {
		wrote, failed := find.Writers(ctx, c.Find, id, paths)
		return func() tea.Cmd {
			if n.busy, s.asking.list.Wrote, n.upTo = false, wrote, upTo; failed != nil {
				n.warn("it can't be told who wrote that: %s", paint.Failed(failed))
			}
			s.asking.list.Filter(n.filter(intent.Actions))
			return nil
		}
	})
}

// readEarlier reads the actions before those that are shown, and goes to one unless it is 0.
func (s *Screen) readEarlier(then int) tea.Cmd {
	if s.find.early && then == 0 || s.past() || !s.caught || len(s.st.Actions) == 0 || s.st.Actions[0].N <= 1 {
		return nil
	}
	s.find.early = true
	return get(s.core, "reading earlier actions", func(ctx context.Context, c link.Client, id string) ([]api.Action, error) {
		return c.Actions(ctx, id)
	}, func(all []api.Action) {
		s.present().Earlier(all)
		if then != 0 {
			s.reveal(then)
		}
	})
}

// filterBox draws a pane's filter over its lower border: the line while it is typed, and
// what is in force after that.
func (s *Screen) filterBox(r uv.Rectangle, p intent.Pane, f paint.Frame) *tea.Cursor {
	x, y, end := r.Min.X+2, r.Max.Y-1, r.Max.X-2
	switch {
	case s.find.in == p && s.view.focus == p:
		x = f.Text(x, y, end, " / ", themes.Key)
		return s.find.line.Draw(f, x, y, end, "words, denied, failed, exit≠0, file:PATH, host:NAME, #12")
	case s.find.narrowed(p):
		if p == intent.Actions { // what is told stands there, too
			end -= f.LineWidth(s.asking.list.Notice) + 3
		}
		words := fmt.Sprintf(" / %s ", paint.Clean(s.find.filter(p).String()))
		f.Text(x, y, end, f.Shorten(words, max(0, end-x)), themes.Info)
	}
	return nil
}

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
		s.info("%s", why)
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
