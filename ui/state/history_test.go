package state

import (
	"testing"
	"time"

	"stepbox/session/api"
)

func TestHistory(t *testing.T) {
	var h History
	var s State
	now := time.Now()
	h.Add(&s, now)
	if len(h.Samples) != 0 {
		t.Error("something was used before it was told of")
	}
	use := func(cpu float64, received, sent int64) {
		s.Apply(api.Event{Usage: &api.Usage{CPU: cpu, Memory: 100}})
		s.Apply(api.Event{Attempt: &api.Attempt{ID: 4, Received: received, Sent: sent}})
		now = now.Add(time.Second)
		h.Add(&s, now)
		h.Add(&s, now.Add(time.Millisecond)) // of the same second
	}
	use(0.5, 5000, 100) // before it was looked at
	use(1.5, 8000, 100)
	s.Apply(api.Event{Attempt: &api.Attempt{ID: 5, Received: 1000}})
	use(1, 8000, 400)
	if in, out := h.Rate(); in != (3000+1000)/3 || out != 100 {
		t.Errorf("%d came and %d went a second", in, out)
	}
	if got := h.Peak(Network); got != 3000 {
		t.Errorf("at most %v", got)
	}
	if got := h.Shares(1, CPU); got[0] != 0.5/1.5 || got[1] != 1 {
		t.Errorf("of more than all they are %v", got)
	}
	if got := h.Shares(2, CPU); got[1] != 0.75 {
		t.Errorf("of two processors they are %v", got)
	}
	for range 2 * Seconds {
		use(0.1, 8000, 400)
	}
	if n := len(h.Samples); n != Seconds {
		t.Errorf("%d are kept", n)
	}
	s.Usage = nil // it ended
	if h.Add(&s, now); len(h.Samples) != 0 {
		t.Error("it is used after the end")
	}
}
