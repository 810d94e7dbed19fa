package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/store"
	"stepbox/store/storetest"
)

// uppers is a session's files without a sandbox: a project folder and a folder
// that stands for the upper of its overlay.
type uppers struct {
	testing.TB
	*Files
	project, upper string
	opened         *store.Store
	told           func(int64)
}

func newUppers(t testing.TB) *uppers {
	t.Helper()
	dir := t.TempDir()
	u := &uppers{TB: t, told: func(int64) {}, project: filepath.Join(dir, "project"), upper: filepath.Join(dir, "upper")}
	for _, d := range []string{u.project, u.upper, filepath.Join(dir, "data")} {
		must.OK(t, os.Mkdir(d, 0o700))
	}
	u.opened = storetest.Open(t, filepath.Join(dir, "data"))
	var err error
	u.Files, err = Open(u.opened, "test", u.project, lower.Options{}, func(v int64) { u.told(v) })
	must.OK(t, err)
	must.OK(t, u.Attach(u.upper, nil, nil, time.Time{}))
	t.Cleanup(u.Close)
	return u
}

// write puts a file into the project or the upper.
func (u *uppers) write(dir, name, text string) {
	u.Helper()
	p := filepath.Join(dir, name)
	must.OK(u, os.MkdirAll(filepath.Dir(p), 0o755))
	must.OK(u, os.WriteFile(p, []byte(text), 0o644))
}

func (u *uppers) look() *manifest.Manifest {
	u.Helper()
	m, err := u.Scan(u.Context())
	must.OK(u, err)
	return m
}

// All changes are listed, page by page, and every page has the totals of all.
func TestPagesListAllChanges(t *testing.T) {
	u := newUppers(t)
	const n = maxPage + 1300
	for i := range n {
		name := fmt.Sprintf("d%d/f%d", i%7, i)
		if i%2 == 0 {
			u.write(u.project, name, "one\n")
		}
		u.write(u.upper, name, "two\nthree\n")
	}
	m := u.look()
	var paths []string
	pages := 0
	for p := (api.Page{}); ; pages++ {
		got, err := u.Page(t.Context(), nil, m, p, nil)
		must.OK(t, err)
		if got.Total != n || got.Added != 2*n || got.Removed != n/2 {
			t.Fatalf("page %d: %d files +%d -%d, want %d +%d -%d", pages, got.Total, got.Added, got.Removed, n, 2*n, n/2)
		}
		for _, f := range got.Files {
			paths = append(paths, f.Path)
		}
		if len(paths)+got.More != n {
			t.Fatalf("page %d: %d listed so far and %d more aren't %d", pages, len(paths), got.More, n)
		}
		if p.After = got.Next; p.After == "" {
			break
		}
		p.Limit = 10 * maxPage // a page is bounded whatever is asked for
	}
	if pages < 2 {
		t.Errorf("%d pages followed the first, want at least 2", pages)
	}
	i := 0
	for d, err := range u.Diffs(t.Context(), nil, m) {
		must.OK(t, err)
		if i >= len(paths) || d.Change.Path != paths[i] || len(d.Hunks) != 1 || d.Change.Added != 2 {
			t.Fatalf("difference %d is %+v", i, d)
		}
		i++
	}
	if i != n || len(paths) != n {
		t.Fatalf("%d differences and %d paths, want %d", i, len(paths), n)
	}
}

// A page begins after the path that the last one ended with, also when that
// path isn't changed any more.
func TestPagesGoOnWhereTheLastEnded(t *testing.T) {
	u := newUppers(t)
	for _, name := range []string{"a", "b/c", "b.txt", "d", "\xff\n"} {
		u.write(u.upper, name, name)
	}
	for _, tt := range []struct {
		after string
		want  int
	}{{"", 5}, {"a", 4}, {"a0", 4}, {"b/c", 3}, {"b/zz", 3}, {"\xff\n", 0}} {
		p := api.Page{}
		if tt.after != "" {
			p.After = key(tt.after)
		}
		got, err := u.Page(t.Context(), nil, u.look(), p, nil)
		if err != nil || len(got.Files) != tt.want || got.Total != 5 {
			t.Errorf("after %q there are %d of %d (%v), want %d of 5", tt.after, len(got.Files), got.Total, err, tt.want)
		}
	}
	if _, err := u.Page(t.Context(), nil, u.look(), api.Page{After: "no key!"}, nil); code(err) != api.CodeUsage {
		t.Errorf("a malformed place gives %v", err)
	}
}

// Showing n files works out once what differs: a file's diff looks one path up.
func TestStatesAreComparedOnce(t *testing.T) {
	u := newUppers(t)
	u.write(u.project, "a", "1\n")
	u.write(u.upper, "a", "2\n")
	m := u.look()
	first, err := u.compare(t.Context(), nil, m)
	must.OK(t, err)
	if _, err := u.Diff(t.Context(), key("a"), nil, m); err != nil {
		t.Fatal(err)
	}
	if _, err := u.Diff(t.Context(), key("b"), nil, m); code(err) != api.CodeNotFound {
		t.Errorf("a file that hasn't changed gives %v", err)
	}
	again, err := u.compare(t.Context(), nil, u.look())
	if err != nil || again != first {
		t.Errorf("nothing moved and it was compared again (%v)", err)
	}
	u.write(u.upper, "a", "3\n")
	if again, err = u.compare(t.Context(), nil, u.look()); err != nil || again == first {
		t.Errorf("a file moved and the old comparison was used (%v)", err)
	}
}

func code(err error) string {
	var p *api.Problem
	if errors.As(err, &p) {
		return p.Code
	}
	return ""
}
