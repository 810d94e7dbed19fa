package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// smallBody is the size up to which a body is kept in the database: there it
// costs a tenth of a file; above, files win.
const smallBody = 16 << 10

// smallBuffers are of smallBody+1 bytes: enough to see that a body isn't small.
var smallBuffers = sync.Pool{New: func() any { b := make([]byte, smallBody+1); return &b }}

// PutBody stores what r gives until EOF and returns its hash and length. What
// is stored already isn't stored again. When it returns, the body survives
// kill -9, and power loss once the kernel has written it out.
func (s *Store) PutBody(ctx context.Context, r io.Reader) (Hash, int64, error) {
	if s.readonly {
		return Hash{}, 0, fmt.Errorf("cannot store a body: %w", ErrReadOnly)
	}
	buf := smallBuffers.Get().(*[]byte)
	defer smallBuffers.Put(buf)
	n, err := io.ReadFull(r, *buf)
	switch {
	case err == nil:
		h, n, err := s.putFile(ctx, io.MultiReader(bytes.NewReader(*buf), r))
		if err != nil {
			return Hash{}, 0, fmt.Errorf("cannot store a body: %w", err)
		}
		return h, n, nil
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return Hash{}, 0, fmt.Errorf("cannot read a body: %w", err)
	}
	// The buffer is free again afterwards: a job that runs is waited for.
	hs, err := s.PutBodies(ctx, [][]byte{(*buf)[:n]})
	if err != nil {
		return Hash{}, 0, err
	}
	return hs[0], int64(n), nil
}

// PutBodies stores many bodies, the small ones in as few transactions as keep
// each short. The hashes are in the order of the bodies. The slices are only
// used during the call.
func (s *Store) PutBodies(ctx context.Context, bodies [][]byte) ([]Hash, error) {
	if s.readonly {
		return nil, fmt.Errorf("cannot store bodies: %w", ErrReadOnly)
	}
	hashes := make([]Hash, len(bodies))
	var small []Hash
	byHash := make(map[Hash][]byte, len(bodies))
	for i, b := range bodies {
		hashes[i] = HashOf(b)
		if _, ok := byHash[hashes[i]]; ok {
			continue
		}
		byHash[hashes[i]] = b
		if len(b) <= smallBody {
			small = append(small, hashes[i])
		} else if _, _, err := s.putFile(ctx, bytes.NewReader(b)); err != nil {
			return nil, fmt.Errorf("cannot store a body: %w", err)
		}
	}
	// Reading doesn't wait for anyone's lock, and most bodies are there.
	missing, err := s.missingRows(ctx, small)
	if err != nil {
		return nil, fmt.Errorf("cannot look for stored bodies: %w", err)
	}
	for len(missing) > 0 {
		n, size := 0, 0
		for n < len(missing) && n < groupJobs && size < groupBytes/2 {
			size += len(byHash[missing[n]]) + 128
			n++
		}
		group := missing[:n]
		err := s.writes.do(ctx, size, func(t *tx) error {
			for _, h := range group {
				b := byHash[h]
				if b == nil {
					b = []byte{} // the empty body isn't NULL
				}
				if err := t.exec(`INSERT OR IGNORE INTO bodies (hash, data) VALUES (?, ?)`, h[:], b); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("cannot store %d bodies: %w", n, err)
		}
		missing = missing[n:]
	}
	return hashes, nil
}

// OpenBody gives a body and its length; ErrNotFound when it isn't stored. The
// reader returns ErrBody in place of EOF, or OpenBody does, when the bytes
// aren't those that were stored: nothing read may be used before EOF was seen.
// The caller closes it.
func (s *Store) OpenBody(ctx context.Context, h Hash) (io.ReadCloser, int64, error) {
	var data []byte
	err := s.reads.QueryRowContext(ctx, `SELECT data FROM bodies WHERE hash = ?`, h[:]).Scan(&data)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return s.openFile(h)
	case err != nil:
		return nil, 0, fmt.Errorf("cannot read body %s: %w", h, s.fault(err))
	case HashOf(data) != h:
		return nil, 0, fmt.Errorf("cannot use body %s from the database: %w", h, ErrBody)
	}
	return io.NopCloser(bytes.NewReader(data)), int64(len(data)), nil
}

// HasBodies returns those of hashes that aren't stored. It doesn't read bodies.
func (s *Store) HasBodies(ctx context.Context, hashes []Hash) (missing []Hash, err error) {
	rest, err := s.missingRows(ctx, hashes)
	if err != nil {
		return nil, fmt.Errorf("cannot look for stored bodies: %w", err)
	}
	for _, h := range rest {
		ok, err := s.hasFile(h)
		if err != nil {
			return nil, fmt.Errorf("cannot look for body %s: %w", h, err)
		}
		if !ok {
			missing = append(missing, h)
		}
	}
	return missing, nil
}

// missingRows returns those of hashes that aren't in the database.
func (s *Store) missingRows(ctx context.Context, hashes []Hash) ([]Hash, error) {
	const at = 128 // per query
	var missing []Hash
	for len(hashes) > 0 {
		part := hashes[:min(at, len(hashes))]
		hashes = hashes[len(part):]
		args := make([]any, len(part))
		for i := range part {
			args[i] = part[i][:]
		}
		found, err := columnOf[[]byte](ctx, s, `SELECT hash FROM bodies WHERE hash IN (?`+strings.Repeat(", ?", len(part)-1)+`)`, args...)
		if err != nil {
			return nil, err
		}
		there := make(map[Hash]bool, len(part))
		for _, b := range found {
			if len(b) == len(Hash{}) {
				there[Hash(b)] = true
			}
		}
		for _, h := range part {
			if !there[h] {
				missing = append(missing, h)
			}
		}
	}
	return missing, nil
}
