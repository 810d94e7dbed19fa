// Package content keeps file contents and stored objects by their BLAKE3 hash,
// small ones whole and large ones as a list of chunks, so that storing one costs
// what changed of it.
//
// Bodies are the session's store. What comes back from it is checked against its
// hash. A Queue and a Hasher belong to one goroutine, a reader to its caller.
package content

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/zeebo/blake3"

	"stepbox/runner/overlay/codec"
)

// Hash is a BLAKE3-256 hash: of a file's content, or of a stored object.
type Hash [32]byte

// String is the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// IsZero says whether h names nothing.
func (h Hash) IsZero() bool { return h == Hash{} }

// Sum is the hash of b.
func Sum(b []byte) Hash { return blake3.Sum256(b) }

// ReadHash reads a hash where it stands in a stored form.
func ReadHash(d *codec.Decoder) (h Hash) {
	copy(h[:], d.Take(len(h)))
	return h
}

// Bodies keeps file contents and manifest objects by hash. It must be safe for
// concurrent use. The hash that it returns must be BLAKE3-256 of the bytes.
type Bodies interface {
	// Put stores what r gives until EOF and returns its hash and length.
	Put(ctx context.Context, r io.Reader) (Hash, int64, error)
	// Open gives a body and its length. The caller closes it.
	Open(ctx context.Context, h Hash) (io.ReadCloser, int64, error)
}

// Batch is what Bodies may offer beside, to store many small bodies at the
// price of one transaction. The slices are only valid during the call.
type Batch interface {
	PutBatch(ctx context.Context, bodies [][]byte) ([]Hash, error)
}

// Finder is what Bodies may offer beside, to leave out bodies that are there.
type Finder interface {
	// Missing returns those of hashes that aren't stored.
	Missing(ctx context.Context, hashes []Hash) ([]Hash, error)
}

// What a batch may hold before it is written.
const (
	batchBytes  = 8 << 20
	batchBodies = 512
)

// Queue collects bodies whose hashes are known and stores them together. It
// isn't safe for concurrent use.
type Queue struct {
	b      Bodies
	hashes []Hash
	bodies [][]byte
	queued map[Hash]bool
	size   int

	Stored      int   // bodies given to b
	StoredBytes int64 // their length
}

// NewQueue stores in b; a nil b stores nothing.
func NewQueue(b Bodies) *Queue { return &Queue{b: b, queued: map[Hash]bool{}} }

// Add takes over body, which must hash to h.
func (q *Queue) Add(ctx context.Context, h Hash, body []byte) error {
	if q.b == nil || q.queued[h] {
		return nil
	}
	q.queued[h] = true
	q.hashes, q.bodies, q.size = append(q.hashes, h), append(q.bodies, body), q.size+len(body)
	if q.size >= batchBytes || len(q.bodies) >= batchBodies {
		return q.Flush(ctx)
	}
	return nil
}

// Flush stores what is queued. After it returned nil everything added so far
// is in Bodies.
func (q *Queue) Flush(ctx context.Context) error {
	if len(q.bodies) == 0 {
		return nil
	}
	hashes, bodies := q.hashes, q.bodies
	q.hashes, q.bodies, q.size = nil, nil, 0
	clear(q.queued)
	if f, ok := q.b.(Finder); ok {
		missing, err := f.Missing(ctx, hashes)
		if err != nil {
			return fmt.Errorf("cannot look for stored bodies: %w", err)
		}
		want := make(map[Hash]bool, len(missing))
		for _, h := range missing {
			want[h] = true
		}
		n := 0
		for i, h := range hashes {
			if want[h] {
				hashes[n], bodies[n] = h, bodies[i]
				n++
			}
		}
		hashes, bodies = hashes[:n], bodies[:n]
		if n == 0 {
			return nil
		}
	}
	for _, b := range bodies {
		q.StoredBytes += int64(len(b))
	}
	q.Stored += len(bodies)
	if p, ok := q.b.(Batch); ok {
		got, err := p.PutBatch(ctx, bodies)
		if err != nil {
			return fmt.Errorf("cannot store %d bodies: %w", len(bodies), err)
		}
		if len(got) != len(hashes) {
			return fmt.Errorf("cannot store %d bodies: %d hashes came back", len(bodies), len(got))
		}
		for i := range got {
			if got[i] != hashes[i] {
				return fmt.Errorf("cannot store body %s: it was stored as %s", hashes[i], got[i])
			}
		}
		return nil
	}
	for i, body := range bodies {
		got, _, err := q.b.Put(ctx, bytes.NewReader(body))
		if err != nil {
			return fmt.Errorf("cannot store body %s: %w", hashes[i], err)
		}
		if got != hashes[i] {
			return fmt.Errorf("cannot store body %s: it was stored as %s", hashes[i], got)
		}
	}
	return nil
}

// ReadBody reads a whole stored object of at most limit bytes and checks its hash.
func ReadBody(ctx context.Context, b Bodies, h Hash, limit int64) ([]byte, error) {
	r, size, err := b.Open(ctx, h)
	if err != nil {
		return nil, fmt.Errorf("cannot open body %s: %w", h, err)
	}
	defer r.Close()
	if size > limit {
		return nil, fmt.Errorf("cannot read body %s: %d bytes are more than the %d allowed", h, size, limit)
	}
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read body %s: %w", h, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("cannot read body %s: more than %d bytes", h, limit)
	}
	if got := Sum(data); got != h {
		return nil, fmt.Errorf("cannot use body %s: its bytes hash to %s", h, got)
	}
	return data, nil
}
