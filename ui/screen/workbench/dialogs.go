package workbench

import (
	"slices"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/ui/dialog"
)

// stack is the dialogs that lie over the screen, the uppermost last.
type stack struct {
	all  []dialog.Dialog
	rows int // that those in the dock would have liked to have last
}

// top is the dialog that has the keys, or nil.
func (s *stack) top() dialog.Dialog {
	if n := len(s.all); n > 0 {
		return s.all[n-1]
	}
	return nil
}

// docked is the uppermost dialog that is in the dock, or nil, and how many rows those
// would like to have that are: the place doesn't change while one leads to another.
func (s *stack) docked(dst uv.Screen, cols int) (top dialog.Dialog, rows int) {
	for _, d := range s.all {
		if want := d.Dock(dst, cols); want > 0 {
			top, rows = d, max(rows, want)
		}
	}
	if top != nil {
		s.rows = rows
	}
	return top, rows
}

// undock closes what is in the dock.
func (s *stack) undock(dst uv.Screen) {
	s.all = slices.DeleteFunc(s.all, func(d dialog.Dialog) bool { return d.Dock(dst, 80) > 0 })
}

// over says whether what has the keys lies over the screen.
func (s *stack) over(dst uv.Screen) bool {
	d := s.top()
	return d != nil && d.Dock(dst, 80) == 0
}

// busy says whether something is open that isn't only about keys.
func (s *stack) busy() bool {
	return slices.ContainsFunc(s.all, func(d dialog.Dialog) bool {
		switch d.(type) {
		case *dialog.Help, *dialog.Palette:
			return false
		}
		return true
	})
}

func (s *stack) open(d dialog.Dialog) { s.all = append(s.all, d) }

// below opens a dialog under those that are open.
func (s *stack) below(d dialog.Dialog) { s.all = slices.Insert(s.all, 0, d) }

func (s *stack) close(gone dialog.Dialog) {
	s.all = slices.DeleteFunc(s.all, func(d dialog.Dialog) bool { return d == gone })
}

// closeFor closes the dialogs of a question.
func (s *stack) closeFor(question int64) {
	s.all = slices.DeleteFunc(s.all, func(d dialog.Dialog) bool { return d.Target().Question == question })
}

// shows says whether a question is open in a dialog of its own.
func (s *stack) shows(question int64) bool {
	return slices.ContainsFunc(s.all, func(d dialog.Dialog) bool {
		_, ok := d.(*dialog.Decision)
		return ok && d.Target().Question == question
	})
}

// fail says in the dialogs of a question why it wasn't answered.
func (s *stack) fail(question int64, words string) {
	for _, d := range s.all {
		if d.Target().Question == question {
			d.Fail(words)
		}
	}
}

// sync tells all of them what is known now.
func (s *stack) sync(n dialog.News) {
	for _, d := range s.all {
		d.Sync(n)
	}
}
