package files

import (
	"context"
	"errors"
	"strings"
	"sync"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
)

// lineCount is how many lines a change added and removed; ok says whether that
// is known.
type lineCount struct {
	added, removed int
	ok             bool
	binary         bool
	is             string // what isn't text, in words
	generated      bool   // it says that a program wrote it, or no person could have
	group          string // of the change; not remembered with the contents
}

// lineCounts remembers the counts of pairs of contents, since a list of changes
// is asked for again whenever one of them moved. It holds at most maxCounts and
// forgets all when it is full. It is safe for concurrent use.
type lineCounts struct {
	mu sync.Mutex
	of map[contents]lineCount // guarded by mu

	alike map[contents]int // guarded by mu; how much of two files is the same, in percent
}

// alikeAs is how much of two files is the same, if that is remembered.
func (l *lineCounts) alikeAs(id contents) (percent int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	percent, ok = l.alike[id]
	return percent, ok
}

func (l *lineCounts) remember(id contents, percent int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.alike == nil || len(l.alike) >= maxCounts {
		l.alike = make(map[contents]int)
	}
	l.alike[id] = percent
}

const maxCounts = 1 << 18

// contents are the two sides of a change as far as a count depends on them.
type contents [2]struct {
	kind  manifest.Kind // 0: there is none
	hash  content.Hash
	noted bool // the content itself isn't kept
}

// contentsOf gives the contents of a change; false when it can't be told whether
// they are the same as others.
func contentsOf(c diff.Change) (id contents, known bool) {
	for i, e := range []*diff.File{c.Old, c.New} {
		if e == nil {
			continue
		}
		if e.Kind == manifest.KindFile && e.Hash.IsZero() && e.Unsaved == "" {
			return id, false
		}
		id[i].kind, id[i].hash, id[i].noted = e.Kind, e.Hash, e.Unsaved != ""
	}
	return id, true
}

// countLines counts added and removed lines of one change, once per pair of contents.
func (f *Files) countLines(ctx context.Context, c diff.Change) lineCount {
	id, known := contentsOf(c)
	f.counts.mu.Lock()
	n, ok := f.counts.of[id]
	f.counts.mu.Unlock()
	if ok && known {
		return n
	}
	n = lineCount{}
	before, after, note, err := f.sides(ctx, c)
	if n.binary = note == noteBinary; n.binary || note == noteLarge {
		n.is = f.typeOf(ctx, c)
		n.generated = n.binary && strings.Contains(n.is, longLines)
	}
	n.generated = n.generated || generated([]byte(after[:min(len(after), headBytes)])) || after == "" && generated([]byte(before[:min(len(before), headBytes)]))
	if err == nil && note == "" {
		_, n.added, n.removed, err = Hunks(before, after)
		n.ok = err == nil || errors.Is(err, errTooDifferent)
	}
	if known && ctx.Err() == nil {
		f.counts.mu.Lock()
		defer f.counts.mu.Unlock()
		if f.counts.of == nil || len(f.counts.of) >= maxCounts {
			f.counts.of = make(map[contents]lineCount)
		}
		f.counts.of[id] = n
	}
	return n
}
