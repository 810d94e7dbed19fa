package manifest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"go.uber.org/goleak"

	"stepbox/runner/overlay/content"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is Bodies in a map, for one goroutine.
type memory map[content.Hash][]byte

func (m memory) Put(_ context.Context, r io.Reader) (content.Hash, int64, error) {
	b, err := io.ReadAll(r)
	h := content.Sum(b)
	m[h] = b
	return h, int64(len(b)), err
}

func (m memory) Open(_ context.Context, h content.Hash) (io.ReadCloser, int64, error) {
	b, ok := m[h]
	if !ok {
		return nil, 0, errors.New("there is no such body")
	}
	return io.NopCloser(bytes.NewReader(b)), int64(len(b)), nil
}
