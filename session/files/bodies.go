package files

import (
	"context"
	"io"

	"stepbox/runner/overlay/content"
	"stepbox/store"
)

// Bodies lets the overlay packages keep contents in the store, many of them in
// one transaction.
type Bodies struct{ *store.Store }

// Put is content.Bodies'.
func (b Bodies) Put(ctx context.Context, r io.Reader) (content.Hash, int64, error) {
	h, n, err := b.PutBody(ctx, r)
	return content.Hash(h), n, err
}

// Open is content.Bodies'.
func (b Bodies) Open(ctx context.Context, h content.Hash) (io.ReadCloser, int64, error) {
	return b.OpenBody(ctx, store.Hash(h))
}

// PutBatch is content.Batch's.
func (b Bodies) PutBatch(ctx context.Context, bodies [][]byte) ([]content.Hash, error) {
	stored, err := b.PutBodies(ctx, bodies)
	if err != nil {
		return nil, err
	}
	return hashesAs[content.Hash](stored), nil
}

// Missing is content.Finder's.
func (b Bodies) Missing(ctx context.Context, hashes []content.Hash) ([]content.Hash, error) {
	absent, err := b.HasBodies(ctx, hashesAs[store.Hash](hashes))
	if err != nil {
		return nil, err
	}
	return hashesAs[content.Hash](absent), nil
}

// hashesAs gives hashes another type: the store imports none of ours.
func hashesAs[To, From ~[32]byte](from []From) []To {
	out := make([]To, len(from))
	for i, h := range from {
		out[i] = To(h)
	}
	return out
}
