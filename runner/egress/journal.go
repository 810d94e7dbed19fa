package egress

import (
	"context"
	"sync"
	"time"
)

const (
	// MaxUnlogged is how many attempts may wait for Log. When it is reached
	// new ones are refused, in the flood count, until Log has caught up.
	MaxUnlogged = 4096

	// Attempts that lead nowhere (denied, failed, swallowed) are logged one
	// by one at this rate after a burst; those beyond are counted together.
	floodRate  = 50 // a second
	floodBurst = 500

	logEvery = time.Second // between two looks at an open attempt's bytes
)

// journal hands snapshots of attempts to Log, in order, from one goroutine.
// An attempt that changes faster than Log takes it is logged in its latest
// state; its last state is always logged.
type journal struct {
	log  func(Attempt)
	fill func(*record) // looks up what isn't known yet about the program

	mu     sync.Mutex
	queue  []*record            // guarded by mu; bounded by MaxUnlogged + the open ones
	open   map[*record]struct{} // guarded by mu; bounded by the flow caps
	flood  *record              // guarded by mu; the current flood count
	tokens float64              // guarded by mu
	filled time.Time            // guarded by mu: when tokens were last added
	wake   chan struct{}        // capacity 1: a token in it means the queue isn't empty
}

func newJournal(log func(Attempt), fill func(*record)) *journal {
	return &journal{
		log: log, fill: fill,
		open:   make(map[*record]struct{}),
		tokens: floodBurst, filled: time.Now(),
		wake: make(chan struct{}, 1),
	}
}

// changed queues a record whose state changed.
func (j *journal) changed(r *record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.push(r)
}

// push needs j.mu.
func (j *journal) push(r *record) {
	if !r.queued {
		r.queued = true
		j.queue = append(j.queue, r)
	}
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// full says whether Log is too far behind for another attempt.
func (j *journal) full() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.queue) >= MaxUnlogged
}

// track adds a record whose bytes are looked at every second until it closes.
func (j *journal) track(r *record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.open[r] = struct{}{}
}

func (j *journal) untrack(r *record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.open, r)
	j.push(r)
}

// spend takes a token of the flood budget.
func (j *journal) spend() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now()
	j.tokens = min(floodBurst, j.tokens+now.Sub(j.filled).Seconds()*floodRate)
	j.filled = now
	if j.tokens < 1 {
		return false
	}
	j.tokens--
	return true
}

// run hands out snapshots until ctx is done, then the rest, and returns.
func (j *journal) run(ctx context.Context) {
	tick := time.NewTicker(logEvery)
	defer tick.Stop()
	for done := false; !done; {
		select {
		case <-ctx.Done():
			done = true
		case <-j.wake:
		case <-tick.C:
			j.sweep()
		}
		for {
			r := j.next(done)
			if r == nil {
				break
			}
			j.fill(r)
			j.log(r.snapshot(time.Now()))
		}
	}
}

// next takes the oldest record off the queue.
func (j *journal) next(final bool) *record {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.flood != nil && (final || time.Since(j.flood.logged) >= logEvery) && !j.flood.queued && j.flood.told != int64(j.flood.count()) {
		j.push(j.flood)
	}
	if len(j.queue) == 0 {
		j.queue = nil
		return nil
	}
	r := j.queue[0]
	j.queue[0] = nil
	j.queue = j.queue[1:]
	r.queued = false
	r.logged = time.Now()
	r.told = r.sent.Load() + r.received.Load()
	if r == j.flood {
		r.told = int64(r.count())
	}
	return r
}

// sweep queues the open records that moved bytes since they were last logged.
func (j *journal) sweep() {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now()
	for r := range j.open {
		if r.sent.Load()+r.received.Load() != r.told && now.Sub(r.logged) >= logEvery {
			j.push(r)
		}
	}
}

func (r *record) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.a.Count
}
