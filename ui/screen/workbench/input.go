package workbench

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/dialog"
	"stepbox/ui/find"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/state"
)

func (s *Screen) Key(k tea.KeyPressMsg) tea.Cmd {
	f, name, ours := &s.asking.flow, k.String(), !keys.IsLeader(k) && (s.leader || s.asking.dialogs.Top() != nil || !s.typing())
	s.asking.desk.Presses.Key(name, s.cfg.Now())
	if name != f.dropped { // that one isn't held down any more
		f.dropped, f.first = "", false
	}
	covered := s.panelled()
	cmd := s.key(k)
	if covered { // what the panel lay over is new to the eye
		s.asking.desk.Guard.Restart(s.cfg.Now())
	}
	if ours {
		f.dropped, f.last, f.first = name, s.cfg.Now(), true
	}
	s.asking.typed()
	return tea.Batch(cmd, s.follow())
}

func (s *Screen) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if s.leader {
		s.leader = false
		if keys.IsLeader(k) {
			if s.asking.dialogs.Top() == nil && !s.asking.drops(name) {
				s.agent.key(asLeader(k))
			}
			return nil
		}
		b, ok := keys.Find(k, keys.Leader)
		if !ok {
			s.answerKey(themes.Info, fmt.Sprintf("%s does nothing after %s: %s %s shows what does", keys.Pretty(name), keys.LeaderKey(), keys.LeaderKey(), keys.First(intent.Help{}, keys.Leader)))
			return nil
		}
		if _, nothing := b.Intent.(intent.Back); nothing {
			return nil
		}
		return s.handle(b.Intent, s.target(), k.IsRepeat)
	}
	if s.drag.Some {
		if cmd := s.drag.key(k); !keys.IsLeader(k) {
			s.asking.desk.Presses.Lost()
			return cmd
		} // or what follows the leader would be the agent's
	}
	if keys.IsLeader(k) {
		s.leader, s.ledAt, s.asking.aimed = true, s.cfg.Now(), state.Target{}
		if t := s.inStrip(); s.asking.strip.Takes(t, state.Quiet, s.cfg.Now()) {
			s.asking.aimed = t
		}
		return s.after(panelAfter, func() tea.Cmd { return nil }) // then the panel is drawn
	}
	d := s.asking.dialogs.Top()
	if was := s.asking.flow.dropped; (d == nil && s.typing() || s.asking.followed()) && s.asking.drops(name) {
		switch {
		case d == nil && !s.asking.desk.JustDecided():
			s.answerKey(themes.Info, keys.Pretty(name)+" not sent: it may be held down")
		case d != nil && name != was:
			s.asking.desk.Presses.Lost()
			s.answerKey(themes.Info, keys.Pretty(name)+" went nowhere: it came right after an answer")
		}
		return nil
	}
	if d != nil {
		return s.dialogKey(d, k)
	}
	if s.find.in != intent.NoPane {
		return s.filterKey(k)
	}
	if s.reading() {
		return s.copyKey(k)
	}
	if s.typing() {
		s.agent.key(k)
		return nil
	}
	if b, ok := keys.Find(k, s.scopes()...); ok {
		switch {
		case !s.thaws(b.Intent):
			return s.handle(b.Intent, s.target(), k.IsRepeat)
		case k.IsRepeat || s.asking.desk.Presses.Soon() || s.asking.desk.Guard.Wait(s.cfg.Now()) > 0: // it is held down, or of what is typed
			s.answerKey(themes.Warn, dialog.TooSoon)
			return nil
		}
		return s.rules.once(func() tea.Cmd { return s.handle(b.Intent, s.target(), false) })
	}
	if name == "q" && !s.types() {
		s.leave = intent.Home{}
		return nil
	}
	s.asking.desk.Presses.Lost()
	s.answerKey(themes.Info, keys.Astray(k, s.whyAtAll, nil, s.scopes()...))
	return nil
}

// typing says whether the keys of the focused pane are the agent's; dialogs have theirs first.
func (s *Screen) typing() bool {
	return s.view.focus == intent.Terminal && s.types() && s.agent.pane.Copy == nil
}

// asLeader is the leader as the agent is to have it, however it was pressed.
func asLeader(k tea.KeyPressMsg) tea.KeyPressMsg {
	if c, ok := strings.CutPrefix(keys.LeaderKey(), "ctrl+"); ok && len(c) == 1 && k.String() != keys.LeaderKey() {
		return tea.KeyPressMsg{Code: rune(c[0]), Mod: tea.ModCtrl}
	}
	return k
}

func (s *Screen) dialogKey(d dialog.Dialog, k tea.KeyPressMsg) tea.Cmd {
	if b, ok := keys.Find(k, d.Scope()); ok {
		return s.dialogIntent(d, b.Intent, k.IsRepeat)
	}
	if w, ok := d.(dialog.Writer); ok && keys.Typed(d.Scope()) {
		w.Type(k)
		return nil
	}
	s.asking.desk.Presses.Lost()
	s.answerKey(themes.Info, keys.Astray(k, d.Why, d.Says, d.Scope()))
	return nil
}

