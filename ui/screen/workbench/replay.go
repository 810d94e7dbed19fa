package workbench

import (
	"cmp"
	"context"
	"math"
	"slices"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/dialog"
	"stepbox/ui/find"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/link"
	"stepbox/ui/paint"
)

const isPast = "this is the past: end goes back to now, where it can be done"

// whyReplay says why an intent does nothing while what was is shown, or does nothing
// about that.
func (s *Screen) whyReplay(i intent.Intent) string {
	if s.past() && intent.Acts(i) {
		return isPast
	}
	switch i.(type) {
	case intent.FirstHeld, intent.ToggleAll, intent.Export, intent.Looked:
		if s.past() {
			return isPast
		}
	case intent.Replay, intent.Jump:
		switch {
		case !s.caught:
			return "the session is still being read"
		case s.asking.dialogs.Busy():
			return "close what is open first (esc)"
		case i == intent.Intent(intent.Jump{}) && !s.selects():
			return "select an action, a file or a connection first: this goes to when it began"
		}
	case intent.Present:
		if !s.course.wanted {
			return "this is how it stands now"
		}
	case intent.Hit:
		if len(s.course.hits) == 0 {
			return "nothing was searched for, or found: / searches"
		}
	}
	return ""
}

// moment is where the person is in the session's course: "" is now, or its end.
func (s *Screen) moment() api.Moment {
	if !s.past() {
		return ""
	}
	return api.MomentOf(s.course.seq)
}

// replay carries out the intents that move along the session's course.
func (s *Screen) replay(i intent.Intent) tea.Cmd {
	t := &s.course
	if _, begin := i.(intent.Replay); !t.read && !begin {
		t.later = append(t.later, i)
		return nil
	}
	off, seq := t.here()
	switch i := i.(type) {
	case intent.Replay:
		switch {
		case t.wanted:
		case s.Over(): // there is nothing to look at beside what was
			t.jump("start", 0)
			t.play(true)
		default:
			t.seek(off)
		}
	case intent.Play:
		if !t.wanted { // from the end it begins anew
			t.jump("start", 0)
		}
		t.play(!t.playing)
	case intent.Seek:
		if off += i.By; off >= t.length() && s.Over() {
			s.toPresent()
			return nil
		}
		t.seek(off)
	case intent.ActionStep:
		m, ok := t.beside(i.By, off, seq)
		if printed, any := t.printedBeside(i.By, off); any {
			t.seek(printed)
			return nil
		}
		if !ok && i.By > 0 {
			t.info("no action began after this: end shows how it stands now")
			return nil
		}
		if !ok {
			t.jump("start", 0)
			return nil
		}
		t.toMark(m)
	case intent.FrameStep:
		if !t.wanted {
			t.seek(off)
		}
		t.playing = false
		t.link.Replay().Step(i.By)
	case intent.Speed:
		t.speed = max(0, min(t.speed+i.By, len(speeds)-1))
		if t.playing {
			t.play(true)
		}
	case intent.Beginning:
		t.jump("start", 0)
	case intent.Present:
		s.toPresent()
	case intent.Search:
		s.asking.dialogs.Open(dialog.NewSearch())
	case intent.SearchFor:
		return t.search(i.Text, false)
	case intent.Hit:
		t.toHit(t.hit + i.By)
	case intent.Jump:
		s.find.leave(s.here())
		s.narrow(s.view.focus, find.Filter{}) // when it began it may not have had what was asked for
		return s.toSelected()
	}
	return nil
}

// ReplayFrom shows what was at a moment; without one it plays from the beginning, at
// the nearest speed there is.
func (s *Screen) ReplayFrom(at api.Moment, speed float64) {
	t := &s.course
	for i, v := range speeds {
		if math.Abs(v-speed) < math.Abs(speeds[t.speed]-speed) {
			t.speed = i
		}
	}
	if at != "" {
		t.jump(at, 0)
		return
	}
	t.jump("start", 0)
	t.play(true)
}

// moved takes word of where the replay is.
func (s *Screen) moved(m link.Moved) {
	t := &s.course
	t.made = m.Jumps
	if !t.wanted {
		return // the person went back to the present meanwhile
	}
	if m.Err != nil {
		s.miss(m.Err)
		t.playing = false
		s.warn("the replay can't go on: %s", paint.Failed(m.Err))
	}
	if m.Lost != "" {
		s.warn("%s", m.Lost)
	}
	switch {
	case m.State != nil:
		s.toPast(m)
	case !s.past():
		if t.wanted = m.Err == nil; !t.wanted && s.live() {
			s.view.setFocus(intent.Actions) // what is typed on isn't meant for the agent
		}
		return
	}
	looked := false
	for _, e := range m.Events {
		s.st.Apply(e)
		looked = looked || e.Checkpoint != nil || e.Rollback != nil || e.Apply != nil
	}
	t.seq, t.off = m.Seq, m.Offset
	if m.State != nil || looked {
		s.changes.pane.To = api.MomentOf(m.Seq)
	}
	switch {
	case !m.Ended || t.asked != t.made:
	case s.Over():
		s.toPresent()
	default: // the next key may still be meant for the replay, and must not be the agent's
		t.playing = false
		s.info("nothing more is recorded by now: end, L or esc goes live")
	}
}

// toPast shows how the session stood.
func (s *Screen) toPast(m link.Moved) {
	if !s.past() {
		now := s.st
		s.now = &now
		s.agent.pane.Screen, s.agent.pane.Waiting = &s.link.Replay().Screen, "nothing was on the terminal yet"
	}
	if m.State.Session.ID == "" {
		m.State.Session = s.now.Session
	}
	m.State.Session.Name = s.now.Session.Name // a person may have named it otherwise since
	s.agent.goOn()
	s.asking.list.List.Follow()
	s.st.Become(*m.State)
}

