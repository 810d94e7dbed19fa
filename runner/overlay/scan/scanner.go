// Package scan takes checkpoints: a Scanner reads an overlay's upper directory
// from outside into a manifest, looking at what moved since the one before, and
// keeps with it what the upper covers of the host's files.
//
// A checkpoint is only consistent when the sandbox is frozen while the last,
// incremental Scan runs. Stores through a writable shared mapping aren't seen by
// a stat: see Options.Mapped. A Scanner locks itself; no goroutine outlives a call.
package scan

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// ErrTooMany says that an upper has more entries than a scan takes in.
var ErrTooMany = errors.New("too many files")

// What one scan takes in. Tests have less.
var (
	maxScanned  = 2_000_000 // entries in the upper; more fail the scan with ErrTooMany
	maxFileData = 32 << 30  // bytes of data of one file, holes not counted; a larger one is recorded as Unsaved
)

// Options are for one scan.
type Options struct {
	// Dirty are the directories whose entries are looked at (not those of
	// directories below, unless they are new); the rest is taken over from the
	// last scan. Nil means all. Looked at besides are those that may move
	// without a sign there: of files with several names, of those in Mapped, and
	// of what the last scan wasn't certain of.
	Dirty []string
	// Mapped are files that living processes have mapped writable and shared,
	// by path. Stores to pages that are dirty already move no time stamp, so
	// these are written back before they are looked at where that helps, and
	// read again where it doesn't.
	Mapped []string
	// Back says that a roll back wrote what is new: what the lower has below it
	// isn't asked for where something is known, since that is what was put back.
	Back bool
	// Again asks the lower for what shows through by now wherever something is known.
	Again bool
}

// Stats say what a scan did.
type Stats struct {
	Opened      int   // files and links whose content or attributes were read
	Read        int64 // bytes
	Stored      int   // bodies given to Bodies
	StoredBytes int64
	Problems    []manifest.Problem // what couldn't be saved
}

// scanWorkers is how many goroutines look at an upper together.
const scanWorkers = 4

// Scanner takes manifests of one upper, each costing what moved since the one
// before. It is safe for concurrent use; scans run one at a time.
type Scanner struct {
	upper  string
	bodies content.Bodies
	opener inode.Opener

	mu    sync.Mutex
	root  int                // guarded by mu; -1 once closed
	cache *dirCache          // guarded by mu; of the last scan that succeeded
	last  *manifest.Manifest // guarded by mu
	found *manifest.Node     // guarded by mu; what the upper had then; nil when that isn't known
	hides bool               // guarded by mu; something is gone that comes back when the lower has it again
	racy  bool               // guarded by mu; two writes may leave the same time stamp
	noSFR bool               // guarded by mu; writing pages back doesn't make stores visible here
	keep  *Keep              // guarded by mu; nil keeps nothing of a lower
}

// New makes a scanner of the upper directory at that path. A nil b
// hashes without storing; a nil o leaves files that can't be opened Unsaved.
func New(upper string, b content.Bodies, o inode.Opener) (*Scanner, error) {
	fd, err := inode.OpenAt(unix.AT_FDCWD, upper, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, fmt.Errorf("cannot open upper directory %q: %w", upper, err)
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("cannot look at the file system of %q: %w", upper, err)
	}
	return &Scanner{
		upper: upper, bodies: b, opener: o, root: fd,
		racy: !multigrain(int64(fs.Type)), noSFR: int64(fs.Type) == unix.TMPFS_MAGIC,
	}, nil
}

// Close releases the upper. Manifests stay valid.
func (s *Scanner) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.root < 0 {
		return nil
	}
	err := unix.Close(s.root)
	s.root, s.cache = -1, nil
	return err
}

// Keep makes every manifest from now on carry a Base: what the lower had at the
// paths that the upper covers. It is called before the first Scan.
func (s *Scanner) Keep(k Keep) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k.upper = s.root
	s.keep = &k
}

// GoOn makes the next scan one that follows on the last of an earlier Scanner of
// the same upper: what that knew of the lower isn't asked of it again. It is
// called before the first Scan.
func (s *Scanner) GoOn(m *manifest.Manifest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m != nil && m.Base != nil { // else it knew nothing
		s.last = m
	}
}

// Last is the manifest of the last scan; nil before the first.
func (s *Scanner) Last() *manifest.Manifest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// multigrain says whether every change that follows a stat moves the time
// stamps: from Linux 6.13 on, on file systems that have it (kernel
// Documentation/filesystems/multigrain-ts.rst).
func multigrain(fs int64) bool {
	switch fs {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC:
	default:
		return false
	}
	return inode.KernelSince(6, 13)
}