// scopes is where keys of the focused pane are bound, from the innermost out. What
// moves along the session's course comes first while what was is shown, but for what
// finds something in a list; at the end of a past session what is done with its work does.
func (s *Screen) scopes() []keys.Scope {
	var out []keys.Scope
	list := s.view.focus != intent.Terminal
	if list && s.find.narrowed(s.view.focus) {
		out = append(out, keys.Filtered)
	}
	switch pane := keys.Scope(s.view.focus.String()); {
	case list && s.wanted:
		out = append(out, keys.Lists, keys.Replay, pane)
	case list:
		out = append(out, pane, keys.Lists)
	case s.wanted:
		out = append(out, keys.Replay)
	}
	out = append(out, keys.Panes)
	if !s.wanted && s.Over() {
		out = append(out, keys.Replay)
	}
	return out
}

// Paste takes pasted text: it goes to the agent or into a line, and never
// answers anything.
func (s *Screen) Paste(text string) tea.Cmd {
	s.leader = false
	switch d := s.asking.dialogs.Top(); {
	case d != nil:
		if w, ok := d.(dialog.Writer); ok {
			w.Paste(text)
		}
	case s.reading():
		if c := s.agent.pane.Copy; c.Asking() {
			c.Paste(text)
		}
	case s.typing() && s.asking.desk.JustDecided():
		s.warn("not pasted: something was decided just before")
	case s.find.in != intent.NoPane:
		s.find.line.Insert(text)
		s.typedFilter()
	case s.typing():
		s.agent.paste(text)
	}
	s.asking.typed()
	return s.follow()
}

// dialogIntent lets a dialog handle an intent.
func (s *Screen) dialogIntent(d dialog.Dialog, i intent.Intent, repeat bool) tea.Cmd {
	if _, help := i.(intent.Help); help {
		if _, shown := d.(*dialog.Help); shown {
			s.asking.dialogs.Close(d)
		} else {
			s.asking.dialogs.Open(&dialog.Help{Place: []keys.Scope{d.Scope()}, Off: d.Why})
		}
		return nil
	}
	care := d.Care(i)
	if intent.Decides(i) && s.blind() {
		care = state.Quiet
	}
	if why := s.asking.desk.Soon(d.Target(), care, repeat); why != "" {
		s.refuse(i, themes.Warn, why)
		return nil
	}
	if why := d.Why(i); why != "" {
		s.refuse(i, themes.Warn, why)
		return nil
	}
	if s.notice.ofKey {
		s.notice = notice{} // it was about the key before
	}
	after := d.Handle(i)
	switch after.(type) {
	case nil, intent.AskReason, intent.AskRule, intent.AskBack:
	default:
		if care != state.AtOnce {
			s.asking.desk.Decided = s.cfg.Now()
		}
	}
	return s.fromDialog(d, after, repeat)
}

// refuse says why a key did nothing.
func (s *Screen) refuse(i intent.Intent, token themes.Token, why string) {
	s.asking.desk.Lose(i)
	s.answerKey(token, why)
}

// fromDialog carries out what followed from a key in a dialog.
func (s *Screen) fromDialog(d dialog.Dialog, i intent.Intent, repeat bool) tea.Cmd {
	switch r := i.(type) {
	case nil:
	case intent.Back:
		if _, ok := d.(*dialog.Bisect); ok {
			s.ops.stopBisect()
		}
		s.signals.left(d)
		if asks, ok := d.(*dialog.Decision); ok {
			s.asking.flow.left = asks.Target().Question
		}
		s.asking.dialogs.Close(d)
	case intent.Decide, intent.AskReason, intent.AskBack, intent.AskRule:
		return s.answer(r)
	case intent.MakeRule:
		return s.rules.make(r.Rule, d)
	case intent.DropRule:
		return s.rules.once(func() tea.Cmd { return s.rules.take(r.Rule, d) })
	case intent.ExportTo, intent.SaveAs:
		return s.asking.desk.Once(d, func() tea.Cmd { return s.ops.follow(d, r) })
	case intent.SearchFor:
		s.asking.dialogs.Close(d)
		return s.replay(r)
	case intent.GoTo:
		s.asking.dialogs.Close(d)
		return s.toChanges(r.Action)
	case intent.TakeOut:
		return s.takeOut(r, d.Target())
	case intent.Read:
		return s.cfg.Open(s.link.ID, Reading{Patch: &api.PatchRequest{Scope: api.Scope{Action: d.(*dialog.Details).Action}}})
	case intent.DoResume:
		s.leave = intent.Resume{}
	case intent.DoFork:
		s.leave = intent.Fork{At: s.moment()}
	case intent.DoCopies:
		s.asking.dialogs.Close(d)
		return s.signals.allow(r.Text)
	case intent.Run:
		target := d.Target()
		if why := s.soon(r.Intent, target, repeat); why != "" {
			s.refuse(r.Intent, themes.Warn, why)
			return nil
		}
		s.asking.dialogs.Close(d)
		if _, sums := d.(*dialog.Ended); sums { // what it counted is to be seen
			s.find.in = intent.NoPane
			s.narrow(intent.Actions, find.Filter{})
			s.narrow(intent.Changes, find.Filter{})
		}
		if q, held := s.question(); held && intent.Decides(r.Intent) {
			s.asking.open(q) // it may have come, or changed, behind what was open
			s.asking.desk.Lose(r.Intent)
			return nil
		}
		return s.handle(r.Intent, target, repeat)
	case intent.HeldStep:
		s.asking.dialogs.Close(d)
		s.asking.walk(r.By, true, s.view.focus)
	default:
		return s.ops.follow(d, r)
	}
	return nil
}
