package session

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"sync"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/scan"
	"stepbox/session/api"
	"stepbox/session/ledger"
	"stepbox/store"
)

// maxListed bounds the changes that a question or a plan lists; what is beyond
// is counted.
const maxListed = 5000

// notRecorded is said of changes whose old side isn't in the record, since
// Stepbox didn't keep it when the session ran.
const notRecorded = "not kept: this session is from before both sides of changes were recorded"

// files knows the state of a session's files: the upper of a live session, or
// the manifests that a recorded one left. What is shown of either comes from
// the record, in which each checkpoint has what the project had at the paths
// that the session touched; the project folder itself is read to keep that, and
// for roll backs. Safe for concurrent use.
type files struct {
	store   *store.Store
	session string
	lower   *lower.Lower  // the project folder; nil for a recorded session
	scanner *scan.Scanner // nil for a recorded session
	told    func(int64)   // hears of every new version; nil for nobody. It must not block

	scanning sync.Mutex // one scan at a time; held across the scan, which is its purpose
	shared   []string   // guarded by scanning; files that processes may store to through mappings

	mu       sync.Mutex
	version  int64              // guarded by mu; see bump
	current  *manifest.Manifest // guarded by mu; the last scan's
	seen     []checkpoint       // guarded by mu; those used last, newest first
	compared []*comparison      // guarded by mu; the last few, newest first
	counts   lineCounts
}

// bodies lets the overlay packages keep contents in the store.
type bodies struct{ *store.Store }

func (b bodies) Put(ctx context.Context, r io.Reader) (content.Hash, int64, error) {
	h, n, err := b.PutBody(ctx, r)
	return content.Hash(h), n, err
}

func (b bodies) Open(ctx context.Context, h content.Hash) (io.ReadCloser, int64, error) {
	return b.OpenBody(ctx, store.Hash(h))
}

// maxSeen is how many checkpoints are held in memory; the others are read from
// the store when they are asked for.
const maxSeen = 8

// openFiles opens the project folder of a live session.
func openFiles(st *store.Store, session, folder string, hidden []string) (*files, error) {
	options := lower.Options{Hidden: hidden}
	if dir := servedDir(st, session); isDir(dir) {
		options.Above = []string{dir}
	}
	lower, err := lower.Open(folder, options)
	if err != nil {
		return nil, fmt.Errorf("cannot read the project folder: %w", err)
	}
	return &files{store: st, session: session, lower: lower}, nil
}

// watch begins to look at a live session's upper. What the project has where
// the session writes is kept, but for the contents of what ignored names.
func (f *files) watch(upper string, open inode.Opener, ignored func(path string, dir bool) bool) error {
	scanner, err := scan.New(upper, bodies{f.store}, open)
	if err != nil {
		return fmt.Errorf("cannot read the session's files: %w", err)
	}
	scanner.Keep(scan.Keep{Lower: f.lower, Ignored: ignored})
	f.scanner = scanner
	return nil
}

// recordedFiles reads what a session left in the record and nothing else.
func recordedFiles(st *store.Store, session string) *files {
	return &files{store: st, session: session}
}

// close lets the project folder and the upper go.
func (f *files) close() {
	if f.lower != nil {
		f.lower.Close()
	}
	if f.scanner != nil {
		f.scanner.Close()
	}
}

// bump makes a new version: something that Changes answers with may have moved.
// Viewers compare: an answer carries the version that was current before any of
// it was looked at, and they fetch again while that is older than the newest
// version they were told. So nothing is missed whenever a bump comes after the
// move that it is for.
func (f *files) bump() int64 {
	f.mu.Lock()
	f.version++
	v := f.version
	f.mu.Unlock()
	if f.told != nil {
		f.told(v)
	}
	return v
}

// asOf is the version that an answer begun now may claim.
func (f *files) asOf() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.version
}

// moved says whether anything may have changed since the last scan. Stores
// through a mapping don't show unless they are asked for.
func (f *files) moved(ctx context.Context) (bool, error) {
	f.scanning.Lock()
	defer f.scanning.Unlock()
	if len(f.shared) > 0 {
		return true, nil
	}
	return f.scanner.Moved(ctx)
}

// mapped says whether processes are known to store to files through mappings.
func (f *files) mapped() bool {
	f.scanning.Lock()
	defer f.scanning.Unlock()
	return len(f.shared) > 0
}

