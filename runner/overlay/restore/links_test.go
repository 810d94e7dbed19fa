package restore

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/scan"
)

// A file with ten thousand names comes back with all of them, as
// one file.
func TestManyLinks(t *testing.T) {
	const names = 10_000
	s := newSession(t, startHelper(t), os.TempDir(), nil)
	defer s.close()
	empty := s.scan()
	muts := []mutation{{Op: "mkdir", Path: "d"}, {Op: "write", Path: "f", Data: []byte("one content")}}
	for i := range names - 1 {
		muts = append(muts, mutation{Op: "link", Path: "f", To: fmt.Sprintf("d/%d", i)})
	}
	s.agent(muts...)
	many, st := scanWith(t, s.scanner, scan.Options{})
	if many.Len() != names+1 || len(st.Problems) > 0 {
		t.Fatalf("%d entries, problems %q", many.Len(), st.Problems)
	}
	s.restore(empty, Options{})
	if got := s.scan().Len(); got != 0 {
		t.Errorf("%d entries are left", got)
	}
	s.restore(many, Options{})
	now := s.scan()
	group := now.Lookup("f").Links
	for path, e := range now.All() {
		if path != "" && path != "d" && (e.Links != group || group == 0) {
			t.Fatalf("%q is another file", path)
		}
	}
	if now.Len() != names+1 {
		t.Errorf("%d entries came back", now.Len())
	}
}

// Names of one file in the project become files of their own when one of them goes back,
// which is said; of what an agent linked itself it isn't.
func TestLinksOfTheLowerAreSaid(t *testing.T) {
	s := newSession(t, startHelper(t), os.TempDir(), func(lower string) {
		for _, name := range []string{"a", "alone"} {
			must(t, os.WriteFile(filepath.Join(lower, name), []byte(name), 0o644))
		}
		must(t, os.Link(filepath.Join(lower, "a"), filepath.Join(lower, "b")), os.Link(filepath.Join(lower, "a"), filepath.Join(lower, "c")))
	})
	defer s.close()
	problems := func(target *manifest.Manifest) (paths []string) {
		t.Helper()
		p, err := NewPlan(bg, s.lower, s.scan(), target, Options{})
		must(t, err)
		for _, problem := range p.Problems {
			paths = append(paths, problem.Path)
		}
		_, err = s.h.execute(bg, s.q, p, NewSource(s.lower, s.bodies))
		must(t, err)
		return paths
	}
	empty := s.scan()
	s.agent(mutation{Op: "write", Path: "alone", Data: []byte("x")}, mutation{Op: "write", Path: "mine", Data: []byte("m")}, mutation{Op: "link", Path: "mine", To: "mine too"})
	mine := s.scan()
	s.agent(mutation{Op: "remove", Path: "mine"}, mutation{Op: "remove", Path: "b"})
	if got := problems(mine); !slices.Equal(got, []string{"b"}) {
		t.Errorf("said of %q", got)
	}
	s.agent(mutation{Op: "write", Path: "a", Data: []byte("y")}, mutation{Op: "remove", Path: "c"})
	if got := problems(empty); !slices.Equal(got, []string{"a"}) {
		t.Errorf("of the first of several: said of %q", got)
	}
}
