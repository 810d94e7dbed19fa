package workbench

import (
	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/state"
)

// Key takes a key press.
func (s *Screen) Key(k tea.KeyPressMsg) tea.Cmd {
	cmd := s.key(k)
	s.guard.Key(s.cfg.Now())
	return tea.Batch(cmd, s.settle())
}

func (s *Screen) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if s.leader {
		s.leader = false
		b, ok := s.cfg.Keys.Find(k, keys.Leader)
		if !ok {
			s.tell(themes.Info, "%s isn't a command after %s", keys.Pretty(name), s.cfg.Keys.Leader)
			return nil
		}
		if _, ok := b.Intent.(intent.Leader); ok {
			return s.toAgent(k)
		}
		return s.handle(b.Intent, s.target(), k.IsRepeat)
	}
	if name == s.cfg.Keys.Leader {
		s.leader = true
		return nil
	}
	if d := s.dialog(); d != nil {
		return s.dialogKey(d, k)
	}
	if s.focus == intent.Terminal && s.live() {
		return s.toAgent(k)
	}
	if b, ok := s.cfg.Keys.Find(k, s.scopes()...); ok {
		return s.handle(b.Intent, s.target(), k.IsRepeat)
	}
	if name == "q" && !s.live() {
		s.leave = intent.Home{}
	}
	return nil
}

func (s *Screen) dialogKey(d dialog.Dialog, k tea.KeyPressMsg) tea.Cmd {
	if b, ok := s.cfg.Keys.Find(k, d.Scope()); ok {
		return s.dialogIntent(d, b.Intent, k.IsRepeat)
	}
	if w, ok := d.(dialog.Writer); ok {
		w.Type(k)
	}
	return nil
}

// scopes is where keys of the focused pane are bound, from the innermost out.
func (s *Screen) scopes() []keys.Scope {
	switch s.focus {
	case intent.Changes:
		return []keys.Scope{keys.Changes, keys.Panes}
	case intent.Network:
		return []keys.Scope{keys.Network, keys.Panes}
	case intent.Actions:
		return []keys.Scope{keys.Actions, keys.Panes}
	}
	return []keys.Scope{keys.Panes}
}

// toAgent sends a key to the agent, through the one queue.
func (s *Screen) toAgent(k tea.KeyPressMsg) tea.Cmd {
	if !s.live() {
		return nil
	}
	if s.link.Screen.Version() == 0 {
		s.tell(themes.Warn, "not sent: the terminal isn't joined yet")
		return nil
	}
	s.terminal.End()
	s.send(s.link.Screen.Key(uv.KeyPressEvent(k)))
	return nil
}

func (s *Screen) send(p []byte) {
	if len(p) > 0 && !s.link.Type(p) {
		why := "the agent isn't reading"
		if s.lostTm != "" {
			why = "the terminal can't be reached"
		}
		s.tell(themes.Warn, "not sent: %s", why)
	}
}

// Paste takes pasted text: it goes to the agent or into a line, and never
// answers anything.
func (s *Screen) Paste(text string) tea.Cmd {
	switch d := s.dialog(); {
	case d != nil:
		if w, ok := d.(dialog.Writer); ok {
			w.Paste(text)
		}
	case s.focus == intent.Terminal && s.live():
		s.terminal.End()
		s.send(s.link.Screen.Paste(text))
	}
	s.guard.Key(s.cfg.Now())
	return s.settle()
}

const tooSoon = "too soon: keys count 0.4 s after it came into view and after any key"

// dialogIntent lets a dialog handle an intent, and carries out what follows.
func (s *Screen) dialogIntent(d dialog.Dialog, i intent.Intent, repeat bool) tea.Cmd {
	if why := d.Why(i); why != "" {
		s.tell(themes.Warn, "%s", why)
		return nil
	}
	if care := d.Care(i); care != state.AtOnce && (repeat || !s.guard.Takes(d.Target(), care, s.cfg.Now())) {
		s.tell(themes.Warn, tooSoon)
		return nil
	}
	switch r := d.Handle(i).(type) {
	case nil:
	case intent.Back:
		s.closeDialog(d)
	case intent.Decide:
		return s.decide(r)
	case intent.AskReason:
		if q, ok := s.st.Question(r.Question); ok && s.st.Print(q.ID) == r.Print {
			s.open(dialog.NewReason(q, r.Print))
		}
	case intent.DoRollback:
		return s.rollback(r, d)
	case intent.DoKill:
		s.closeDialog(d)
		return s.kill(r.Action)
	case intent.Run:
		target := d.Target()
		if s.soon(r.Intent, target, repeat) {
			s.tell(themes.Warn, tooSoon)
			return nil
		}
		s.closeDialog(d)
		return s.handle(r.Intent, target, repeat)
	case intent.HeldStep:
		s.closeDialog(d)
		return s.walk(r.By, true)
	case intent.Help:
		s.open(&dialog.Help{Keys: s.cfg.Keys, Place: []keys.Scope{d.Scope()}, Off: d.Why})
	}
	return nil
}

