package link

import (
	"context"
	"slices"
	"sync"
)

// Bounds of the input queue.
const (
	maxPieces = 4096
	// MaxTyped is how many bytes wait at most: more than anyone pastes on purpose.
	MaxTyped = 16 << 20
	// onePiece is how much is sent at once, so that a connection that is left needn't
	// wait for the rest.
	onePiece = 32 << 10
)

// queue is the one way to the agent's terminal: pieces go out in the order in
// which put took them, written by one goroutine.
type queue struct {
	ready chan struct{} // 1; something is to be written

	mu         sync.Mutex
	conn       Stream   // guarded by mu; nil while there is none
	pieces     [][]byte // guarded by mu
	bytes      int      // guarded by mu
	cols, rows int      // guarded by mu; the size that is wanted
	sized      bool     // guarded by mu; conn knows it
	claimed    bool     // guarded by mu; it is to be told once more
	dropped    bool     // guarded by mu
}

func newQueue() *queue { return &queue{ready: make(chan struct{}, 1)} }

// put takes a piece whole or not at all.
func (q *queue) put(p []byte) bool {
	if len(p) == 0 {
		return true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.conn == nil || q.dropped || len(q.pieces) >= maxPieces || q.bytes+len(p) > MaxTyped {
		return false
	}
	for part := range slices.Chunk(slices.Clone(p), onePiece) {
		q.pieces = append(q.pieces, part)
	}
	q.bytes += len(p)
	q.kick()
	return true
}

func (q *queue) resize(cols, rows int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if cols < 1 || rows < 1 || cols == q.cols && rows == q.rows {
		return
	}
	q.cols, q.rows, q.sized = cols, rows, false
	q.kick()
}

// claim asks for the wanted size once more, which says that somebody is there.
func (q *queue) claim() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.claimed = true
	q.kick()
}

func (q *queue) attach(conn Stream) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.conn, q.sized = conn, false
	q.clear()
	q.kick()
}

// detach forgets a connection and what was still to be written to it.
func (q *queue) detach(conn Stream) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.conn == conn {
		q.conn = nil
		q.clear()
	}
}

// drop refuses everything from now on.
func (q *queue) drop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dropped = true
	q.clear()
}

// clear is called with mu held.
func (q *queue) clear() { q.pieces, q.bytes = nil, 0 }

// kick is called with mu held.
func (q *queue) kick() {
	select {
	case q.ready <- struct{}{}:
	default: // the writer looks at everything when it wakes
	}
}

// next is what to do now: a resize first, else the first piece.
func (q *queue) next() (conn Stream, p []byte, cols, rows int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.conn == nil:
	case !q.sized && q.cols > 0:
		q.sized = true
		return q.conn, nil, q.cols, q.rows
	case q.claimed && q.cols > 0:
		q.claimed = false
		return q.conn, nil, q.cols, q.rows
	case len(q.pieces) > 0:
		p = q.pieces[0]
		q.pieces[0] = nil
		q.pieces = q.pieces[1:]
		q.bytes -= len(p)
		return q.conn, p, 0, 0
	}
	return nil, nil, 0, 0
}

// run writes until ctx is done. A write that fails isn't tried again: the
// reader of the same connection sees the failure too, and joins anew.
func (q *queue) run(ctx context.Context, wg *sync.WaitGroup) {
	defer wg.Done()
	for {
		conn, p, cols, rows := q.next()
		switch {
		case conn == nil:
			select {
			case <-q.ready:
			case <-ctx.Done():
				return
			}
		case p == nil:
			if conn.Resize(cols, rows) != nil {
				q.detach(conn)
			}
		default:
			if conn.Input(p) != nil {
				q.detach(conn)
			}
		}
		if ctx.Err() != nil {
			return
		}
	}
}
