package link

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"stepbox/session/api"
)

// Screen is the agent's screen, fed by one goroutine and drawn by another. The
// feeder lets go of the lock between slices, so a frame or a key waits for one
// slice at most.
type Screen struct {
	mu      sync.Mutex
	emu     Emulator // guarded by mu; nil before the first keyframe
	version uint64   // guarded by mu; grows with every slice
	told    bool     // guarded by mu; somebody was told, and hasn't looked yet
	signals Signals  // guarded by mu; that weren't taken
	rung    bool     // guarded by mu; somebody is to be told of them
	marks   []Mark   // guarded by mu; where actions began, by the emulator's numbers of lines
}

// Mark is the line, or the row, at which an action began.
type Mark struct{ Action, At int }

// mostMarks bounds what is kept of them.
const mostMarks = 2000

// news says whether somebody is to be told that the screen moved on, or of signals: once
// until it is drawn, so that a flood costs nothing while nobody looks.
func (s *Screen) news() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	news := !s.told || s.rung
	s.told, s.rung = true, false
	return news
}

// Seen is With for who draws the screen.
func (s *Screen) Seen(f func(Emulator)) bool {
	return s.With(func(e Emulator) {
		s.told = false
		f(e)
	})
}

// put puts another emulator in place.
func (s *Screen) put(e Emulator) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emu, s.marks = e, nil
	s.version++
}

// change is With for what makes the screen look different.
func (s *Screen) change(f func(Emulator)) {
	s.With(func(e Emulator) {
		f(e)
		s.version++
	})
}

// at sets the screen's clock.
func (s *Screen) at(t time.Duration) { s.change(func(e Emulator) { e.At(t) }) }

// moved says whether it looks otherwise than when it was asked last, drawn being how much
// was drawn then: while a frame is being built, it doesn't.
func (s *Screen) moved(drawn *uint64) (moved bool) {
	s.With(func(e Emulator) {
		now, whole := e.Seen()
		moved = whole || now != *drawn
		*drawn = now
	})
	return moved
}

// feed takes a frame of a terminal's stream, for as long as more says so after each
// slice.
func (s *Screen) feed(f api.Frame, more func() bool) {
	switch f.Kind {
	case api.FrameResize:
		if f.Cols > 0 && f.Rows > 0 {
			s.change(func(e Emulator) { e.Resize(f.Cols, f.Rows) })
		}
	case api.FrameMarks:
		s.With(func(e Emulator) {
			for _, m := range f.Marks() {
				s.marks = append(s.marks, Mark{m.Action, e.Line() - m.Back})
			}
			if over := len(s.marks) - mostMarks; over > 0 {
				s.marks = append(s.marks[:0], s.marks[over:]...)
			}
		})
	case api.FrameKeyframe, api.FrameOutput:
		for b := f.Data; len(b) > 0; {
			n := min(len(b), slice)
			// An emulator takes all bytes; what it can't make sense of it ignores.
			s.change(func(e Emulator) { _, _ = e.Write(b[:n]) })
			if b = b[n:]; !more() {
				return
			}
		}
	}
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

// watch joins the terminal, again and again while the session lives.
func (l *Link) watch() {
	defer l.wg.Done()
	wait := firstWait
	for l.ctx.Err() == nil {
		started := time.Now()
		err := l.view()
		if l.ctx.Err() != nil || l.left(err) || l.ctx.Err() != nil {
			return
		}
		l.again(&wait, time.Since(started) > lastWait, Lost{Link: l, Terminal: true, Err: err})
	}
}

// left says whether there will be no terminal again: it closed, or was refused,
// and the session isn't live, or isn't there.
func (l *Link) left(err error) bool {
	if code := api.CodeOf(err); code != api.CodeNotFound && code != api.CodeNotLive && !errors.Is(err, io.EOF) {
		return false
	}
	s, err := l.client.Session(l.ctx, l.ID)
	if err == nil {
		return !s.Live()
	}
	return api.CodeOf(err) == api.CodeNotFound
}

// view follows one terminal connection to its end.
func (l *Link) view() error {
	conn, err := l.client.Terminal(l.ctx, l.ID)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(l.ctx, func() { conn.Close() })
	defer func() {
		l.input.detach(conn)
		stop()
		conn.Close()
	}()
	first := true
	for {
		f, err := conn.Read()
		if err != nil {
			return err
		}
		if f.Kind == api.FrameKeyframe && f.Cols > 0 && f.Rows > 0 {
			l.Screen.put(l.Screen.listen(l.newEmu(f.Cols, f.Rows)))
		}
		l.Screen.feed(f, func() bool {
			l.dirty()
			return l.ctx.Err() == nil
		})
		l.dirty()
		if first {
			first = false
			l.input.attach(conn)
			if !l.send(Lost{Link: l, Terminal: true}) {
				return nil
			}
		}
	}
}

// dirty tells that the screen moved on, unless that is known.
func (l *Link) dirty() {
	if l.Screen.news() {
		l.send(Drawn{Link: l})
	}
}
