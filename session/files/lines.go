package files

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"sync"

	"stepbox/runner/overlay/diff"
)

// lineCount is how many lines a change added and removed; ok says whether that
// is known.
type lineCount struct {
	added, removed int
	ok             bool
	binary         bool
}

// lineCounts remembers the counts of pairs of contents, since a list of changes
// is asked for again whenever one of them moved. It holds at most two
// generations of maxCounts; the older one is forgotten when the newer is full.
// It is safe for concurrent use.
type lineCounts struct {
	mu       sync.Mutex
	now, old map[[2]uint64]lineCount // guarded by mu
}

const maxCounts = 1 << 17

var countSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func (l *lineCounts) get(id [2]uint64) (lineCount, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, ok := l.now[id]
	if !ok {
		if n, ok = l.old[id]; ok {
			l.put(id, n)
		}
	}
	return n, ok
}

// put is called with mu held.
func (l *lineCounts) put(id [2]uint64, n lineCount) {
	if l.now == nil || len(l.now) >= maxCounts {
		l.now, l.old = make(map[[2]uint64]lineCount), l.now
	}
	l.now[id] = n
}

func (l *lineCounts) set(id [2]uint64, n lineCount) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(id, n)
}

// countLines counts added and removed lines of one change, once per pair of contents.
func (f *Files) countLines(ctx context.Context, c diff.Change) lineCount {
	id := countKey(c)
	if n, ok := f.counts.get(id); ok {
		return n
	}
	var n lineCount
	before, after, note, err := f.sides(ctx, c)
	n.binary = note == noteBinary
	if err == nil && note == "" {
		if _, n.added, n.removed, err = hunks(before, after); err == nil {
			n.ok = true
		}
	}
	if ctx.Err() == nil {
		f.counts.set(id, n)
	}
	return n
}

// countKey identifies a pair of contents. Nothing but a count depends on it, so
// a hash without proof against collisions will do; its seeds are this process's.
func countKey(c diff.Change) [2]uint64 {
	b := append([]byte(c.Path), 0)
	for _, e := range []*diff.File{c.Old, c.New} {
		if e == nil {
			b = append(b, 0)
			continue
		}
		b = append(b, byte(e.Kind))
		b = append(b, e.Hash[:]...)
		b = binary.LittleEndian.AppendUint64(b, uint64(e.Size))
		b = binary.LittleEndian.AppendUint64(b, uint64(e.MTime.Sec))
		b = binary.LittleEndian.AppendUint32(b, e.MTime.Nsec)
	}
	return [2]uint64{maphash.Bytes(countSeeds[0], b), maphash.Bytes(countSeeds[1], b)}
}

// Lines adds up the lines of some changes.
func (f *Files) Lines(ctx context.Context, changed []diff.Change) (added, removed int) {
	for _, c := range changed {
		n := f.countLines(ctx, c)
		added += n.added
		removed += n.removed
	}
	return added, removed
}
