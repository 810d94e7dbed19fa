package restore

import (
	"maps"
	"slices"
	"testing"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
)

// checkGraft: all changes grafted lead to where they were made, and some of
// them to a state that has those at least, and no others.
func checkGraft(s *session, a, b saved, some int, fail func(string, ...any)) {
	changed := func(from, to *manifest.Manifest) map[string]bool {
		d, err := diff.Compare(bg, s.lower, from, to, diff.Options{})
		if err != nil {
			fail("diff: %v", err)
		}
		paths := map[string]bool{}
		for _, c := range d.Changes {
			paths[c.Path] = true
			if c.From != "" {
				paths[c.From] = true
			}
		}
		return paths
	}
	all := changed(a.manifest, b.manifest)
	paths := slices.Sorted(maps.Keys(all))
	if left := changed(manifest.Graft(a.manifest, b.manifest, paths), b.manifest); len(left) > 0 {
		fail("with all of %q grafted, these differ: %q", paths, slices.Collect(maps.Keys(left)))
	}
	paths = paths[:min(some, len(paths))]
	got := changed(a.manifest, manifest.Graft(a.manifest, b.manifest, paths))
	for _, path := range paths {
		if !got[path] {
			fail("grafting %q leaves %q out", paths, path)
		}
	}
	for path := range got {
		if !all[path] {
			fail("grafting %q changes %q", paths, path)
		}
	}
}

// TestGraft tells the changes of one writer from those of another.
func TestGraft(t *testing.T) {
	h := startHelper(t)
	for name, place := range places(t) {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, h, place, project(t))
			defer s.close()
			first := s.scan()
			s.agent(mutation{Op: "write", Path: "a", Data: []byte("agent's")}, mutation{Op: "write", Path: "dir/mine", Data: []byte("agent's")},
				mutation{Op: "remove", Path: "b"})
			edited := s.scan()
			s.agent(mutation{Op: "write", Path: "dir/x", Data: []byte("survivor's")}, mutation{Op: "write", Path: "log", Data: []byte("survivor's")},
				mutation{Op: "remove", Path: "c"})
			last := s.scan()
			var paths []string
			for _, c := range s.diff(edited, last) {
				paths = append(paths, c.Path)
			}
			if got, want := brief(s.diff(first, manifest.Graft(first, last, paths))), []string{"D c file", "M dir/x file content", "A log file"}; !slices.Equal(got, want) {
				t.Errorf("the survivor's are %q, want %q", got, want)
			}
			if got, want := brief(s.diff(nil, manifest.Graft(nil, last, paths))), []string{"D c file", "M dir/x file content", "A log file"}; !slices.Equal(got, want) {
				t.Errorf("on nothing, the survivor's are %q, want %q", got, want)
			}
		})
	}
}
