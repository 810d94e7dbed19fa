package link

import "sync"

// Screen is the agent's screen, fed by one goroutine and drawn by another. The
// feeder lets go of the lock between slices, so a frame or a key waits for one
// slice at most.
type Screen struct {
	mu      sync.Mutex
	emu     Emulator // guarded by mu; nil before the first keyframe
	version uint64   // guarded by mu; grows with every slice
	told    bool     // guarded by mu; somebody was told, and hasn't looked yet
}

// news says whether somebody is to be told that the screen moved on: once until
// it is drawn, so that a flood costs nothing while nobody looks.
func (s *Screen) news() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	told := s.told
	s.told = true
	return !told
}

// Seen is With for who draws the screen.
func (s *Screen) Seen(f func(Emulator)) bool {
	return s.With(func(e Emulator) {
		s.told = false
		f(e)
	})
}

// replace puts another emulator in place, and returns the former one for the
// caller to close.
func (s *Screen) replace(e Emulator) Emulator {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.emu
	s.emu = e
	s.version++
	return old
}

// change is With for what makes the screen look different.
func (s *Screen) change(f func(Emulator)) {
	s.With(func(e Emulator) {
		f(e)
		s.version++
	})
}

// With runs f with the emulator, or doesn't when there is none yet. f must not
// keep it.
func (s *Screen) With(f func(Emulator)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.emu == nil {
		return false
	}
	f(s.emu)
	return true
}

// Version grows whenever the screen may look different.
func (s *Screen) Version() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}
