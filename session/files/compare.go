package files

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zeebo/blake3"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/merge"
)

// Bounds of a comparison and its pages.
const (
	maxCompared = 500_000 // changed paths that are held; what is beyond is counted
	maxPage     = maxListed
	page        = 1000        // changes of a page when the asker doesn't say
	comparisons = 4           // that are held: those that viewers ask pages and diffs of
	maxHeld     = 100_000     // changes in all that are held beside the newest comparison's
	countTime   = time.Second // that a page waits for lines to be counted
)

// comparison is what differs between two states of the files. It is worked out
// once and then asked for pages and single files, so that showing n changes
// costs n and not n². It is safe for concurrent use.
type comparison struct {
	from, to *manifest.Manifest
	diff.Difference

	counting sync.Mutex      // one count at a time; held across the reading, which is its purpose
	shown    diff.Difference // guarded by counting; the same as people see it: see similar
	lines    []lineCount     // guarded by counting; parallel to shown's, nil until that is known
	counted  int             // guarded by counting; of how many of them the lines are counted
	total    lineCount       // guarded by counting; of all
	byGroup  []int32         // guarded by counting; indices of changes by group, nil until they are asked for
}

// compare finds out what differs between two states; nil is the project folder.
func (f *Files) compare(ctx context.Context, from, to *manifest.Manifest) (*comparison, error) {
	f.mu.Lock()
	for i, c := range f.compared {
		if c.from == from && c.to == to {
			copy(f.compared[1:], f.compared[:i])
			f.compared[0] = c
			f.mu.Unlock()
			return c, nil
		}
	}
	f.mu.Unlock()
	d, err := diff.Compare(ctx, f.lower, from, to, diff.Options{Max: maxCompared})
	if err != nil {
		return nil, fmt.Errorf("cannot compare the files: %w", err)
	}
	c := &comparison{from: from, to: to, Difference: d}
	f.mu.Lock()
	defer f.mu.Unlock()
	held := []*comparison{c}
	room := maxHeld
	for _, old := range f.compared {
		if room -= len(old.Changes); room >= 0 && len(held) < comparisons {
			held = append(held, old)
		}
	}
	f.compared = held
	return c, nil
}

// Difference is what differs between two states; nil is the project folder as the
// session first saw it. It isn't to be changed.
func (f *Files) Difference(ctx context.Context, from, to *manifest.Manifest) (diff.Difference, error) {
	c, err := f.compare(ctx, from, to)
	if err != nil {
		return diff.Difference{}, err
	}
	return c.Difference, nil
}

// Between lists what differs between two states; nil is the project folder.
func (f *Files) Between(ctx context.Context, from, to *manifest.Manifest) ([]diff.Change, error) {
	d, err := f.Difference(ctx, from, to)
	return d.Changes, err
}

// see makes the changes as people see them. It is called with counting held.
func (c *comparison) see(ctx context.Context, f *Files) {
	if c.lines == nil {
		c.shown = f.Similar(ctx, c.Difference)
		c.lines = make([]lineCount, len(c.shown.Changes))
		for i := range c.lines {
			c.lines[i].group = f.groups.of(c.shown.Changes[i].Path, false)
		}
	}
}

// count counts the lines of all changes, as people see them, but not beyond a
// moment, unless that is zero: the next call goes on. Contents that were compared
// before aren't read again. It is called with counting held.
func (c *comparison) count(ctx context.Context, f *Files, until time.Time) error {
	c.see(ctx, f)
	if c.counted < len(c.lines) {
		c.byGroup = nil
	}
	for i := c.counted; i < len(c.lines); i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := f.countLines(ctx, c.shown.Changes[i])
		n.group = f.groups.of(c.shown.Changes[i].Path, n.generated)
		c.lines[i], c.counted = n, i+1
		c.total.added += n.added
		c.total.removed += n.removed
		if i%64 == 0 && !until.IsZero() && time.Now().After(until) {
			break
		}
	}
	return nil
}

