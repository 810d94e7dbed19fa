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
	hashes := make([]content.Hash, len(stored))
	for i, h := range stored {
		hashes[i] = content.Hash(h)
	}
	return hashes, nil
}

// Missing is content.Finder's.
func (b Bodies) Missing(ctx context.Context, hashes []content.Hash) ([]content.Hash, error) {
	named := make([]store.Hash, len(hashes))
	for i, h := range hashes {
		named[i] = store.Hash(h)
	}
	absent, err := b.HasBodies(ctx, named)
	if err != nil {
		return nil, err
	}
	missing := make([]content.Hash, len(absent))
	for i, h := range absent {
		missing[i] = content.Hash(h)
	}
	return missing, nil
}
