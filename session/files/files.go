package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/scan"
	"stepbox/session/api"
	"stepbox/session/ledger"
	"stepbox/session/project"
	"stepbox/store"
)

// maxListed bounds the changes that a question or a plan lists; what is beyond
// is counted.
const maxListed = 5000

// Files knows the state of a session's files: the upper of a live session, or
// the manifests that a recorded one left. What is shown of either comes from
// the record, in which each checkpoint has what the project had at the paths
// that the session touched; the project folder itself is read to keep that, and
// for roll backs. Safe for concurrent use.
type Files struct {
	store   *store.Store
	session string
	lower   *lower.Lower  // the project folder; nil for a recorded session
	scanner *scan.Scanner // nil for a recorded session
	told    func(int64)

	scanning sync.Mutex // one scan at a time; held across the scan, which is its purpose
	shared   []string   // guarded by scanning; files that processes may store to through mappings
	hints    hints      // guarded by scanning; where a viewer's look has to go

	mu       sync.Mutex
	version  int64              // guarded by mu; see Bump
	current  *manifest.Manifest // guarded by mu; the last scan's
	compared []*comparison      // guarded by mu; the last few, newest first
	seen     memo[int64, Checkpoint]
	counts   memo[contents, lineCount]
	alike    memo[contents, int]            // how much of two files is the same, in percent
	hashes   memo[inode.Key, project.State] // files of the project, by what tells that they weren't written since
	hosts    hostWatch
	groups   grouping
}

// maxSeen is how many checkpoints are held in memory at most; the others are read from
// the store when they are asked for.
const maxSeen = 16

// Open opens the project folder of a live session. Told hears of every new
// version; nil for nobody. It must not block.
func Open(st *store.Store, session, folder string, options lower.Options, told func(int64)) (*Files, error) {
	lower, err := lower.Open(folder, options)
	if err != nil {
		return nil, fmt.Errorf("cannot read the project folder: %w", err)
	}
	return &Files{store: st, session: session, lower: lower, told: told}, nil
}

// Lower is the project folder; nil for a recorded session.
func (f *Files) Lower() *lower.Lower { return f.lower }

// Attach begins to look at a live session's upper. What the project has where
// the session writes is kept, but for the contents of what ignored names, and for what
// took a file's place there since the upper was mounted, as far as the agent may have
// seen the one before.
func (f *Files) Attach(upper string, open inode.Opener, ignored func(path string, dir bool) bool, mounted time.Time) error {
	scanner, err := scan.New(upper, Bodies{f.store}, open)
	if err != nil {
		return fmt.Errorf("cannot read the session's files: %w", err)
	}
	f.scanner = scanner
	f.Mounting(ignored, mounted)
	return nil
}

// Mounting says that the upper will be mounted only now: what was changed in front of the
// project until then is no change that the agent saw.
func (f *Files) Mounting(ignored func(path string, dir bool) bool, now time.Time) {
	f.scanner.Keep(scan.Keep{Lower: f.lower, Ignored: ignored, Mounted: now})
}

// Recorded reads what a session left in the record and nothing else.
func Recorded(st *store.Store, session string) *Files {
	return &Files{store: st, session: session}
}

// Over says that the session has ended: nobody is told of new versions any more.
// What is known of the files can still be asked for.
func (f *Files) Over() { f.hosts.close() }

// Close lets the project folder and the upper go.
func (f *Files) Close() {
	f.hosts.close()
	if f.lower != nil {
		f.lower.Close()
	}
	if f.scanner != nil {
		f.scanner.Close()
	}
}

// Bump makes a new version: something that Changes answers with may have moved.
// Viewers compare: an answer carries the version that was current before any of
// it was looked at, and they fetch again while that is older than the newest
// version they were told. So nothing is missed whenever a bump comes after the
// move that it is for.
func (f *Files) Bump() int64 {
	f.mu.Lock()
	f.version++
	v := f.version
	f.mu.Unlock()
	if f.told != nil {
		f.told(v)
	}
	return v
}

// AsOf is the version that an answer begun now may claim.
func (f *Files) AsOf() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.version
}

// Moved says whether anything may have changed since the last scan. Stores
// through a mapping don't show unless they are asked for.
func (f *Files) Moved(ctx context.Context) (bool, error) {
	f.scanning.Lock()
	defer f.scanning.Unlock()
	if len(f.shared) > 0 {
		return true, nil
	}
	return f.scanner.Moved(ctx, scan.Options{})
}

// mapped says whether processes are known to store to files through mappings.
func (f *Files) mapped() bool {
	f.scanning.Lock()
	defer f.scanning.Unlock()
	return len(f.shared) > 0
}

