// Package budget counts what a session has used of what it may use.
//
// A Budget may be used from any goroutine. Bytes are counted without a lock, and what is
// more than may be isn't counted, so that what was taken is never more than what was
// given. What is kept doesn't grow with what is counted.
package budget

import (
	"sync"
	"sync/atomic"
	"time"
)

// Bytes are so many that may be moved. The zero value has none.
type Bytes struct{ given, taken atomic.Int64 }

// Give sets how many there are in all, those included that were taken.
func (b *Bytes) Give(n int64) { b.given.Store(n) }

// Take takes up to n, and says how many.
func (b *Bytes) Take(n int) int {
	for {
		taken := b.taken.Load()
		n := int(min(int64(n), max(0, b.given.Load()-taken)))
		if n == 0 || b.taken.CompareAndSwap(taken, taken+int64(n)) {
			return n
		}
	}
}

// Back gives back what wasn't moved after all.
func (b *Bytes) Back(n int) { b.taken.Add(-int64(n)) }

// slots are in a minute; one more is looked at, so that no minute has more than may be.
const slots = 60

// Rate is how often something may happen in any minute. The zero value is never.
type Rate struct {
	mu    sync.Mutex
	most  int            // guarded by mu
	count [slots + 1]int // guarded by mu: in each of the last seconds
	sum   int            // guarded by mu: of them
	last  int64          // guarded by mu: the second that is the newest
}

// Give sets how often it may happen.
func (r *Rate) Give(most int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.most = most
}

// Again forgets what has happened, so that it may happen as often once more.
func (r *Rate) Again() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count, r.sum = [slots + 1]int{}, 0
}

// Take says how many of n may happen now, and counts them.
func (r *Rate) Take(n int, now time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	second := now.Unix()
	for ; r.last < second; r.last++ {
		if second-r.last > slots {
			r.count, r.sum, r.last = [slots + 1]int{}, 0, second
			break
		}
		next := &r.count[(r.last+1)%(slots+1)]
		r.sum -= *next
		*next = 0
	}
	n = min(n, max(0, r.most-r.sum))
	r.count[r.last%(slots+1)] += n // a clock that was set back counts for the newest second
	r.sum += n
	return n
}

// Back takes back what didn't happen after all.
func (r *Rate) Back(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n = min(n, r.count[r.last%(slots+1)])
	r.count[r.last%(slots+1)] -= n
	r.sum -= n
}