// toPresent shows how the session stands now.
func (s *Screen) toPresent() {
	t := &s.course
	if t.wanted {
		t.play(false)
	}
	t.wanted = false
	if !s.past() {
		return
	}
	s.st.Become(*s.now)
	s.now = nil
	s.agent.pane.Screen, s.agent.pane.Waiting = &s.link.Screen, "no screen was recorded"
	s.agent.goOn()
	s.changes.pane.To = ""
	s.asking.list.List.Follow()
	s.asking.follow(s.view.focus)
	if s.Over() {
		s.info("this is how the session ended")
		return
	}
	s.tell(themes.OK, "● live: this is now")
}

// selects says whether something that began is selected in the focused pane.
func (s *Screen) selects() bool {
	f, _ := s.reach.pane.Selected()
	attempt := len(f.IDs) > 0
	return s.view.focus == intent.Actions && s.asking.list.Selected() != 0 || s.view.focus == intent.Network && attempt ||
		s.view.focus == intent.Changes && s.changes.pane.File() != ""
}

// toSelected goes to when what is selected began.
func (s *Screen) toSelected() tea.Cmd {
	t := &s.course
	switch s.view.focus {
	case intent.Actions:
		n := s.asking.list.Selected()
		if m, ok := t.mark(int64(n), api.MarkAction, api.MarkEdit); ok {
			t.toMark(m)
			return nil
		}
		a, _ := s.st.Action(n)
		t.seek(a.StartedAt.Sub(s.present().Session.StartedAt))
	case intent.Network:
		f, _ := s.reach.pane.Selected()
		if m, ok := t.mark(f.IDs[0], api.MarkAttempt); ok {
			t.toMark(m)
			return nil
		}
		t.seek(f.Last.At.Sub(s.present().Session.StartedAt))
	case intent.Changes:
		return t.changed(s.changes.pane.File())
	}
	return nil
}

// changed goes to when a file first wasn't as the session first saw it any more.
func (t *transport) changed(key string) tea.Cmd {
	return t.long("looking for when it changed", func(ctx context.Context, c link.Client, id string) func() tea.Cmd {
		at, err := c.FirstChange(ctx, id, key)
		return func() tea.Cmd {
			if err != nil {
				t.warn("can't find when it changed: %s", paint.Failed(err))
				return nil
			}
			t.jump(api.MomentOf(at.Seq), at.Offset)
			return nil
		}
	})
}

// maxHits bounds what a search finds.
const maxHits = 500

// search looks for words in the session, and goes to the first place after where
// the person is that has them; not if the person went elsewhere meanwhile, or the session
// was opened at one of them.
func (t *transport) search(words string, opened bool) tea.Cmd {
	asked, wanted := t.asked, t.wanted
	return t.long("searching", func(ctx context.Context, c link.Client, id string) func() tea.Cmd {
		page, err := api.Searched(ctx, c.Find, api.Query{Text: words, Session: id, Hits: maxHits})
		return func() tea.Cmd {
			if err != nil {
				t.warn("can't search: %s", paint.Failed(err))
				return nil
			}
			t.hits, t.more, t.unsearched = nil, false, ""
			for _, n := range page.Notes {
				t.unsearched += "; " + paint.Clean(n)
			}
			for _, f := range page.Found {
				t.hits, t.more = append(t.hits, f.Hits...), t.more || f.More
			}
			t.hits = slices.DeleteFunc(t.hits, func(h api.Hit) bool { return h.Kind == api.HitLabel })
			slices.SortStableFunc(t.hits, func(a, b api.Hit) int { return cmp.Compare(a.Offset, b.Offset) })
			if len(t.hits) == 0 && opened { // what it is called has them
				return nil
			}
			if len(t.hits) == 0 {
				some := "nothing in this session"
				if t.unsearched != "" {
					some = "nothing in what was searched"
				}
				t.info("%s has %q%s", some, words, t.unsearched)
				return nil
			}
			from, _ := t.here()
			at := slices.IndexFunc(t.hits, func(h api.Hit) bool { return h.Offset > from })
			if t.hit = slices.IndexFunc(t.hits, func(h api.Hit) bool { return h.Moment() == t.cfg.At }); opened && t.hit >= 0 {
				t.tellHit()
				return nil
			}
			if opened || t.asked != asked || t.wanted != wanted {
				t.hit = max(at, 0) - 1
				t.info("%q was found: %s goes to the next place%s", words, keys.First(intent.Hit{By: 1}, keys.Replay), t.unsearched)
				return nil
			}
			t.toHit(max(at, 0))
			return nil
		}
	})
}

// toHit goes to a place that was found; beyond the last is the first.
func (t *transport) toHit(n int) {
	of := len(t.hits)
	t.hit = (n%of + of) % of
	t.play(false) // it stays there to be read
	t.jump(t.hits[t.hit].Moment(), t.hits[t.hit].Offset)
	t.tellHit()
}

// tellHit tells which of the places that were found it is.
func (t *transport) tellHit() {
	of, h := len(t.hits), t.hits[t.hit]
	all := paint.Count(of, "place", "places")
	if t.more {
		all = "the first " + all
	}
	if t.unsearched != "" { // said first: a narrow screen cuts the rest
		all += " in a part"
	}
	t.info("%d of %s: %s%s", t.hit+1, all, h.Text, t.unsearched)
}
