package ledger

import "testing"

// The newest version is a state that every viewer hears of, however late it
// joins and however slow it is.
func TestNewestVersionReachesEveryViewer(t *testing.T) {
	b := newStream()
	early := b.subscribe()
	for v := range int64(1000) { // nobody reads meanwhile
		b.Moved(v + 1)
	}
	b.Moved(7) // overtaken on its way
	select {
	case <-early.wake:
	default:
		t.Error("a viewer wasn't woken")
	}
	if v := b.version(); v != 1000 {
		t.Errorf("the newest version is %d, want 1000", v)
	}
}
