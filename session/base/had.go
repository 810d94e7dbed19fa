package base

import (
	"stepbox/runner/overlay/manifest"
)

// Had tells which paths were in the project, as far as is known: files, links, and folders
// that the record names.
func (r *Record) Had() func(path string) bool {
	there, gone := map[string]bool{}, map[string]bool{}
	for _, repo := range r.Repositories {
		for _, t := range repo.Tracked {
			if t.Stage == 0 && !t.Sparse {
				there[manifest.Join(repo.Path, t.Path)] = true
			}
		}
	}
	for i := range r.Entries {
		e := &r.Entries[i]
		if e.Kind == manifest.KindWhiteout {
			gone[e.Path] = true
		} else {
			there[e.Path] = true
		}
	}
	return func(path string) bool {
		for at := path; there[path] && at != ""; at, _ = manifest.Split(at) {
			if gone[at] {
				return false
			}
		}
		return there[path]
	}
}
