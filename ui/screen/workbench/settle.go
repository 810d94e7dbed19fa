package workbench

import (
	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/layout"
	"stepbox/ui/state"
)

// settle is called at the end of every update: it brings dialogs, the guard and
// the agent's terminal in line with what will be drawn next.
func (s *Screen) settle() tea.Cmd {
	s.panes = layout.Workbench(layout.Wish{
		Cols: s.cols, Rows: s.rows, Focus: s.focus, Zoom: s.zoom, Side: s.side, Split: s.split,
	})
	s.terminal.ReadOnly = !s.live()
	for _, d := range s.dialogs {
		d.Sync(dialog.News{State: &s.st, Pending: s.pending, Closed: s.whyClosed})
	}
	now := s.cfg.Now()
	target := s.target()
	s.guard.Shown(target, now)
	if r := s.panes.Terminal.Inset(1); !r.Empty() && s.live() {
		if size := [2]int{r.Dx(), r.Dy()}; size != s.size {
			s.size = size
			s.link.Resize(size[0], size[1])
		}
	}
	if wait := s.guard.Wait(now); wait > 0 && target != (state.Target{}) && !s.wake {
		s.wake = true
		return tea.Batch(s.catchUp(), s.after(wait, func(s *Screen) tea.Cmd {
			s.wake = false
			return nil
		}))
	}
	return s.catchUp()
}

// target is what keys would decide now.
func (s *Screen) target() state.Target {
	if d := s.dialog(); d != nil {
		return d.Target()
	}
	return s.below()
}

// below is what keys would decide if there were no dialog.
func (s *Screen) below() state.Target {
	switch s.focus {
	case intent.Changes:
		return state.Target{Question: int64(s.changes.Action), Place: "changes"}
	case intent.Actions:
	default:
		return state.Target{}
	}
	if q, ok := s.question(); ok {
		a, _ := s.st.Action(q.Action)
		return state.Target{Question: q.ID, Hash: s.st.Print(q.ID) + a.Title, Place: "strip"}
	}
	return state.Target{Question: int64(s.actions.Selected()), Place: "action"}
}

// question is the open question of the selected action.
func (s *Screen) question() (api.Question, bool) {
	n := s.actions.Selected()
	if n == 0 {
		return api.Question{}, false
	}
	if q, ok := s.st.Question(s.cursor); ok && q.Action == n {
		return q, true
	}
	return s.st.QuestionOf(n)
}

func (s *Screen) dialog() dialog.Dialog {
	if n := len(s.dialogs); n > 0 {
		return s.dialogs[n-1]
	}
	return nil
}

func (s *Screen) open(d dialog.Dialog) { s.dialogs = append(s.dialogs, d) }

func (s *Screen) whyClosed(id int64) string {
	switch {
	case s.Over():
		return "the session has ended"
	case s.st.WasAnswered(id):
		return "it was answered elsewhere, or what asked went away"
	}
	return "it is no longer held"
}

// whole says whether the strip shows all that a decision on the question covers.
func (s *Screen) whole(dst uv.Screen, q api.Question) bool {
	a, ok := s.st.Action(q.Action)
	return ok && dialog.Plain(q) && a.Title == q.Title && s.actions.Whole(dst, a)
}

// ruler is a screen to measure text with when none is being drawn.
func (s *Screen) ruler() uv.Screen {
	b := uv.NewScreenBuffer(0, 0)
	b.Method = s.cfg.Method()
	return b
}
