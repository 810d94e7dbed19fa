package workbench

import (
	"fmt"
	"slices"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/layout"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

// heldLine is the last line: what is held, and the keys that work now.
func (s *Screen) heldLine(dst uv.Screen, r uv.Rectangle, f paint.Frame) {
	p := f.P
	x, y, end := r.Min.X+1, r.Min.Y, r.Max.X-1
	n := s.said()
	right := s.rightHints()
	switch {
	case n.ofKey:
		right = nil // its words are cut last
	case len(right) > 1 && r.Dx() < 60:
		right = right[:1] // help is always there
	}
	rw := paint.HintsWidth(dst, right)
	stop := end
	if rw > 0 {
		stop = end - rw
		p.Hints(dst, stop, y, end, themes.Text, right)
		stop -= 2
	}
	if s.past() {
		// What is held now stands in the title.
	} else if held := len(s.st.Questions); held > 0 && s.caught {
		words := fmt.Sprintf("◆ %d held", held)
		if q, ok := s.question(); ok && held == 1 {
			words = fmt.Sprintf("◆ %sheld %s", s.short(dst, q), paint.Clock(f.Now.Sub(q.HeldAt)))
		} else if ok {
			at, of := s.st.Place(q.ID)
			words = fmt.Sprintf("◆ %d of %d held", at, of)
		}
		x = paint.Text(dst, x, y, stop, words, p.S(themes.Held)) + 3
	}
	if s.asking.deciding() {
		x = paint.Clip(dst, x, y, stop, "deciding: the next question follows", p.S(themes.Info)) + 3
	}
	if n.text != "" && (n.ofKey || s.asking.dialogs.over(dst) || s.find.in == intent.Actions || s.view.panes.Of(intent.Actions).Empty()) {
		// The place where notices usually are is covered, or isn't shown.
		paint.Clip(dst, x, y, stop, n.text, p.S(n.token))
		return
	}
	p.Hints(dst, x, y, stop, themes.Text, s.hints(dst))
}

// short is what the line calls a question, where its row isn't what has the keys.
func (s *Screen) short(dst uv.Screen, q api.Question) string {
	if q.Apart() && (s.view.focus == intent.Actions || s.view.focus == intent.Network) {
		return ""
	}
	if q.Apart() && s.typing() && s.view.cols < 100 {
		return string(q.Subject) + " " // its row names it, and what answers needs the room
	}
	return paint.Shorten(dst, dialog.Called(q, 0), 34) + " "
}

func (s *Screen) rightHints() []paint.Hint {
	d := s.asking.dialogs.top()
	switch {
	case s.leader:
		return nil
	case d != nil:
		if key := keys.First(intent.Help{}, d.Scope()); key != "" {
			return []paint.Hint{{Key: key, Words: "help"}}
		}
		return nil // it takes text
	case s.typing() && len(s.st.Questions) > 0 && s.view.cols < 100:
		return nil // what answers needs the room
	case s.typing() || s.reading():
		return []paint.Hint{{Key: afterLeader(intent.Help{}), Words: "help"}}
	}
	return []paint.Hint{{Key: keys.First(intent.Help{}, keys.Panes), Words: "help"}, {Key: palette(), Words: "cmd"}}
}

// afterLeader is the key of an intent with the leader that it takes.
func afterLeader(i intent.Intent) string { return keys.LeaderKey() + " " + keys.First(i, keys.Leader) }

// palette is the palette's key: the short one, of those that it has in every pane.
func palette() string {
	for _, b := range keys.In(keys.Panes) {
		if all := b.Keys(); b.Intent == intent.Intent(intent.Palette{}) {
			return keys.Pretty(all[len(all)-1])
		}
	}
	return ""
}

// hints are the keys that work now, those for what is held first.
func (s *Screen) hints(dst uv.Screen) []paint.Hint {
	leader := keys.LeaderKey()
	if s.leader {
		out := []paint.Hint{{Key: leader, Words: "then"}}
		var back []paint.Hint // where there is room for it
		for _, b := range keys.In(keys.Leader) {
			if _, quick := b.Intent.(intent.Quick); quick && s.asking.aimed == (state.Target{}) {
				continue // too soon
			}
			to := &out
			if b.Intent == intent.Intent(intent.Replay{}) {
				to = &back
			}
			if b.Short != "" && s.Why(b.Intent) == "" {
				*to = append(*to, paint.Hint{Key: b.Help().Key, Words: b.Short})
			}
		}
		return append(append(out, paint.Hint{Key: keys.OfPanes(keys.Leader) + " " + keys.First(intent.FocusStep{By: 1}, keys.Leader), Words: "pane"}, paint.Hint{Key: "esc", Words: "nothing"}), back...)
	}
	if d := s.asking.dialogs.top(); d != nil {
		return []paint.Hint{{Key: "esc", Words: d.Leave()}}
	}
	if s.find.in != intent.NoPane {
		return hintsOf(keys.Filtering)
	}
	if s.reading() {
		return hintsOf(keys.CopyMode)
	}
	if s.typing() {
		if len(s.st.Questions) > 0 {
			var out []paint.Hint
			for _, i := range []intent.Quick{{Yes: true}, {}} {
				if t := s.inStrip(); t.Place == "the strip" && s.Why(i) == "" {
					out = append(out, paint.Hint{Key: afterLeader(i), Words: map[bool]string{true: "approve", false: "deny"}[i.Yes]})
				}
			}
			return append(out, []paint.Hint{{Key: afterLeader(intent.FirstHeld{}), Words: "open it"}, {Key: afterLeader(intent.Focus{Pane: intent.Actions}), Words: "actions"}, {Key: afterLeader(intent.Detach{}), Words: "detach"}}...)
		}
		var copies []paint.Hint
		if s.signals.waits != "" {
			copies = []paint.Hint{{Key: afterLeader(intent.FirstHeld{}), Words: "the agent's copy"}}
		}
		return append(copies, []paint.Hint{{Key: leader + " " + keys.OfPanes(keys.Leader), Words: "panes"}, {Key: afterLeader(intent.Zoom{}), Words: "zoom"},
			{Key: afterLeader(intent.Detach{}), Words: "detach"}, {Key: afterLeader(intent.Replay{}), Words: "look back"}}...)
	}
	var out, back, last []paint.Hint // back: what is known of the selected thing's past, where it is wide
	_, held := s.question()
	here := held && s.view.focus == intent.Network
	if s.view.focus != intent.Actions && !here && len(s.st.Questions) > 0 && !s.past() {
		out = append(out, paint.Hint{Key: keys.First(intent.HeldStep{By: 1}, keys.Panes), Words: "go to it"})
	}
	for _, scope := range s.scopes() {
		for _, b := range keys.In(scope) {
			if b.Short == "" || s.Why(b.Intent) != "" {
				continue
			}
			h, ok := s.hint(dst, b)
			if slices.ContainsFunc(slices.Concat(out, last), func(x paint.Hint) bool { return x.Key == h.Key }) {
				continue // a scope further in has the key
			}
			if n := len(out); n > 0 && scope == keys.Replay && out[n-1].Words == b.Short { // back and forth
				out[n-1].Key += " " + h.Key
				continue
			}
			to := &out
			switch b.Intent.(type) {
			case intent.Filter:
				to = &last
			case intent.Related:
				to, ok = &last, ok && s.view.cols >= layout.WideCols
			case intent.Jump, intent.Bisect:
				to, ok = &back, ok && s.view.cols >= layout.WideCols
			}
			if ok {
				*to = append(*to, h)
			}
		}
	}
	if s.view.cols < layout.WideCols {
		out = answersFirst(out)
	}
	if !held {
		back = append(back, last...)
		last = nil
	}
	out = slices.Insert(out, min(len(out), 4), back...) // the first are what is done most
	out = append(out, last...)
	if s.view.focus == intent.Terminal {
		out = append(out, paint.Hint{Key: keys.OfPanes(keys.Panes), Words: "panes"}, paint.Hint{Key: "q", Words: "home"})
	}
	if !s.find.narrowed(s.view.focus) {
		out = append(out, paint.Hint{Key: "esc", Words: "back"})
	}
	if s.live() {
		out = append(out, paint.Hint{Key: keys.First(intent.Replay{}, keys.Panes), Words: "look back"})
	}
	return out
}

// answersFirst has the key that opens a question after those that answer it, where
// there isn't room for all.
func answersFirst(all []paint.Hint) []paint.Hint {
	inspect := slices.IndexFunc(all, func(h paint.Hint) bool { return h.Words == "inspect" })
	deny := slices.IndexFunc(all, func(h paint.Hint) bool { return h.Words == "deny…" })
	if inspect < 0 || deny < inspect+2 { // it can't be allowed from here: to open it is what is next
		return all
	}
	h := all[inspect]
	return slices.Insert(slices.Delete(all, inspect, inspect+1), deny, h)
}

// hintsOf are a scope's keys that have a place in the line.
func hintsOf(scope keys.Scope) (out []paint.Hint) {
	for _, b := range keys.In(scope) {
		if b.Short != "" {
			out = append(out, paint.Hint{Key: b.First(), Words: b.Short})
		}
	}
	return out
}

// hint is what the line says of a key that does something, if it has a place there.
func (s *Screen) hint(dst uv.Screen, b keys.Binding) (h paint.Hint, ok bool) {
	h = paint.Hint{Key: b.First(), Words: b.Short}
	q, held := s.question()
	inActions := s.view.focus == intent.Actions
	answers := inActions || s.view.focus == intent.Network
	switch b.Intent.(type) {
	case intent.Help, intent.Palette:
		return h, false // at the right end
	case intent.HeldStep:
		n := len(s.st.Questions)
		return h, inActions && n > 0 && (!held || n > 1)
	case intent.Approve, intent.Always, intent.StepInto, intent.StepOver:
		h.Off = !s.ready()
		if !held && s.view.focus == intent.Network {
			return h, true
		}
		switch b.Intent.(type) {
		case intent.Approve:
			if q.Apart() {
				h.Words = "allow"
			}
		case intent.Always:
			if p := dialog.Offered(q); p != "" {
				h.Words = "always " + paint.Shorten(dst, p, 24) + "…"
			}
		}
		return h, s.whole(dst, q) // else the row can't show all of it; enter does
	case intent.Deny:
		h.Off = !s.ready()
	case intent.Keep, intent.Rollback:
		h.Off = inActions && !s.ready()
	case intent.Jump, intent.Bisect:
		return h, (!inActions || !held) && !s.empty()
	case intent.Toggle, intent.View, intent.Blame, intent.Looked:
		return h, !s.empty()
	case intent.Open:
		if s.empty() {
			return h, false
		}
		if answers && held {
			h.Words = "inspect"
		} else if inActions {
			h.Words = "details"
		}
	case intent.Related:
		if inActions && b.Intent == intent.Intent(intent.Related{To: intent.Actions}) {
			h.Words = "go to"
		}
		return h, !inActions || !held
	case intent.Hit:
		return h, s.wanted // at the end these are a pane's keys
	case intent.Play:
		if s.course.playing {
			h.Words = "stop"
		}
	case intent.Pause:
		if s.st.Session.State == api.SessionPaused {
			h.Words = "go on"
		}
	}
	return h, true
}

// empty says whether the focused pane lists nothing that keys could be about.
func (s *Screen) empty() bool {
	switch s.view.focus {
	case intent.Actions:
		return s.asking.list.Total() == 0
	case intent.Network:
		return s.reach.pane.Total() == 0
	case intent.Changes:
		path, _, _ := s.changes.pane.Where()
		return path == ""
	}
	return false
}