// scan takes the state of the files while the agent runs.
func (f *files) scan(ctx context.Context) (*manifest.Manifest, error) {
	m, _, err := f.scanSince(ctx, 0)
	return m, err
}

// scanSince looks at the files for an answer that was begun when the version was
// since, and says which version the answer is of: since, or the next one when
// that is due to nothing but what this scan itself found out.
func (f *files) scanSince(ctx context.Context, since int64) (*manifest.Manifest, int64, error) {
	f.scanning.Lock()
	defer f.scanning.Unlock()
	return f.scanNow(ctx, since, nil)
}

// scanStill takes the state of the files while the agent is frozen. Shared are
// the files that processes have mapped so that stores reach them. It looks at
// some directories only, unless dirs is nil.
func (f *files) scanStill(ctx context.Context, shared, dirs []string) (*manifest.Manifest, error) {
	f.scanning.Lock()
	defer f.scanning.Unlock()
	f.shared = shared
	m, _, err := f.scanNow(ctx, 0, dirs)
	return m, err
}

// scanNow is scanSince with scanning held.
func (f *files) scanNow(ctx context.Context, since int64, dirs []string) (*manifest.Manifest, int64, error) {
	m, _, err := f.scanner.Scan(ctx, scan.Options{Mapped: f.shared, Dirty: dirs})
	if err != nil {
		return nil, 0, err
	}
	f.mu.Lock()
	moved := m != f.current
	f.current = m
	f.mu.Unlock()
	if moved {
		if v := f.bump(); v == since+1 {
			since = v
		}
	}
	return m, since, nil
}

// scanned is what the last scan found; nil before the first.
func (f *files) scanned() *manifest.Manifest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current
}

// save keeps a manifest, so that its root names the state of all files.
func (f *files) save(ctx context.Context, m *manifest.Manifest) (content.Hash, error) {
	return m.Save(ctx, bodies{f.store})
}

func (f *files) remember(cp *checkpoint) {
	f.see(*cp)
	f.bump()
}

// see puts a checkpoint in front of those that are held.
func (f *files) see(cp checkpoint) {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := []checkpoint{cp}
	for _, c := range f.seen {
		if c.id != cp.id && len(seen) < maxSeen {
			seen = append(seen, c)
		}
	}
	f.seen = seen
}

// held finds a checkpoint in memory.
func (f *files) held(id int64) (checkpoint, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.seen {
		if c.id == id {
			return c, true
		}
	}
	return checkpoint{}, false
}

// at is the state at a checkpoint.
func (f *files) at(ctx context.Context, id int64) (*manifest.Manifest, error) {
	cp, ok := f.held(id)
	if !ok {
		rec, err := ledger.Doc[api.Checkpoint](ctx, f.store, f.session, "checkpoint", id)
		if err != nil {
			return nil, fmt.Errorf("cannot find checkpoint %d: %w", id, err)
		}
		if cp.root, err = parseHash(rec.Root); err != nil {
			return nil, err
		}
		if cp.manifest, err = manifest.Load(ctx, bodies{f.store}, cp.root); err != nil {
			return nil, fmt.Errorf("cannot load checkpoint %d: %w", id, err)
		}
		cp.id = id
	}
	f.see(cp)
	return cp.manifest, nil
}

// list describes changes without reading their contents.
func (f *files) list(changed []diff.Change, most int) []api.Change {
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
func words(c diff.Change) string {
	var w []string
	switch {
	case c.Old != nil && c.New != nil && c.Old.Kind != c.New.Kind:
		w = append(w, fmt.Sprintf("%s becomes %s", c.Old.Kind, c.New.Kind))
	case c.Mode:
		w = append(w, fmt.Sprintf("mode %04o → %04o", c.Old.Mode, c.New.Mode))
	}
	if c.New != nil && c.New.Kind == manifest.KindSymlink {
		w = append(w, "points to "+api.Escape(c.New.Target))
	}
	for _, side := range []*diff.File{c.Old, c.New} {
		if side != nil && side.Unsaved != "" {
			w = append(w, "not kept: "+api.Escape(strings.TrimPrefix(side.Unsaved, "not kept: ")))
		}
	}
	return strings.Join(w, ", ")
}

func parseHash(s string) (content.Hash, error) {
	var h content.Hash
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(h) {
		return h, fmt.Errorf("cannot read %q as a hash", api.Escape(api.Trim(s, 80)))
	}
	return content.Hash(b), nil
}