// Scan looks at the upper and returns what is in it now. When nothing moved
// it returns the last manifest itself and opens no file.
func (s *Scanner) Scan(ctx context.Context, o Options) (*manifest.Manifest, Stats, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, err := s.walk(ctx, o)
	if err != nil {
		return nil, Stats{}, fmt.Errorf("cannot scan %q: %w", s.upper, err)
	}
	w.queue = content.NewQueue(s.bodies)
	cache, err := w.top(s.cache)
	if err == nil && w.linked.Load() && w.dirty != nil {
		// A file got a further name, and the others it has may be anywhere.
		w.dirty, w.stats.Problems = nil, nil
		w.Count.Store(0)
		cache, err = w.top(cache)
	}
	if err == nil {
		err = w.queue.Flush(ctx)
	}
	if err != nil {
		return nil, Stats{}, fmt.Errorf("cannot scan %q: %w", s.upper, err)
	}
	if s.last == nil || cache.node != s.found || s.hides || o.Again {
		m := &manifest.Manifest{Root: cache.node}
		if s.keep != nil {
			if m, err = s.extend(ctx, o, m); err != nil {
				return nil, Stats{}, fmt.Errorf("cannot keep what the project has: %w", err)
			}
		}
		if s.last == nil || m.Base != s.last.Base || again(s.last.Root, m.Root) != s.last.Root {
			s.last = m
		}
		s.found = cache.node
	}
	s.cache = cache
	w.stats.Stored, w.stats.StoredBytes = w.queue.Stored, w.queue.StoredBytes
	slices.SortFunc(w.stats.Problems, func(a, b manifest.Problem) int { return strings.Compare(a.Path, b.Path) })
	return s.last, w.stats, nil
}

// extend gives a manifest its Base; see extender. The caller holds s.mu.
func (s *Scanner) extend(ctx context.Context, o Options, m *manifest.Manifest) (*manifest.Manifest, error) {
	x := newExtender(ctx, s.keep, s.bodies)
	x.options, x.goesOn = o, s.cache == nil && s.last != nil
	m, err := x.extend(s.last, m)
	s.hides = x.hides
	for _, path := range x.shut {
		s.setOpaque(path)
	}
	return m, err
}

// setOpaque has a directory hide the lower's from the next mount on.
func (s *Scanner) setOpaque(path string) {
	fd, err := inode.Beneath(s.root, path, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	defer lend(fd)()
	_ = unix.Setxattr(inode.FDPath(fd), inode.Opaque, []byte("y"), 0)
}

// Moved says whether such a scan would find something else than the last one did,
// by time stamps alone. It opens directories only, and may say true where a
// scan finds nothing after all.
func (s *Scanner) Moved(ctx context.Context, o Options) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cache == nil {
		return true, nil
	}
	w, err := s.walk(ctx, o)
	if err != nil {
		return false, fmt.Errorf("cannot look at %q: %w", s.upper, err)
	}
	w.lookOnly = true
	_, err = w.top(s.cache)
	if errors.Is(err, errFound) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot look at %q: %w", s.upper, err)
	}
	return false, nil
}

// walk prepares one pass over the upper. The caller holds s.mu.
func (s *Scanner) walk(ctx context.Context, o Options) (*walk, error) {
	if s.root < 0 {
		return nil, os.ErrClosed
	}
	w := &walk{s: s, ctx: ctx, noSFR: s.noSFR}
	w.spare = make(chan struct{}, scanWorkers)
	for range min(scanWorkers, runtime.GOMAXPROCS(0)) - 1 {
		w.spare <- struct{}{}
	}
	if o.Dirty != nil && s.cache != nil {
		w.dirty = &manifest.Paths{}
		for _, p := range o.Dirty {
			if !manifest.ValidPath(p) {
				return nil, fmt.Errorf("cannot use path %q", p)
			}
			w.dirty.At(p).Here = true
		}
		for _, p := range o.Mapped {
			if dir, _ := manifest.Split(p); manifest.ValidPath(dir) {
				w.dirty.At(dir).Here = true
			}
		}
	}
	w.mapped = make(map[string]bool, len(o.Mapped))
	for _, p := range o.Mapped {
		w.mapped[p] = true
	}
	if s.racy {
		var now unix.Timespec
		// Inodes get their stamps from the coarse clock; it ticks every 10 ms
		// at the slowest.
		if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now); err != nil {
			return nil, err
		}
		t := time.Unix(now.Unix()).Add(-10 * time.Millisecond)
		w.racyFrom, w.racy = manifest.Time{Sec: t.Unix(), Nsec: uint32(t.Nanosecond())}, true
	}
	return w, nil
}
