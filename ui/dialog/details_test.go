package dialog

import (
	"strings"
	"testing"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/ui/paint"
)

// Of a long difference details make no more than they show, as they do in each frame.
func TestDetailsOfALongDifference(t *testing.T) {
	h := api.Hunk{Lines: make([]api.Line, 10_000)}
	for i := range h.Lines {
		h.Lines[i] = api.Line{Op: "+", Text: strings.Repeat("\tlong", 1000)}
	}
	d := &Details{diffs: []api.FileDiff{{Change: api.Change{Path: "long"}, Hunks: []api.Hunk{h}}}}
	dst, rows := paint.Screen{ScreenBuffer: uv.NewScreenBuffer(120, 40)}, 0
	made := testing.AllocsPerRun(1, func() { rows = len(rowsOf(dst, 88, d.changes)) })
	if rows != mostDiff+1 || made > 20*mostDiff {
		t.Errorf("%d rows, for which %v things were made", rows, made)
	}
}

// Details say that there is more than they show only where there is.
func TestDetailsOfManyFiles(t *testing.T) {
	dst := paint.Screen{ScreenBuffer: uv.NewScreenBuffer(120, 40)}
	for _, files := range []int{1, maxDiffs, maxDiffs + 1} {
		d := &Details{now: deed{files: files}}
		for range min(files, maxDiffs) {
			d.diffs = append(d.diffs, api.FileDiff{Change: api.Change{Path: "empty"}})
		}
		rows := rowsOf(dst, 88, d.changes)
		more := strings.Contains(rows[len(rows)-1].spans[0].s, "it goes on")
		if more != (files > maxDiffs) {
			t.Errorf("of %d files it goes on: %v", files, more)
		}
	}
}
