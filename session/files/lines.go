package files

import (
	"context"
	"errors"
	"strings"

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

// maxCounts is of how many pairs of contents it is remembered how they differ, since
// a list of changes is asked for again whenever one of them moved.
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
	n, ok := f.counts.get(id)
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
		f.counts.put(id, n, maxCounts)
	}
	return n
}