// handle carries out an intent outside of dialogs, which was meant for a target.
func (s *Screen) handle(i intent.Intent, target state.Target, repeat bool) tea.Cmd {
	if why := s.Why(i); why != "" {
		s.tell(themes.Info, "%s", why)
		return nil
	}
	switch i := i.(type) {
	case intent.Focus:
		s.setFocus(i.Pane)
	case intent.FocusStep:
		s.stepFocus(i.By)
	case intent.FocusTo:
		s.moveFocus(i.DX, i.DY)
	case intent.Zoom:
		s.zoom = !s.zoom
	case intent.SideCycle:
		s.cycleSide()
	case intent.Split:
		s.setSplit(s.splitNow() + i.By)
	case intent.Move, intent.Page, intent.Top, intent.Bottom, intent.Slide, intent.Scope, intent.Fold:
		return s.inPane(i)
	case intent.Scroll:
		_, rows := s.terminal.Size()
		s.terminal.Scroll(i.Back * max(1, rows-1))
	case intent.Open:
		return s.openSelected()
	case intent.Back:
		s.back()
	case intent.Help:
		s.help()
	case intent.Palette:
		s.palette()
	case intent.Facts:
		s.open(dialog.SessionFacts(func() api.Session { return s.st.Session }))
	case intent.Detach, intent.Home, intent.Quit:
		s.leave = i
	case intent.FirstHeld:
		s.openQuestion(s.st.Questions[0])
	case intent.HeldStep:
		if len(s.st.Questions) == 0 {
			s.stepFocus(i.By)
			return nil
		}
		return s.walk(i.By, false)
	case intent.Pause:
		return s.pause()
	case intent.Unavailable:
		s.tell(themes.Info, "%s", i.Why)
	case intent.KillSandbox:
		s.open(dialog.ConfirmKill(0, ""))
	default:
		return s.judge(i, target, repeat)
	}
	return nil
}

// soon says whether it is too soon for an intent that a key had for a target.
func (s *Screen) soon(i intent.Intent, target state.Target, repeat bool) bool {
	now := s.cfg.Now()
	switch i.(type) {
	case intent.Continue, intent.SetMode:
		return repeat || s.guard.Wait(now) > 0
	case intent.KillAction:
	default:
		if !intent.Decides(i) {
			return false
		}
	}
	return repeat || !s.guard.Takes(target, state.Quiet, now)
}

// judge carries out what decides something. Keys count only once what they
// decide has been in view, and the keyboard quiet, long enough.
func (s *Screen) judge(i intent.Intent, target state.Target, repeat bool) tea.Cmd {
	if s.soon(i, target, repeat) {
		s.tell(themes.Warn, tooSoon)
		return nil
	}
	q, held := s.question()
	a, _ := s.st.Action(s.actions.Selected())
	switch i := i.(type) {
	case intent.Continue:
		return s.setMode(api.ModePolicy)
	case intent.SetMode:
		return s.setMode(i.Mode)
	case intent.Approve, intent.StepInto, intent.StepOver:
		if !s.whole(s.ruler(), q) {
			s.openQuestion(q)
			s.tell(themes.Info, "read it whole first: the row can't show all of it")
			return nil
		}
		return s.decide(intent.Decide{Question: q.ID, Hash: q.Hash, Answer: answerFor(i)})
	case intent.Deny:
		s.open(dialog.NewReason(q, s.st.Print(q.ID)))
	case intent.Keep:
		if held {
			if a.Title != q.Title || !s.actions.Whole(s.ruler(), a) {
				s.openQuestion(q)
				return nil
			}
			return s.decide(intent.Decide{Question: q.ID, Hash: q.Hash, Answer: api.AnswerKeep})
		}
		return s.keep(a.N)
	case intent.Rollback:
		if held && q.Subject == api.SubjectEdit {
			s.open(dialog.ConfirmEdit(q, s.st.Print(q.ID)))
			return nil
		}
		n := a.N
		if s.focus == intent.Changes {
			n = s.changes.Action
		}
		return s.plan(n, i.Later)
	case intent.KillAction:
		s.open(dialog.ConfirmKill(a.N, a.Title))
	}
	return nil
}
