package session

import (
	"context"
	"testing"

	"stepbox/session/loop"
)

// What nobody waits for any more isn't asked: its question would stay open.
func TestGoneBeforeItIsAsked(t *testing.T) {
	t.Parallel()
	s := &Session{loop: loop.New(ErrEnded)}
	go s.loop.Run()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 { // which is found first is chance
		if err := s.request(gone, request{}); err == nil {
			t.Fatal("a request was granted")
		}
	}
	if err := s.loop.Call(t.Context(), func() {
		if s.asked != 0 {
			t.Errorf("%d are asked", s.asked)
		}
		for _, p := range []loop.Phase{loop.Stopping, loop.Recorded, loop.Closed} {
			s.loop.Enter(p)
		}
	}); err != nil {
		t.Fatal(err)
	}
}
