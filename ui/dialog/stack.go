package dialog

import (
	"slices"

	uv "github.com/charmbracelet/ultraviolet"
)

// Stack is the dialogs that lie over a screen, the uppermost last.
type Stack struct {
	Rows int // that those in the dock would have liked to have last
	all  []Dialog
}

// Top is the dialog that has the keys, or nil.
func (s *Stack) Top() Dialog {
	if n := len(s.all); n > 0 {
		return s.all[n-1]
	}
	return nil
}

// Docked is the uppermost dialog that is in the dock, or nil, and how many rows those
// would like to have that are: the place doesn't change while one leads to another.
func (s *Stack) Docked(dst uv.Screen, cols int) (top Dialog, rows int) {
	for _, d := range s.all {
		if want := d.Dock(dst, cols); want > 0 {
			top, rows = d, max(rows, want)
		}
	}
	if top != nil {
		s.Rows = rows
	}
	return top, rows
}

// Undock closes what is in the dock.
func (s *Stack) Undock(dst uv.Screen) {
	s.all = slices.DeleteFunc(s.all, func(d Dialog) bool { return d.Dock(dst, 80) > 0 })
}

// Over says whether what has the keys lies over the screen.
func (s *Stack) Over(dst uv.Screen) bool {
	d := s.Top()
	return d != nil && d.Dock(dst, 80) == 0
}

// Busy says whether something is open that isn't only about keys.
func (s *Stack) Busy() bool {
	return slices.ContainsFunc(s.all, func(d Dialog) bool {
		switch d.(type) {
		case *Help, *Palette:
			return false
		}
		return true
	})
}

// Open opens a dialog over the others.
func (s *Stack) Open(d Dialog) { s.all = append(s.all, d) }

// Below opens a dialog under those that are open.
func (s *Stack) Below(d Dialog) { s.all = slices.Insert(s.all, 0, d) }

func (s *Stack) Close(gone Dialog) {
	s.all = slices.DeleteFunc(s.all, func(d Dialog) bool { return d == gone })
}

// Has says whether a dialog is open.
func (s *Stack) Has(d Dialog) bool { return slices.Contains(s.all, d) }

// CloseFor closes the dialogs of a question.
func (s *Stack) CloseFor(question int64) {
	s.all = slices.DeleteFunc(s.all, func(d Dialog) bool { return d.Target().Question == question })
}

// Shows says whether a question is open in a dialog of its own.
func (s *Stack) Shows(question int64) bool {
	return slices.ContainsFunc(s.all, func(d Dialog) bool {
		_, ok := d.(*Decision)
		return ok && d.Target().Question == question
	})
}

// Fail says in the dialogs of a question why it wasn't answered.
func (s *Stack) Fail(question int64, words string) {
	for _, d := range s.all {
		if d.Target().Question == question {
			d.Fail(words)
		}
	}
}

// Sync tells all of them what is known now.
func (s *Stack) Sync(n News) {
	for _, d := range s.all {
		d.Sync(n)
	}
}
