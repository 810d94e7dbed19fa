package apply

import (
	"cmp"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/project"
)

// above lists the folders that a path is in, from the top, without the project.
func above(at string) []string {
	var out []string
	for i := range len(at) {
		if at[i] == '/' {
			out = append(out, at[:i])
		}
	}
	return out
}

// makeFolders adds steps for the folders that files need and the project lacks.
// What has no folder to be in, since there is something else of its name, is left.
func (b *planner) makeFolders() error {
	for _, at := range slices.Sorted(maps.Keys(b.steps)) {
		if b.steps[at].New.Absent() {
			continue
		}
		for _, dir := range above(at) {
			s, planned := b.steps[dir]
			has, err := b.look(dir)
			switch {
			case err != nil && b.fatal(err):
				return err
			case err == nil && planned && s.New.Kind == manifest.KindDir, err == nil && !planned && has.Kind == manifest.KindDir:
				continue
			case err == nil && !planned && has.Absent():
				mode := uint32(0o755)
				if e := b.sel.To.Lookup(dir); e != nil && e.Kind == manifest.KindDir {
					mode = e.Mode & 0o775 // nothing is said of it
				}
				b.steps[dir] = project.Step{Path: dir, New: project.State{Kind: manifest.KindDir, Meta: manifest.Meta{Mode: mode}}}
				continue
			}
			b.drop(at, "what it would be in isn't a folder in the project: "+dir)
			break
		}
	}
	return nil
}

// removeFolders adds steps for the folders that the session removed with all that
// was in them, as far as the project has nothing else in them by now.
func (b *planner) removeFolders() error {
	dirs := map[string]bool{} // whether the folder itself is a change that is listed
	for at, s := range b.steps {
		if s.Old.Kind == manifest.KindDir && s.New.Kind != manifest.KindDir {
			dirs[at] = true
		}
		if !s.New.Absent() {
			continue
		}
		for _, dir := range above(at) {
			if _, planned := b.steps[dir]; !planned && goneIn(b.sel.To, dir) {
				dirs[dir] = false
			}
		}
	}
	deepest := slices.SortedFunc(maps.Keys(dirs), func(x, y string) int {
		return cmp.Or(strings.Count(y, "/")-strings.Count(x, "/"), cmp.Compare(x, y))
	})
	for _, dir := range deepest {
		has, err := b.look(dir)
		if err != nil && b.fatal(err) {
			return err
		}
		if err != nil || has.Kind != manifest.KindDir {
			continue
		}
		names, err := b.folder.Names(b.ctx, dir)
		if err != nil {
			return err
		}
		foreign := slices.IndexFunc(names, func(name string) bool {
			s, planned := b.steps[path.Join(dir, name)]
			return !planned || !s.New.Absent()
		})
		switch listed := dirs[dir]; {
		case foreign < 0 && !listed:
			b.steps[dir] = project.Step{Path: dir, Old: has}
		case foreign >= 0 && listed:
			b.drop(dir, "the project has something in this folder that the session didn't: "+names[foreign])
		}
	}
	return nil
}

// goneIn says whether a state has no folder any more where the project had one.
func goneIn(m *manifest.Manifest, dir string) bool {
	opaque := false
	for _, at := range append(above(dir), dir) {
		e := m.Lookup(at)
		switch {
		case e == nil:
			return opaque
		case e.Kind != manifest.KindDir:
			return true
		}
		opaque = opaque || e.Opaque
	}
	return false
}

// checked is the state that checks run on: the project with exactly the steps of
// the plan made.
func (b *planner) checked() *manifest.Manifest {
	if len(b.steps) == 0 {
		return nil
	}
	now := time.Now()
	var pieces []manifest.Piece
	put := func(at string, s project.State, opaque bool) {
		e := fileOf(at, s)
		if e == nil {
			e = &diff.File{Entry: manifest.Entry{Kind: manifest.KindWhiteout}}
		}
		e.MTime, e.UID, e.GID = manifest.Time{Sec: now.Unix(), Nsec: uint32(now.Nanosecond())}, uint32(os.Getuid()), uint32(os.Getgid())
		e.Opaque = opaque
		pieces = append(pieces, manifest.Piece{Path: at, Entry: &e.Entry})
	}
	led := map[string]bool{} // folders that something is in
	for at, s := range b.steps {
		put(at, s.New, s.New.Kind == manifest.KindDir && s.Old.Kind != manifest.KindDir && !s.Old.Absent())
		for _, dir := range append(above(at), "") {
			if _, planned := b.steps[dir]; planned || led[dir] {
				continue
			}
			led[dir] = true
			has := b.looked[dir]
			if dir == "" || has.Absent() {
				has = project.State{Kind: manifest.KindDir, Meta: manifest.Meta{Mode: 0o755}}
			}
			put(dir, has, false)
		}
	}
	return manifest.Transplant(nil, pieces)
}
