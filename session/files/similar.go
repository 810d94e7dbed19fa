package files

import (
	"context"
	"path"
	"strings"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/merge"
)

// Bounds of looking for files that were renamed and edited, of one comparison.
const (
	leastSimilar = 64        // bytes; smaller files are like each other by chance
	mostSimilar  = 512 << 10 // bytes
	mostPairs    = 2000      // files that are compared with each other
	similarBytes = 16 << 20  // that are read
)

// edited says whether a change is a rename that people see where two files differ:
// one that is gone and one, much like it, that came.
func edited(c diff.Change) bool { return c.Status == diff.Renamed && c.Content }

// Similar joins files that are gone with those much like them that came. It is
// for people to read: whatever is chosen, taken back or applied is two files.
func (f *Files) Similar(ctx context.Context, d diff.Difference) diff.Difference {
	candidate := func(e *diff.File) bool {
		return e != nil && e.Kind == manifest.KindFile && e.Unsaved == "" && e.Size >= leastSimilar && e.Size <= mostSimilar
	}
	var gone, came []int
	for i, c := range d.Changes {
		switch {
		case c.Status != diff.Deleted && c.Status != diff.Added || f.groups.of(c.Path, false) == groupGit:
		case c.Status == diff.Deleted && candidate(c.Old):
			gone = append(gone, i)
		case candidate(c.New):
			came = append(came, i)
		}
	}
	if len(gone) == 0 || len(came) == 0 || d.More > 0 {
		return d
	}
	s := similarity{Files: f, ctx: ctx, seen: map[int]map[string]int{}, left: similarBytes, pairs: mostPairs}
	to, from := map[int]int{}, map[int]int{}
	for _, sameName := range []bool{true, false} {
		name := func(i int) string {
			if sameName {
				return path.Base(d.Changes[i].Path)
			}
			return ""
		}
		byName := map[string][]int{}
		for _, i := range came {
			byName[name(i)] = append(byName[name(i)], i)
		}
		for _, i := range gone {
			if _, taken := to[i]; taken {
				continue
			}
			best, most := -1, 0
			for _, j := range byName[name(i)] {
				if _, taken := from[j]; taken {
					continue
				}
				if alike := s.percent(&d.Changes[i], i, &d.Changes[j], j); alike >= 50 && alike > most {
					best, most = j, alike
				}
			}
			if best >= 0 {
				to[i], from[best] = best, i
			}
		}
	}
	if len(to) == 0 {
		return d
	}
	out := diff.Difference{}
	for i, c := range d.Changes {
		if _, joined := to[i]; joined {
			continue
		}
		if j, ok := from[i]; ok {
			old := d.Changes[j]
			c.Status, c.From, c.Old = diff.Renamed, old.Path, old.Old
			c.Mode = c.Old.Mode != c.New.Mode
			c.Owner = c.Old.UID != c.New.UID || c.Old.GID != c.New.GID
			c.Xattrs = !c.Old.SameXattrs(&c.New.Meta)
		}
		out.Changes = append(out.Changes, c)
	}
	return out
}

// similarity compares files, each of which it reads once.
type similarity struct {
	*Files
	ctx   context.Context
	seen  map[int]map[string]int // by change: its lines and how often it has them; nil when they can't be compared
	left  int64                  // bytes that may still be read
	pairs int                    // and pairs that may be compared
}

// percent says how much of two files is the same, in percent of the larger one.
func (s *similarity) percent(gone *diff.Change, i int, came *diff.Change, j int) int {
	small, large := min(gone.Old.Size, came.New.Size), max(gone.Old.Size, came.New.Size)
	if small*2 < large || s.pairs <= 0 {
		return 0
	}
	s.pairs--
	id, known := contentsOf(diff.Change{Old: gone.Old, New: came.New})
	if n, ok := s.alike.get(id); ok && known {
		return n
	}
	a, b := s.lines(i, gone.Old), s.lines(j, came.New)
	common := 0
	for line, n := range a {
		common += min(n, b[line]) * len(line)
	}
	n := int(int64(common) * 100 / large)
	if known && a != nil && b != nil {
		s.alike.put(id, n, maxCounts)
	}
	return n
}

func (s *similarity) lines(i int, e *diff.File) map[string]int {
	lines, ok := s.seen[i]
	if ok || s.left < e.Size || s.ctx.Err() != nil {
		return lines
	}
	s.left -= e.Size
	s.seen[i] = nil
	b, err := s.Read(s.ctx, e, maxDiffBytes)
	if err == nil && !merge.Binary(b) {
		lines = make(map[string]int)
		for line := range strings.Lines(string(b)) {
			lines[line]++
		}
		s.seen[i] = lines
	}
	return lines
}