// totals are the lines of all changes.
func (c *comparison) totals(ctx context.Context, f *Files) (added, removed int, err error) {
	c.counting.Lock()
	defer c.counting.Unlock()
	err = c.count(ctx, f, time.Time{})
	return c.total.added, c.total.removed, err
}

// Page is a part of what differs between two states, with line counts, and the
// totals of all of it. Beside may add to what is listed; nil adds nothing.
func (f *Files) Page(ctx context.Context, from, to *manifest.Manifest, p api.Page, beside func([]diff.Change, []api.Change)) (api.Changes, error) {
	out := api.Changes{Files: []api.Change{}}
	group, after := 0, p.After
	if p.Grouped && after != "" {
		var name string
		if name, after, _ = strings.Cut(after, "."); groupAt(name) < 0 {
			return out, api.Problemf(api.CodeInvalid, "%q begins no page", api.Escape(api.Trim(p.After, 80)))
		}
		group = groupAt(name)
	}
	path, err := api.PathOf(after)
	if err != nil {
		return out, err
	}
	c, err := f.compare(ctx, from, to)
	if err != nil {
		return out, err
	}
	c.counting.Lock()
	defer c.counting.Unlock()
	if err := c.count(ctx, f, time.Now().Add(countTime)); err != nil {
		return out, err
	}
	out.Counting = c.counted < len(c.lines)
	at := func(i int) int { return i } // the change in that place of the list
	if p.Grouped {
		order := c.order()
		at = func(i int) int { return int(order[i]) }
		out.Groups = c.tally()
	}
	all, first := c.shown.Changes, 0
	if p.After != "" {
		first = sort.Search(len(all), func(i int) bool {
			if g := groupAt(c.lines[at(i)].group); p.Grouped && g != group {
				return g > group
			}
			return diff.ComparePaths(all[at(i)].Path, path) > 0
		})
	}
	size := p.Limit
	if size <= 0 {
		size = page
	}
	end := min(first+min(size, maxPage), len(all))
	listed := make([]diff.Change, 0, end-first)
	for i := first; i < end; i++ {
		listed = append(listed, all[at(i)])
		out.Files = append(out.Files, f.counted(all[at(i)], c.lines[at(i)]))
	}
	if beside != nil {
		beside(listed, out.Files)
	}
	out.Total, out.More = len(all)+c.More, len(all)+c.More-end
	out.Added, out.Removed = c.total.added, c.total.removed
	if end < len(all) {
		if out.Next = key(all[at(end-1)].Path); p.Grouped {
			out.Next = c.lines[at(end-1)].group + "." + out.Next
		}
	}
	return out, nil
}

// counted describes a change whose lines were counted.
func (f *Files) counted(c diff.Change, n lineCount) api.Change {
	out := f.List([]diff.Change{c})[0]
	out.Added, out.Removed, out.Counted = n.added, n.removed, n.ok
	out.Binary, out.Type, out.Group = n.binary, n.is, n.group
	if edited(c) {
		out.FromKey = key(c.From)
	}
	return out
}

// Origin is the path that a file of the second of two states had in the first, if it
// was renamed in between, edited or not; else "".
func (f *Files) Origin(ctx context.Context, from, to *manifest.Manifest, path string) (string, error) {
	c, err := f.compare(ctx, from, to)
	if err != nil {
		return "", err
	}
	c.counting.Lock()
	defer c.counting.Unlock()
	c.see(ctx, f)
	if i, found := c.shown.Search(path); found {
		return c.shown.Changes[i].From, nil
	}
	return "", nil
}

// key names a path in requests, whatever its bytes are.
func key(p string) string { return api.KeyOf(p) }

// Diff is one changed file's difference.
func (f *Files) Diff(ctx context.Context, key string, from, to *manifest.Manifest) (api.FileDiff, error) {
	p, err := api.PathOf(key)
	if err != nil {
		return api.FileDiff{}, err
	}
	c, err := f.compare(ctx, from, to)
	if err != nil {
		return api.FileDiff{}, err
	}
	c.counting.Lock()
	c.see(ctx, f)
	c.counting.Unlock()
	i, found := c.shown.Search(p)
	if !found {
		return api.FileDiff{}, api.Problemf(api.CodeNotFound, "%q hasn't changed", api.Escape(p))
	}
	return f.fileDiff(ctx, c.shown.Changes[i])
}