// Scan takes the state of the files while the agent runs.
func (f *Files) Scan(ctx context.Context) (*manifest.Manifest, error) {
	f.scanning.Lock()
	defer f.scanning.Unlock()
	m, _, err := f.scanNow(ctx, 0, scan.Options{})
	return m, err
}

// ScanThrough is Scan that also asks the project for what shows through, where the record
// knows something of it.
func (f *Files) ScanThrough(ctx context.Context) error {
	f.scanning.Lock()
	defer f.scanning.Unlock()
	_, _, err := f.scanNow(ctx, 0, scan.Options{Again: true})
	return err
}

// ScanSince looks at the files for an answer that was begun when the version was
// since, and says which version the answer is of: since, or the next one when
// that is due to nothing but what this scan itself found out. It looks where files
// are known to have moved; what an agent hid from that is found a little later.
func (f *Files) ScanSince(ctx context.Context, since int64) (*manifest.Manifest, int64, error) {
	f.scanning.Lock()
	defer f.scanning.Unlock()
	return f.scanNow(ctx, since, scan.Options{Dirty: f.hints.where(f.scanner.Last().Len())})
}

// ScanStill takes the state of the files while the agent is frozen. Shared are
// the files that processes have mapped so that stores reach them. It looks at
// some directories only, unless dirs is nil. Back: it is what a roll back wrote.
func (f *Files) ScanStill(ctx context.Context, shared, dirs []string, back bool) (*manifest.Manifest, error) {
	f.scanning.Lock()
	defer f.scanning.Unlock()
	f.shared = shared
	m, _, err := f.scanNow(ctx, 0, scan.Options{Dirty: dirs, Back: back})
	return m, err
}

// scanNow looks at the files. The caller holds f.scanning.
func (f *Files) scanNow(ctx context.Context, since int64, o scan.Options) (*manifest.Manifest, int64, error) {
	begun := time.Now()
	o.Mapped = f.shared
	m, _, err := f.scanner.Scan(ctx, o)
	f.hints.scanned(o.Dirty == nil, begun, err)
	if err != nil {
		return nil, 0, err
	}
	f.mu.Lock()
	moved := m != f.current
	f.current = m
	f.mu.Unlock()
	if moved {
		if v := f.Bump(); v == since+1 {
			since = v
		}
	}
	return m, since, nil
}

// Scanned is what the last scan found; nil before the first.
func (f *Files) Scanned() *manifest.Manifest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current
}

// Look takes the state of the files, which has no number yet.
func (f *Files) Look(ctx context.Context) (cp Checkpoint, err error) {
	if cp.Manifest, err = f.Scan(ctx); err == nil {
		cp.Root, err = f.Save(ctx, cp.Manifest)
	}
	return cp, err
}

// Save keeps a manifest, so that its root names the state of all files.
func (f *Files) Save(ctx context.Context, m *manifest.Manifest) (content.Hash, error) {
	return m.Save(ctx, Bodies{f.store})
}

// Remember holds a new checkpoint in memory.
func (f *Files) Remember(cp *Checkpoint) {
	f.seen.put(cp.ID, *cp, maxSeen)
	f.Bump()
}

// At is the state at a checkpoint.
func (f *Files) At(ctx context.Context, id int64) (*manifest.Manifest, error) {
	cp, err := f.Checkpoint(ctx, id)
	return cp.Manifest, err
}

// Checkpoint is a recorded checkpoint.
func (f *Files) Checkpoint(ctx context.Context, id int64) (Checkpoint, error) {
	cp, known := f.seen.get(id)
	if !known {
		rec, err := ledger.Doc[api.Checkpoint](ctx, f.store, f.session, "checkpoint", id)
		if err != nil {
			return Checkpoint{}, fmt.Errorf("cannot find checkpoint %d: %w", id, err)
		}
		if cp.Root, err = ParseHash(rec.Root); err != nil {
			return Checkpoint{}, err
		}
		if cp.Manifest, err = manifest.Load(ctx, Bodies{f.store}, cp.Root); err != nil {
			return Checkpoint{}, fmt.Errorf("checkpoint %d can't be had from the record; actions that don't need it can, and stepbox resume %s takes a new one of the session's files as they are: %w", id, f.session, err)
		}
		cp.ID = id
	}
	f.seen.put(id, cp, maxSeen)
	return cp, nil
}

// GoOn makes the next scan one that follows on a checkpoint of before the session
// was resumed. It is called between Attach and the first scan.
func (f *Files) GoOn(cp Checkpoint) { f.scanner.GoOn(cp.Manifest) }

