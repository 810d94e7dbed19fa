package workbench

import (
	"cmp"
	"fmt"
	"slices"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/layout"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

func (s *Screen) rightHints() []paint.Hint {
	d := s.asking.dialogs.Top()
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
	switch d := s.asking.dialogs.Top(); {
	case s.leader:
		return s.afterLeaderHints()
	case d != nil:
		return []paint.Hint{{Key: "esc", Words: cmp.Or(d.Leave(), keys.Short(intent.Back{}, d.Scope()))}}
	case s.find.in != intent.NoPane:
		return dialog.Foot(keys.Filtering, nil)
	case s.reading():
		return dialog.Foot(keys.CopyMode, nil)
	case s.typing():
		return s.typingHints()
	}
	return s.paneHints(dst)
}

// afterLeaderHints are what can follow the leader; what there is always room for comes first.
func (s *Screen) afterLeaderHints() []paint.Hint {
	out := []paint.Hint{{Key: keys.LeaderKey(), Words: "then"}}
	var back []paint.Hint
	for _, b := range keys.In(keys.Leader) {
		if _, quick := b.Intent.(intent.Quick); b.Short == "" || quick && s.asking.aimed == (state.Target{}) || s.Why(b.Intent) != "" {
			continue // it has no place here, or is too soon
		}
		h := paint.Hint{Key: b.Help().Key, Words: b.Short}
		if b.Intent == intent.Intent(intent.Replay{}) {
			back = append(back, h)
			continue
		}
		out = append(out, h)
	}
	pane := keys.OfPanes(keys.Leader) + " " + keys.First(intent.FocusStep{By: 1}, keys.Leader)
	return append(append(out, paint.Hint{Key: pane, Words: "pane"}, paint.Hint{Key: "esc", Words: "nothing"}), back...)
}

// typingHints are the ways on from where keys are the agent's.
func (s *Screen) typingHints() (out []paint.Hint) {
	led := func(i intent.Intent, words string) {
		out = append(out, paint.Hint{Key: afterLeader(i), Words: words})
	}
	if len(s.st.Questions) > 0 {
		if q, _ := s.asking.question(); q.Subject != api.SubjectEdit && s.inStrip().Place == "the strip" && s.Why(intent.Quick{}) == "" { // an edit is kept where it is looked at
			led(intent.Quick{Yes: true}, "approve")
			led(intent.Quick{}, "deny")
		}
		led(intent.FirstHeld{}, "open it")
		led(intent.Focus{Pane: intent.Actions}, "actions")
		led(intent.Detach{}, "detach")
		return out
	}
	if s.signals.waits != "" {
		led(intent.FirstHeld{}, "the agent's copy")
	}
	out = append(out, paint.Hint{Key: keys.LeaderKey() + " " + keys.OfPanes(keys.Leader), Words: "panes"})
	led(intent.Zoom{}, "zoom")
	led(intent.Detach{}, "detach")
	led(intent.Replay{}, "look back")
	return out
}

// paneHints are the keys of the focused pane.
func (s *Screen) paneHints(dst uv.Screen) []paint.Hint {
	var out, back, last []paint.Hint // back: what is known of the selected thing's past, where it is wide
	place := map[string]int{}        // the rank of what is in out, by key
	_, held := s.question()
	here := held && s.view.focus == intent.Network
	if s.view.focus != intent.Actions && !here && len(s.st.Questions) > 0 && !s.past() {
		h := paint.Hint{Key: keys.First(intent.HeldStep{By: 1}, keys.Panes), Words: "go to it"}
		out, place[h.Key] = append(out, h), rank(s.view.focus, intent.HeldStep{By: 1})
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
				place[out[n-1].Key] = rank(s.view.focus, b.Intent)
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
				*to, place[h.Key] = append(*to, h), rank(s.view.focus, b.Intent)
			}
		}
	}
	if answers := here || held && s.view.focus == intent.Actions; !answers && !s.wanted {
		slices.SortStableFunc(out, func(a, b paint.Hint) int { return place[a.Key] - place[b.Key] })
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

// mostly are what a person mostly wants next in a pane where nothing is held.
var mostly = map[intent.Pane][]intent.Intent{
	intent.Changes: {intent.Open{}, intent.Apply{}, intent.Toggle{}, intent.TakeOut{}, intent.Scope{}},
	intent.Network: {intent.Open{}, intent.Approve{}, intent.Always{}, intent.Deny{}, intent.TakeOut{}},
	intent.Actions: {intent.Open{}, intent.Keep{}, intent.Rollback{}, intent.TakeOut{}, intent.Apply{}},
}

// rank is where an intent's key stands in a footer, which hasn't room for all: first what
// goes on or back, then what is mostly wanted, then the others.
func rank(p intent.Pane, i intent.Intent) int {
	switch i.(type) {
	case intent.Match, intent.Back, intent.HeldStep:
		return -1
	}
	if at := slices.Index(mostly[p], i); at >= 0 {
		return at
	}
	return len(mostly[p])
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
		h.Off = s.settles(b.Intent) && !s.ready()
		if !held && s.view.focus == intent.Network {
			return h, true
		}
		switch b.Intent.(type) {
		case intent.Approve:
			if q.Apart() && b.Intent == intent.Intent(intent.Approve{}) {
				h.Words = "allow"
			}
		case intent.Always:
			if p := dialog.Offered(q); p != "" {
				h.Words = "always " + paint.Shorten(dst, p, 24) + "…"
			}
		}
		return h, s.whole(dst, q) // else the row can't show all of it; enter does
	case intent.Apply:
		n, scope := len(s.asking.list.Marked()), api.Scope{}
		if s.view.focus == intent.Changes {
			n, scope = s.changes.pane.Selected(), s.changes.pane.Scope()
		}
		switch { // it isn't about the row alone, as other keys are
		case n > 0:
			h.Words = fmt.Sprintf("apply %d…", n)
		case scope.Action != 0:
			h.Words = fmt.Sprintf("apply #%d…", scope.Action)
		case scope.Since == 0:
			h.Words = "apply all…"
		}
	case intent.Keep:
		h.Off = !s.ready()
	case intent.Jump, intent.Bisect:
		return h, (!inActions || !held) && !s.empty()
	case intent.Toggle, intent.View, intent.Blame, intent.Looked, intent.Match, intent.TakeOut:
		return h, s.view.focus != intent.Terminal && !s.empty()
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
