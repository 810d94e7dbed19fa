package files

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/scan"
	"stepbox/session/e2e/must"
	"stepbox/store"
)

// Bodies are written and looked up many at a time.
var (
	_ content.Batch  = Bodies{}
	_ content.Finder = Bodies{}
)

// Many bodies come back as they were put, those that were there already too.
func TestManyBodiesAtOnce(t *testing.T) {
	u := newUppers(t)
	b := Bodies{u.opened}
	var bodies [][]byte
	for i := range 3 {
		bodies = append(bodies, fmt.Appendf(nil, "body %d", i))
	}
	first, err := b.PutBatch(t.Context(), bodies[:2])
	must.OK(t, err)
	missing, err := b.Missing(t.Context(), []content.Hash{first[0], content.Sum(bodies[2]), first[1]})
	if err != nil || len(missing) != 1 || missing[0] != content.Sum(bodies[2]) {
		t.Errorf("missing are %v (%v), want the third", missing, err)
	}
	hashes, err := b.PutBatch(t.Context(), bodies)
	if err != nil || len(hashes) != len(bodies) {
		t.Fatalf("%d hashes came back (%v)", len(hashes), err)
	}
	for i, h := range hashes {
		r, _, err := b.Open(t.Context(), h)
		must.OK(t, err)
		got, err := io.ReadAll(r)
		r.Close()
		if err != nil || string(got) != string(bodies[i]) {
			t.Errorf("body %d is %q (%v)", i, got, err)
		}
	}
}

// single is Bodies that stores and looks up one at a time.
type single struct{ content.Bodies }

// BenchmarkFirstCheckpoint stores 10,000 files that nobody has seen, and all that
// is kept of them in the project.
func BenchmarkFirstCheckpoint(b *testing.B) {
	dir := b.TempDir()
	for i := range 10_000 {
		p := filepath.Join(dir, "upper", fmt.Sprintf("d%d", i/100), fmt.Sprintf("f%d.js", i))
		must.OK(b, os.MkdirAll(filepath.Dir(p), 0o755))
		must.OK(b, os.WriteFile(p, fmt.Appendf(nil, "file %d\n", i), 0o644))
	}
	project := filepath.Join(dir, "project")
	must.OK(b, os.Mkdir(project, 0o755))
	low, err := lower.Open(project, lower.Options{})
	must.OK(b, err)
	defer low.Close()
	n := 0
	run := func(b *testing.B, wrap func(content.Bodies) content.Bodies) {
		for b.Loop() {
			b.StopTimer()
			n++
			st, err := store.Open(b.Context(), filepath.Join(dir, fmt.Sprintf("data%d", n)))
			must.OK(b, err)
			bodies := wrap(Bodies{st})
			scanner, err := scan.New(filepath.Join(dir, "upper"), bodies, nil)
			must.OK(b, err)
			scanner.Keep(scan.Keep{Lower: low})
			b.StartTimer()
			m, _, err := scanner.Scan(b.Context(), scan.Options{})
			must.OK(b, err)
			if _, err := m.Save(b.Context(), bodies); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			scanner.Close()
			must.OK(b, st.Close())
			b.StartTimer()
		}
	}
	b.Run("batch", func(b *testing.B) { run(b, func(c content.Bodies) content.Bodies { return c }) })
	b.Run("single", func(b *testing.B) { run(b, func(c content.Bodies) content.Bodies { return single{c} }) })
}