// Diffs yields the differences of all changed files, by path. A file that can't
// be compared says why in its note and doesn't keep the others from being shown.
func (f *Files) Diffs(ctx context.Context, from, to *manifest.Manifest) iter.Seq2[api.FileDiff, error] {
	return f.diffs(ctx, from, to, func(diff.Change, *api.Change) {})
}

func (f *Files) diffs(ctx context.Context, from, to *manifest.Manifest, mark func(diff.Change, *api.Change)) iter.Seq2[api.FileDiff, error] {
	return func(yield func(api.FileDiff, error) bool) {
		c, err := f.compare(ctx, from, to)
		if err != nil {
			yield(api.FileDiff{}, err)
			return
		}
		for i := range c.Changes {
			d, err := f.fileDiff(ctx, c.Changes[i])
			if ctx.Err() != nil {
				yield(api.FileDiff{}, ctx.Err())
				return
			}
			if err != nil {
				d.Note = api.Escape(err.Error())
			}
			mark(c.Changes[i], &d.Change)
			if !yield(d, nil) {
				return
			}
		}
		if c.More > 0 {
			yield(api.FileDiff{Change: api.Change{Path: "…"}, Note: fmt.Sprintf("and %d more changed files, too many to be compared", c.More)}, nil)
		}
	}
}

func (f *Files) fileDiff(ctx context.Context, c diff.Change) (api.FileDiff, error) {
	n := f.countLines(ctx, c)
	n.group = f.groups.of(c.Path, n.generated)
	out := api.FileDiff{Change: f.counted(c, n)}
	before, after, note, err := f.sides(ctx, c)
	switch {
	case note == noteLarge:
		out.Note = note + ": " + facts(n.is, c)
		return out, err
	case note == noteBinary:
		out.Note = facts(n.is, c)
		return out, err
	case err != nil || note != "":
		out.Note = note
		return out, err
	}
	hs, added, removed, err := Hunks(before, after)
	if errors.Is(err, errTooDifferent) {
		out.Note, err = "too different to be compared line by line", nil
	}
	if err != nil {
		return out, fmt.Errorf("cannot compare %q: %w", out.Change.Path, err)
	}
	if !edited(c) { // its hunks are in no file that can be chosen
		out.Hash = hashOf(before, after)
	}
	out.Hunks, out.Change.Added, out.Change.Removed, out.Change.Counted = hs, added, removed, true
	if len(hs) == 0 && out.Note == "" && out.Change.Words == "" && (c.Status == diff.Modified || c.Status == diff.Renamed) {
		out.Note = "the contents are the same"
	}
	return out, nil
}

// hashOf names two texts, and so the hunks of their difference.
func hashOf(before, after string) string {
	h := blake3.New()
	for _, text := range []string{strconv.Itoa(len(before)), " ", before, after} {
		_, _ = h.WriteString(text) // a hash never fails
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// sides reads both contents of a change; note says why they can't be shown as text.
func (f *Files) sides(ctx context.Context, c diff.Change) (before, after, note string, err error) {
	b, err := f.Read(ctx, c.Old, maxDiffBytes)
	if err == nil {
		var a []byte
		if a, err = f.Read(ctx, c.New, maxDiffBytes); err == nil {
			if merge.Binary(b) || merge.Binary(a) {
				return "", "", noteBinary, nil
			}
			return string(b), string(a), "", nil
		}
	}
	switch {
	case errors.Is(err, errTooLarge):
		return "", "", noteLarge, nil
	case errors.Is(err, errNotKept):
		return "", "", "can't be compared", nil // the change's words say why
	}
	return "", "", "", err
}

const (
	noteBinary = "binary"
	noteLarge  = "too large to be shown as text"
)

var (
	errTooLarge = errors.New("too large")
	errNotKept  = errors.New("not kept")
)
