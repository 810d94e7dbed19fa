package network

import (
	"testing"

	"stepbox/runner/egress"
)

// Each byte counts once, however often an attempt is told of.
func TestCarried(t *testing.T) {
	var n Network
	nobody := func(int) int { return 0 }
	for _, at := range []egress.Attempt{
		{ID: 1, Open: true}, {ID: 1, Open: true, Sent: 10}, {ID: 2, Open: true, Received: 5},
		{ID: 1, Open: true, Sent: 30, Received: 7}, {ID: 1, Sent: 31, Received: 7}, {ID: 3, Sent: 100},
	} {
		n.Event(at, nobody)
	}
	if sent, received := n.Carried(); sent != 131 || received != 12 || len(n.carried.open) != 1 {
		t.Errorf("%d bytes out, %d in, %d open", sent, received, len(n.carried.open))
	}
}