// LetGo takes out of the upper what the project folder has as well by now, so that
// the agent sees that and what becomes of it. The sandbox must not be there yet.
// Drop says what goes, too: see scan.Scanner's Release. Keep gets the state that will
// be left before anything goes, unless nothing does. It gives the paths that went.
func (f *Files) LetGo(ctx context.Context, drop scan.Drop, keep func(*manifest.Manifest) error) ([]string, error) {
	f.scanning.Lock()
	defer f.scanning.Unlock()
	gone, err := f.scanner.Release(ctx, drop, keep)
	f.mu.Lock()
	f.current = f.scanner.Last() // the state of before isn't there any more
	f.mu.Unlock()
	return gone, err
}

// Since is the state at a checkpoint that a viewer names.
func (f *Files) Since(ctx context.Context, id int64) (*manifest.Manifest, error) {
	m, err := f.At(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, api.Problemf(api.CodeNotFound, "there is no checkpoint %d", id)
	}
	return m, err
}

// OfAction is the two states around an action; until it has ended the second is now.
func (f *Files) OfAction(ctx context.Context, a api.Action, now *manifest.Manifest) (from, to *manifest.Manifest, err error) {
	if a.Before == 0 || a.State == api.ActionHeld || a.State == api.ActionDenied || a.State == api.ActionAbandoned {
		return nil, nil, nil
	}
	if from, err = f.At(ctx, a.Before); err != nil {
		return nil, nil, err
	}
	switch {
	case a.After != 0:
		to, err = f.At(ctx, a.After)
	case now != nil:
		to = now
	default:
		to = from // it was interrupted before its end was seen
	}
	return from, to, err
}

// List describes changes without reading their contents, at most maxListed: what
// is beyond is counted.
func (f *Files) List(changed []diff.Change) []api.Change {
	changed = changed[:min(len(changed), maxListed)]
	out := make([]api.Change, 0, len(changed))
	for _, c := range changed {
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
	was, is := c.Old, c.New
	link := is != nil && is.Kind == manifest.KindSymlink
	switch {
	case was != nil && is != nil && was.Kind != is.Kind:
		w = append(w, fmt.Sprintf("%s becomes %s", was.Kind, is.Kind))
	case link && was != nil && was.Target != is.Target:
		w = append(w, "pointed to "+api.Escape(was.Target))
	case c.Mode:
		w = append(w, modeWords(was.Mode, is.Mode))
	case was == nil && !link && is.Kind == manifest.KindFile && is.Mode&0o111 != 0:
		w = append(w, "executable")
	}
	if link {
		w = append(w, "points to "+api.Escape(is.Target))
	}
	if c.Owner && !link {
		w = append(w, "another owner")
	}
	if c.Xattrs {
		w = append(w, "other extended attributes")
	}
	for _, side := range []*diff.File{was, is} {
		if side != nil && side.Unsaved != "" {
			w = append(w, "not kept: "+api.Escape(strings.TrimPrefix(side.Unsaved, "not kept: ")))
		}
	}
	return strings.Join(w, ", ")
}

// modeWords says what a change of mode means, and the mode itself.
func modeWords(was, is uint32) string {
	numbers := fmt.Sprintf("mode %04o → %04o", was, is)
	switch {
	case is&0o7000&^was != 0:
		return "gets a setuid, setgid or sticky bit, " + numbers
	case was&0o111 == 0 && is&0o111 != 0:
		return "becomes executable, " + numbers
	case was&0o111 != 0 && is&0o111 == 0:
		return "no longer executable, " + numbers
	case was&0o444 != 0 && is&0o444 == 0:
		return "nobody may read it, " + numbers
	}
	return numbers
}

// ParseHash reads a hash as the API writes it.
func ParseHash(s string) (content.Hash, error) {
	h, err := store.ParseHash(s)
	if err != nil {
		err = fmt.Errorf("cannot read %q as a hash", api.Escape(api.Trim(s, 80)))
	}
	return content.Hash(h), err
}

func (f *Files) open(ctx context.Context, side *diff.File) (io.ReadCloser, int64, error) {
	return diff.Open(ctx, f.lower, Bodies{f.store}, side)
}

// Read reads a side of a change whole, if it isn't longer than most and its content
// is kept; nil of what is no file.
func (f *Files) Read(ctx context.Context, side *diff.File, most int64) ([]byte, error) {
	switch {
	case side == nil || side.Kind != manifest.KindFile:
		return nil, nil
	case side.Unsaved != "":
		return nil, errNotKept
	case side.Size > most:
		return nil, errTooLarge
	}
	r, _, err := f.open(ctx, side)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if int64(len(b)) > most {
		return nil, errTooLarge
	}
	return b, err
}
