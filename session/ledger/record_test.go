package ledger

import "testing"

// What nobody waits for is committed together with what comes next; what somebody
// waits for takes along what is there and waits for nothing.
func TestGather(t *testing.T) {
	soon, now := entry{unhurried: true}, entry{}
	for name, c := range map[string]struct {
		first  entry
		queued []entry
		want   int
		left   int
	}{
		"alone, and waited for":          {now, nil, 1, 0},
		"alone, and not waited for":      {soon, nil, 1, 0},
		"until somebody waits":           {soon, []entry{soon, now}, 3, 0},
		"with all that is there by then": {now, []entry{soon, soon}, 3, 0},
		"no more than a batch":           {soon, make([]entry, 70), 64, 7},
	} {
		l := &Ledger{queue: make(chan entry, 100)}
		for _, e := range c.queued {
			l.queue <- e
		}
		if got := l.gather(c.first); len(got) != c.want || len(l.queue) != c.left {
			t.Errorf("%s: %d are committed together and %d left, want %d and %d", name, len(got), len(l.queue), c.want, c.left)
		}
	}
}
