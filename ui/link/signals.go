package link

// Signals are what the agent wants told to its person beyond its screen, since they were
// taken last. All of it is its own word.
type Signals struct {
	Bell   bool
	Notes  []Note // the oldest of more than maxNotes
	Copied string // what was to be copied last; "": nothing was
}

// Note is a notification.
type Note struct{ Title, Text string }

// maxNotes bounds those that wait to be taken.
const maxNotes = 4

// Signals takes what came.
func (s *Screen) Signals() Signals {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.signals
	s.signals, s.rung = Signals{}, false
	return out
}

// listen has an emulator tell what it is told. It does while it is fed, when mu is held.
func (s *Screen) listen(e Emulator) Emulator {
	e.OnSignal(
		func() { s.signals.Bell, s.rung = true, true },
		func(title, text string) {
			if s.rung = true; len(s.signals.Notes) < maxNotes {
				s.signals.Notes = append(s.signals.Notes, Note{title, text})
			}
		},
		func(text string) { s.signals.Copied, s.rung = text, true },
	)
	return e
}
