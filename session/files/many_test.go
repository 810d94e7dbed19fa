package files

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"stepbox/runner/overlay/lower"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/store/storetest"
)

var manyChanges = flag.Int("changes", 10_000, "how many changed files BenchmarkChanges has")

// From a write to the first page of what differs, as it goes over the socket:
//
//	go test ./session/files -run '^$' -bench Changes -changes 100000
//
// first is with nothing known, one after one file of many was written, diff a
// file's difference.
func BenchmarkChanges(b *testing.B) {
	dir := b.TempDir()
	project, upper := filepath.Join(dir, "project"), filepath.Join(dir, "upper")
	write := func(folder string, i int, text string) {
		name := filepath.Join(folder, fmt.Sprintf("module%02d/package%03d/file%05d.go", i/5000, i/50, i))
		if i%50 == 0 {
			must.OK(b, os.MkdirAll(filepath.Dir(name), 0o755))
		}
		must.OK(b, os.WriteFile(name, []byte(text), 0o644))
	}
	for _, d := range []string{project, upper} {
		must.OK(b, os.Mkdir(d, 0o755))
	}
	for i := range *manyChanges {
		write(project, i, fmt.Sprintf("package p\n\nvar x = %d\n", i))
		write(upper, i, fmt.Sprintf("package p\n\nvar x = %d\nvar y = 1\n", -i))
	}
	st := storetest.Open(b, filepath.Join(dir, "data"))
	opened := func() *Files {
		f, err := Open(st, "bench", project, lower.Options{}, nil)
		if err == nil {
			err = f.Attach(upper, nil, nil, time.Time{})
		}
		must.OK(b, err)
		return f
	}
	look := func(b *testing.B, f *Files) {
		m, err := f.Scan(b.Context())
		must.OK(b, err)
		got, err := f.Page(b.Context(), nil, m, api.Page{Grouped: true, Limit: 1000}, nil)
		if err == nil {
			_, err = json.Marshal(got)
		}
		if err != nil || got.Total != *manyChanges {
			b.Fatalf("%d of %d changes (%v)", got.Total, *manyChanges, err)
		}
	}
	warm := opened()
	defer warm.Close()
	look(b, warm) // the contents are kept now
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			f := opened()
			look(b, f)
			f.Close()
		}
	})
	b.Run("one", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			write(upper, 1+i%40, fmt.Sprintf("package p\n\nvar z = %d\n", i))
			look(b, warm)
		}
	})
	b.Run("diff", func(b *testing.B) {
		m, err := warm.Scan(b.Context())
		must.OK(b, err)
		for b.Loop() {
			if _, err := warm.Diff(b.Context(), key("module00/package000/file00007.go"), nil, m); err != nil {
				b.Fatal(err)
			}
		}
	})
}
