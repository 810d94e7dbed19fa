package files

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// deepTree is what it costs to look at folders in one another, of which each has one
// new file: how many changes there are, and the bytes that were allocated for the scan,
// for what differs and for the first page of it.
func deepTree(t testing.TB, name string, levels int) (changes int, bytes uint64) {
	t.Helper()
	u := newUppers(t)
	u.write(u.project, ".gitignore", "build/\n*.log\n/x/**/y\n")
	must.OK(t, os.Mkdir(filepath.Join(u.project, ".git"), 0o755))
	u.Sort(&folderRules{folder: u.project})
	u.look()
	unix.Close(deep(t, u.upper, name, levels))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := u.Page(t.Context(), nil, u.look(), api.Page{Grouped: true}, nil)
	runtime.ReadMemStats(&after)
	must.OK(t, err)
	return got.Total, after.TotalAlloc - before.TotalAlloc
}

// Folders in one another cost what a change costs, however long their names are, and
// those that are too deep for anybody's path cost nothing.
func TestDeepTreesCostWhatChanged(t *testing.T) {
	for _, letters := range []int{1, 12, 200} {
		t.Run(fmt.Sprint(letters), func(t *testing.T) {
			name := strings.Repeat("d", letters)
			changes, bytes := deepTree(t, name, 2*manifest.MaxDeep)
			if most := uint64(64*manifest.MaxLong) * uint64(changes); bytes > most {
				t.Errorf("%d changes cost %d bytes, more than %d", changes, bytes, most)
			}
			if want := min(manifest.MaxDeep, manifest.MaxLong/(letters+1)) + 1; changes < want-1 || changes > want+1 {
				t.Errorf("%d changes are told of, not some %d", changes, want)
			}
		})
	}
}

// BenchmarkDeepTree has the folders that once kept a session from ending.
func BenchmarkDeepTree(b *testing.B) {
	for _, levels := range []int{256, 3000} {
		b.Run(fmt.Sprint(levels), func(b *testing.B) {
			for b.Loop() {
				deepTree(b, strings.Repeat("d", 200), levels)
			}
		})
	}
}
