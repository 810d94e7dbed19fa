package session

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"stepbox/runner/overlay"
	"stepbox/session/api"
	"stepbox/store"
)

// maxListed bounds the changes that a question or a plan lists; what is beyond
// is counted.
const maxListed = 5000

// files knows the state of a session's files: the upper of a live session, or
// the manifests that a recorded one left. Safe for concurrent use.
type files struct {
	store   *store.Store
	session string
	folder  string // the project folder on the host
	lower   *overlay.Lower
	scanner *overlay.Scanner // nil for a recorded session
	version atomic.Int64

	scanning sync.Mutex // one scan at a time; held across the scan, which is its purpose

	mu       sync.Mutex
	current  *overlay.Manifest           // guarded by mu; the last scan's
	seen     map[int64]*overlay.Manifest // guarded by mu; checkpoints by number
	compared []*comparison               // guarded by mu; the last few, newest first
	counts   lineCounts
}

// bodies lets the overlay package keep contents in the store.
type bodies struct{ *store.Store }

func (b bodies) Put(ctx context.Context, r io.Reader) (overlay.Hash, int64, error) {
	h, n, err := b.PutBody(ctx, r)
	return overlay.Hash(h), n, err
}

func (b bodies) Open(ctx context.Context, h overlay.Hash) (io.ReadCloser, int64, error) {
	return b.OpenBody(ctx, store.Hash(h))
}

func openFiles(st *store.Store, session, folder string, hidden []string) (*files, error) {
	lower, err := overlay.OpenLower(folder, overlay.LowerOptions{Hidden: hidden})
	if err != nil {
		return nil, fmt.Errorf("cannot read the project folder: %w", err)
	}
	return &files{
		store: st, session: session, folder: folder, lower: lower,
		seen: make(map[int64]*overlay.Manifest),
	}, nil
}

// close lets the project folder and the upper go.
func (f *files) close() {
	f.lower.Close()
	if f.scanner != nil {
		f.scanner.Close()
	}
}

// bump says that the files may have changed.
func (f *files) bump() int64 { return f.version.Add(1) }

func (f *files) moved(ctx context.Context) (bool, error) {
	f.scanning.Lock()
	defer f.scanning.Unlock()
	return f.scanner.Moved(ctx)
}

func (f *files) scan(ctx context.Context) (*overlay.Manifest, error) {
	f.scanning.Lock()
	defer f.scanning.Unlock()
	m, _, err := f.scanner.Scan(ctx, overlay.ScanOptions{})
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.current = m
	return m, nil
}

// scanned is what the last scan found; nil before the first.
func (f *files) scanned() *overlay.Manifest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current
}

// save keeps a manifest, so that its root names the state of all files.
func (f *files) save(ctx context.Context, m *overlay.Manifest) (overlay.Hash, error) {
	return m.Save(ctx, bodies{f.store})
}

func (f *files) remember(cp *checkpoint) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[cp.id] = cp.manifest
}

// at is the state at a checkpoint.
func (f *files) at(ctx context.Context, id int64) (*overlay.Manifest, error) {
	f.mu.Lock()
	m := f.seen[id]
	f.mu.Unlock()
	if m != nil {
		return m, nil
	}
	cp, err := doc[api.Checkpoint](ctx, f.store, f.session, "checkpoint", id)
	if err != nil {
		return nil, fmt.Errorf("cannot find checkpoint %d: %w", id, err)
	}
	root, err := parseHash(cp.Root)
	if err != nil {
		return nil, err
	}
	if m, err = overlay.Load(ctx, bodies{f.store}, root); err != nil {
		return nil, fmt.Errorf("cannot load checkpoint %d: %w", id, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[id] = m
	return m, nil
}

func (f *files) betweenIDs(ctx context.Context, from int64, to *checkpoint) ([]overlay.Change, error) {
	m, err := f.at(ctx, from)
	if err != nil {
		return nil, err
	}
	return f.between(ctx, m, to.manifest)
}

// list describes changes without reading their contents.
func (f *files) list(changed []overlay.Change, most int) []api.Change {
	out := make([]api.Change, 0, min(len(changed), most))
	for _, c := range changed[:min(len(changed), most)] {
		a := api.Change{
			Path: api.Escape(c.Path), Key: key(c.Path), Status: string(c.Status), Kind: c.Kind().String(), Words: words(c),
			From: api.Escape(c.From),
		}
		if c.New != nil {
			a.NewSize = c.New.Size
		}
		if c.Old != nil {
			a.OldSize = c.Old.Size
		}
		out = append(out, a)
	}
	return out
}

// words says what a reader wouldn't see in the lines of a change.
func words(c overlay.Change) string {
	var w []string
	switch {
	case c.Old != nil && c.New != nil && c.Old.Kind != c.New.Kind:
		w = append(w, fmt.Sprintf("%s becomes %s", c.Old.Kind, c.New.Kind))
	case c.Mode:
		w = append(w, fmt.Sprintf("mode %04o → %04o", c.Old.Mode, c.New.Mode))
	}
	if c.New != nil && c.New.Kind == overlay.KindSymlink {
		w = append(w, "points to "+api.Escape(c.New.Target))
	}
	return strings.Join(w, ", ")
}

func parseHash(s string) (overlay.Hash, error) {
	var h overlay.Hash
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(h) {
		return h, fmt.Errorf("cannot read %q as a hash", api.Escape(trim(s, 80)))
	}
	return overlay.Hash(b), nil
}
