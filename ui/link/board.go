package link

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"stepbox/session/api"
)

// Bounds of a Board.
const (
	boardEvents = 256                   // of one session, that wait for the interface
	boardPause  = 50 * time.Millisecond // between two looks at what came
)

// Board follows all live sessions at once, for a list of them: one stream each, with what
// is held, the newest actions and what the session uses.
//
// What comes waits for the interface to take it: 256 events of a session, then its stream
// waits. Of what a session uses the newest alone is kept, and it wakes nobody: it is taken
// with what else comes, or when the interface's clock moves on.
type Board struct {
	client Client
	ctx    context.Context // bounds its goroutines, as a Link's does
	cancel context.CancelFunc
	wg     sync.WaitGroup
	stir   chan struct{}     // 1; something is to be taken
	on     map[string]*sight // of the caller's goroutine
}

// sight is one session that is followed.
type sight struct {
	events chan api.Event // boardEvents
	usage  atomic.Pointer[api.Usage]
	cancel context.CancelFunc
}

// NewBoard makes one that follows nothing yet. The caller closes it.
func NewBoard(ctx context.Context, c Client) *Board {
	ctx, cancel := context.WithCancel(ctx)
	return &Board{client: c, ctx: ctx, cancel: cancel, stir: make(chan struct{}, 1), on: map[string]*sight{}}
}

// Follow follows these sessions, and no others any more.
func (b *Board) Follow(ids []string) {
	keep := make(map[string]bool, len(ids))
	for _, id := range ids {
		keep[id] = true
		if b.on[id] == nil && b.ctx.Err() == nil {
			ctx, cancel := context.WithCancel(b.ctx)
			s := &sight{events: make(chan api.Event, boardEvents), cancel: cancel}
			b.on[id] = s
			b.wg.Go(func() { b.follow(ctx, id, s) })
		}
	}
	for id, s := range b.on {
		if !keep[id] {
			s.cancel()
			delete(b.on, id)
		}
	}
}

// follow reads one session's stream, again and again: whoever lists sessions knows when
// it has ended.
func (b *Board) follow(ctx context.Context, id string, s *sight) {
	var seq uint64
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		for e, err := range b.client.Glance(ctx, id, seq+1) {
			if err != nil {
				break
			}
			if e.Usage != nil {
				s.usage.Store(e.Usage)
				continue
			}
			seq, wait = max(seq, e.Seq), firstWait
			select {
			case s.events <- e:
			case <-ctx.Done():
				return
			}
			select {
			case b.stir <- struct{}{}:
			default: // it is known
			}
		}
		if !Pause(ctx, wait) {
			return
		}
	}
}

// Wait waits until there is something to take; false: the Board was closed. One goroutine
// should be waiting.
func (b *Board) Wait() bool {
	select {
	case <-b.stir:
	case <-b.ctx.Done():
		return false
	}
	return Pause(b.ctx, boardPause) // what comes together is drawn together
}

// Take hands over what came of each session, in order.
func (b *Board) Take(each func(id string, e api.Event)) {
	for id, s := range b.on {
		for range len(s.events) {
			each(id, <-s.events)
		}
		if u := s.usage.Swap(nil); u != nil {
			each(id, api.Event{Kind: "usage", Usage: u})
		}
	}
}

// Close ends it and waits for its goroutines.
func (b *Board) Close() {
	b.cancel()
	b.wg.Wait()
}
