package restore

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	"stepbox/runner/overlay/content"
)

var bg = context.Background()

// memory is Bodies in a map, with both of the optional interfaces.
type memory struct {
	mu     sync.Mutex
	bodies map[content.Hash][]byte
	puts   int
	size   int64
}

func newMemory() *memory { return &memory{bodies: map[content.Hash][]byte{}} }

func (m *memory) Put(_ context.Context, r io.Reader) (content.Hash, int64, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return content.Hash{}, 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	h := content.Sum(b)
	m.puts++
	m.size += int64(len(b))
	m.bodies[h] = b
	return h, int64(len(b)), nil
}

func (m *memory) PutBatch(ctx context.Context, bodies [][]byte) ([]content.Hash, error) {
	var hashes []content.Hash
	for _, b := range bodies {
		h, _, err := m.Put(ctx, bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		hashes = append(hashes, h)
	}
	return hashes, nil
}

func (m *memory) Missing(_ context.Context, hashes []content.Hash) (missing []content.Hash, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range hashes {
		if _, ok := m.bodies[h]; !ok {
			missing = append(missing, h)
		}
	}
	return missing, nil
}

func (m *memory) Open(_ context.Context, h content.Hash) (io.ReadCloser, int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.bodies[h]
	if !ok {
		return nil, 0, fmt.Errorf("no body %s: %w", h, os.ErrNotExist)
	}
	return io.NopCloser(bytes.NewReader(b)), int64(len(b)), nil
}
