package session

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"stepbox/runner/overlay"
	"stepbox/session/api"
	"stepbox/store"
)

// maxListed bounds the changes of one answer; what is beyond is counted.
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

	mu      sync.Mutex
	current *overlay.Manifest           // guarded by mu; the last scan's
	seen    map[int64]*overlay.Manifest // guarded by mu; checkpoints by number
	counts  map[string]lineCount        // guarded by mu; by the two contents compared
}

type lineCount struct {
	added, removed int
	ok             bool
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
		seen: make(map[int64]*overlay.Manifest), counts: make(map[string]lineCount),
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

// between lists what differs between two states; nil is the project folder.
func (f *files) between(ctx context.Context, from, to *overlay.Manifest) ([]overlay.Change, error) {
	d, err := overlay.Diff(ctx, f.lower, from, to, overlay.DiffOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot compare the files: %w", err)
	}
	return d.Changes, nil
}

func (f *files) betweenIDs(ctx context.Context, from int64, to *checkpoint) ([]overlay.Change, error) {
	m, err := f.at(ctx, from)
	if err != nil {
		return nil, err
	}
	return f.between(ctx, m, to.manifest)
}

// changes lists what differs between two states, with line counts.
func (f *files) changes(ctx context.Context, scope string, from, to *overlay.Manifest) (api.Changes, error) {
	out := api.Changes{Scope: scope, Version: f.version.Load(), Files: []api.Change{}}
	changed, err := f.between(ctx, from, to)
	if err != nil {
		return out, err
	}
	out.Files = f.list(changed, maxListed)
	out.More = len(changed) - len(out.Files)
	for i := range out.Files {
		c := &out.Files[i]
		n := f.countLines(ctx, changed[i])
		c.Added, c.Removed, c.Counted = n.added, n.removed, n.ok
		c.Binary = c.Kind == "file" && !n.ok
		out.Added += n.added
		out.Removed += n.removed
	}
	return out, nil
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

// key names a path in requests, whatever its bytes are.
func key(p string) string { return base64.RawURLEncoding.EncodeToString([]byte(p)) }

// diff is one changed file's difference.
func (f *files) diff(ctx context.Context, key string, from, to *overlay.Manifest) (api.FileDiff, error) {
	p, err := base64.RawURLEncoding.DecodeString(key)
	if err != nil {
		return api.FileDiff{}, problem(api.CodeInvalid, "%q names no changed file", api.Escape(key))
	}
	changed, err := f.between(ctx, from, to)
	if err != nil {
		return api.FileDiff{}, err
	}
	for _, c := range changed {
		if c.Path != string(p) {
			continue
		}
		out := api.FileDiff{Change: f.list([]overlay.Change{c}, 1)[0]}
		before, after, note, err := f.sides(ctx, c)
		if err != nil || note != "" {
			out.Note = note
			return out, err
		}
		hs, added, removed, err := hunks(before, after)
		if err != nil {
			return out, fmt.Errorf("cannot compare %q: %w", out.Change.Path, err)
		}
		out.Hunks, out.Change.Added, out.Change.Removed, out.Change.Counted = hs, added, removed, true
		if len(hs) == 0 && out.Change.Words == "" {
			out.Note = "the contents are the same"
		}
		return out, nil
	}
	return api.FileDiff{}, problem(api.CodeNotFound, "%q hasn't changed", api.Escape(string(p)))
}

// sides reads both contents of a change; note says why they can't be shown as text.
func (f *files) sides(ctx context.Context, c overlay.Change) (before, after, note string, err error) {
	read := func(e *overlay.File) ([]byte, error) {
		switch {
		case e == nil || e.Kind != overlay.KindFile:
			return nil, nil
		case e.Unsaved != "":
			return nil, fmt.Errorf("the content wasn't kept: %s", e.Unsaved)
		case e.Size > maxDiffBytes:
			return nil, errTooLarge
		}
		r, _, err := overlay.Content(ctx, f.lower, bodies{f.store}, e)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		b, err := io.ReadAll(io.LimitReader(r, maxDiffBytes+1))
		if len(b) > maxDiffBytes {
			return nil, errTooLarge
		}
		return b, err
	}
	b, err := read(c.Old)
	if err == nil {
		var a []byte
		if a, err = read(c.New); err == nil {
			if !text(b) || !text(a) {
				return "", "", "binary", nil
			}
			return string(b), string(a), "", nil
		}
	}
	if errors.Is(err, errTooLarge) {
		return "", "", "too large to be shown as text", nil
	}
	return "", "", "", err
}

var errTooLarge = errors.New("too large")

// countLines counts added and removed lines of one change, once per pair of contents.
func (f *files) countLines(ctx context.Context, c overlay.Change) lineCount {
	id := countKey(c)
	f.mu.Lock()
	n, ok := f.counts[id]
	f.mu.Unlock()
	if ok {
		return n
	}
	before, after, note, err := f.sides(ctx, c)
	if err == nil && note == "" {
		if _, n.added, n.removed, err = hunks(before, after); err == nil {
			n.ok = true
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.counts) > 4*maxListed {
		clear(f.counts)
	}
	f.counts[id] = n
	return n
}

func countKey(c overlay.Change) string {
	side := func(e *overlay.File) string {
		if e == nil {
			return "-"
		}
		return fmt.Sprintf("%s %s %d %v", e.Kind, e.Hash, e.Size, e.MTime)
	}
	return c.Path + "\x00" + side(c.Old) + "\x00" + side(c.New)
}

// lines adds up the lines of some changes.
func (f *files) lines(ctx context.Context, changed []overlay.Change) (added, removed int) {
	for _, c := range changed[:min(len(changed), maxListed)] {
		n := f.countLines(ctx, c)
		added += n.added
		removed += n.removed
	}
	return added, removed
}

func parseHash(s string) (overlay.Hash, error) {
	var h overlay.Hash
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(h) {
		return h, fmt.Errorf("cannot read %q as a hash", api.Escape(trim(s, 80)))
	}
	return overlay.Hash(b), nil
}
