package ledger

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"stepbox/session/api"
	"stepbox/store"
)

// stream tells viewers that there is news. The newest recorded events are kept
// for those who keep up; who fell behind reads them from the store, so that a slow
// viewer misses none and costs nothing. Passing ones are dropped when a viewer
// doesn't keep up, since a newer one says more.
type stream struct {
	mu     sync.Mutex
	subs   map[*subscriber]struct{} // guarded by mu
	newest int64                    // guarded by mu; version of the session's changes
	closed bool                     // guarded by mu
	recent []store.Event            // guarded by mu; committed, without gaps, the newest last
	bytes  int                      // guarded by mu; of their documents
}

// Bounds of what is kept for viewers that keep up.
const (
	recentEvents = 256
	recentBytes  = 1 << 20
)

type subscriber struct {
	wake    chan struct{}  // holds one: there are recorded events, or a newer version
	passing chan api.Event // lossy
	closed  chan struct{}
}

func newStream() stream { return stream{subs: make(map[*subscriber]struct{})} }

func (b *stream) subscribe() *subscriber {
	s := &subscriber{wake: make(chan struct{}, 1), passing: make(chan api.Event, 8), closed: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		close(s.closed)
	} else {
		b.subs[s] = struct{}{}
	}
	return s
}

func (b *stream) unsubscribe(s *subscriber) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.subs, s)
}

// recorded says that events were committed.
func (b *stream) recorded(events []store.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.recent); n > 0 && events[0].Seq != b.recent[n-1].Seq+1 {
		b.recent, b.bytes = nil, 0 // others record too: the terminal's journal
	}
	for _, e := range events {
		b.bytes += len(e.Doc)
	}
	b.recent = append(b.recent, events...)
	for len(b.recent) > recentEvents || len(b.recent) > 0 && b.bytes > recentBytes {
		b.bytes -= len(b.recent[0].Doc)
		b.recent[0].Doc = nil
		b.recent = b.recent[1:]
	}
	b.wake()
}

// since gives the committed events from a sequence number on; false: not all of
// them are kept.
func (b *stream) since(from uint64) ([]store.Event, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.recent) == 0 || from < b.recent[0].Seq {
		return nil, false
	}
	n := min(from-b.recent[0].Seq, uint64(len(b.recent)))
	return slices.Clone(b.recent[n:]), true
}

// Moved says that there is a newer version of the changes. It is a state and no
// event: every subscriber is told the newest one, also when it joins later, and
// needn't hear of those between.
func (b *stream) Moved(version int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.newest = max(b.newest, version)
	b.wake()
}

func (b *stream) version() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.newest
}

// wake is called with mu held.
func (b *stream) wake() {
	for s := range b.subs {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// pass sends an event that isn't recorded.
func (b *stream) pass(e api.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.subs {
		select {
		case s.passing <- e:
		default:
		}
	}
}

// watchers is how many listen.
func (b *stream) watchers() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.subs)
}

func (b *stream) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for s := range b.subs {
		close(s.closed)
		delete(b.subs, s)
	}
}

// Events yields recorded events from a sequence number on, then what happens,
// until the session has ended or ctx is done. Who names kinds of resources gets
// events of these alone.
func (l *Ledger) Events(ctx context.Context, from uint64, kinds ...string) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		sub := l.subscribe()
		defer l.unsubscribe(sub)
		var told int64
		for {
			over := false
			select {
			case <-sub.closed:
				over = true // read once more: the last events were committed before
			default:
			}
			ok := true
			if events, all := l.since(from); all {
				from, ok = pass(events, from, kinds, yield)
			} else {
				from, ok = committed(ctx, l.store, l.session, from, kinds, yield)
			}
			if !ok {
				return
			}
			if v := l.version(); v > told && len(kinds) == 0 {
				told = v
				if !yield(api.Event{At: time.Now().UTC(), Kind: "changes", Changes: &v}, nil) {
					return
				}
			}
			if over {
				return
			}
			select {
			case <-sub.wake:
			case e := <-sub.passing:
				if (len(kinds) == 0 || slices.Contains(kinds, e.Kind)) && !yield(e, nil) {
					return
				}
			case <-sub.closed:
			case <-ctx.Done():
				return
			}
		}
	}
}

// committed yields all committed events from a sequence number on and returns
// the next one, or false when the reader is gone or the store failed.
func committed(ctx context.Context, st *store.Store, id string, from uint64, kinds []string, yield func(api.Event, error) bool) (uint64, bool) {
	const page = 512
	for {
		events, err := st.Events(ctx, id, from, page)
		if err != nil {
			if ctx.Err() == nil {
				yield(api.Event{}, err)
			}
			return from, false
		}
		next, ok := pass(events, from, kinds, yield)
		if from = next; !ok || len(events) < page {
			return from, ok
		}
	}
}

// pass yields events and returns the sequence number after them, or false when
// the reader is gone or one can't be decoded.
func pass(events []store.Event, from uint64, kinds []string, yield func(api.Event, error) bool) (uint64, bool) {
	for _, se := range events {
		from = se.Seq + 1
		if len(kinds) > 0 && !slices.Contains(kinds, string(se.Kind)) {
			continue
		}
		e, ok, err := event(se)
		if err == nil && !ok {
			continue
		}
		if !yield(e, err) || err != nil {
			return from, false
		}
	}
	return from, true
}
