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
