package apply

import (
	"cmp"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

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
				b.steps[dir] = project.Step{Path: dir, New: project.State{Kind: manifest.KindDir, Mode: mode}}
				continue
			}
			b.left(at, "what it would be in isn't a folder in the project: "+dir)
			delete(b.steps, at)
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
			b.left(dir, "the project has something in this folder that the session didn't: "+names[foreign])
			delete(b.steps, dir)
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
	at := manifest.Time{Sec: now.Unix(), Nsec: uint32(now.Nanosecond())}
	entry := func(name string, s project.State) manifest.Entry {
		e := manifest.Entry{
			Name: name, Kind: s.Kind, Mode: s.Mode & 0o777, Size: s.Size, Hash: s.Hash, Target: s.Target, MTime: at,
			UID: uint32(os.Getuid()), GID: uint32(os.Getgid()),
		}
		switch s.Kind {
		case 0:
			e.Kind = manifest.KindWhiteout
		case manifest.KindSymlink:
			e.Mode = 0o777
		}
		return e
	}
	below := map[string][]string{} // what each folder holds, by name
	seen := map[string]bool{}
	for p := range b.steps {
		for p != "" && !seen[p] {
			seen[p] = true
			dir, name := manifest.Split(p)
			below[dir] = append(below[dir], name)
			p = dir
		}
	}
	var node func(p string) *manifest.Node
	node = func(p string) *manifest.Node {
		_, name := manifest.Split(p)
		s, planned := b.steps[p]
		if !planned {
			s.New = b.looked[p] // a folder that it is in, which was looked at for that
			if p == "" || s.New.Absent() {
				s.New = project.State{Kind: manifest.KindDir, Mode: 0o755}
			}
		}
		n := &manifest.Node{Entry: entry(name, s.New)}
		if n.Kind != manifest.KindDir {
			return n
		}
		n.Opaque = planned && s.Old.Kind != manifest.KindDir && !s.Old.Absent()
		slices.Sort(below[p])
		var list []*manifest.Node
		for _, name := range below[p] {
			list = append(list, node(manifest.Join(p, name)))
		}
		n.Sub = manifest.NewDir(list, nil)
		return n
	}
	return &manifest.Manifest{Root: node("")}
}
