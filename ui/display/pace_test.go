package display

import (
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
)

// line is a pace at a time.
type line struct {
	pace
	t   *testing.T
	now time.Time
}

func (l *line) after(d time.Duration) *line {
	l.now = l.now.Add(d)
	return l
}

func (l *line) write(n int)        { l.wrote(n, l.now) }
func (l *line) answer()            { l.answered(l.now) }
func (l *line) mustWait(want bool) { l.t.Helper(); l.is("waits", l.waits(l.now), want) }
func (l *line) mustHave(room int)  { l.t.Helper(); l.is("room", l.room, room) }
func (l *line) is(what string, got, want any) {
	l.t.Helper()
	if got != want {
		l.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestPace(t *testing.T) {
	open := func(t *testing.T) *line {
		l := &line{t: t, now: time.Unix(1, 0)}
		l.ask(l.now)
		return l
	}
	answering := func(t *testing.T) *line {
		l := open(t).after(10 * time.Millisecond)
		l.answer()
		return l
	}
	t.Run("a terminal that doesn't answer", func(t *testing.T) {
		l := open(t)
		for range 1000 {
			l.after(time.Second).write(5000)
			l.mustWait(false)
		}
		l.is("questions", len(l.asked), 1)
	})
	t.Run("an answer takes long", func(t *testing.T) {
		l := answering(t)
		l.write(askEach)
		l.is("silent", l.silent(l.now), false)
		l.after(2 * late)
		l.is("silent", l.silent(l.now), true)
		l.answer()
		l.is("silent", l.silent(l.now), false)
	})
	t.Run("much is on its way", func(t *testing.T) {
		l := answering(t)
		l.write(leastAway - 1)
		l.mustWait(false)
		l.write(1)
		l.mustWait(true)
		l.after(time.Second).answer() // to the first one
		l.mustWait(false)
	})
	t.Run("little is asked", func(t *testing.T) {
		l := answering(t)
		for range 10 {
			l.write(askEach / 10)
		}
		l.is("questions", len(l.asked), 0)
		l.write(askEach)
		l.is("questions", len(l.asked), 1)
	})
	t.Run("a line that is fast has more room, and less when it becomes slow", func(t *testing.T) {
		l := answering(t)
		for i := range 20 {
			l.write(1 << 20)
			l.mustWait(true)
			l.after(20 * time.Millisecond).answer()
			l.mustWait(false)
			l.mustHave(min(leastAway<<(i+1), mostAway))
		}
		for i := range 20 {
			l.write(1 << 20)
			l.after(time.Second).answer()
			l.mustHave(max(mostAway>>(i+1), leastAway))
		}
	})
	t.Run("answers that are lost", func(t *testing.T) {
		l := answering(t)
		l.write(leastAway)
		l.after(unheard - 1).mustWait(true)
		l.after(1).mustWait(false)
		l.write(1 << 20)
		l.mustWait(false)
		l.answer() // another terminal, which does
		l.write(leastAway)
		l.mustWait(true)
	})
}

// While much is on its way no frame is drawn, and what the person sees is old; an answer
// goes on with what is then, and is nobody's key.
func TestFramesWaitForTheLine(t *testing.T) {
	v := view(t)
	v.shown()
	if !v.Update(well) {
		t.Fatal("an answer goes on to the interface")
	}
	v.Update(tea.WindowSizeMsg{Width: 100, Height: 80})
	v.pace.written += leastAway
	v.pace.ask(time.Now())
	drawn := v.drawn
	v.change("what is new")
	for v.held.IsZero() {
		v.turn() // until the next frame would be due
	}
	for began := time.Now(); !v.late(); {
		if time.Since(began) > patience {
			t.Fatal("never late")
		}
		<-time.After(time.Millisecond)
	}
	if v.drawn != drawn {
		t.Fatal("a frame was drawn while much is on its way")
	}
	if v.Update(uv.UnknownCsiEvent("\x1b[3n")) {
		t.Error("something else counts as an answer")
	}
	v.Update(well)
	v.Refresh()
	if v.drawn != drawn+1 || !v.late() {
		t.Errorf("%d frames after the answer, late %v", v.drawn-drawn, v.behind)
	}
	v.shown()
}
