package files

import (
	"maps"
	"slices"

	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
)

// What is put in place of a change that is carried over is decided path by path.
// Folders and files with several names are looked after once all of that is known.

// stays notes what isn't put in place as open, from the path on that from gives.
func (c *carrying) stays(from func(path string) string) {
	for path := range c.apart {
		if c.pieces[path] == nil {
			for dir := from(path); dir != "" && !c.open[dir]; dir = parent(dir) {
				c.open[dir] = true
			}
		}
	}
}

// settle takes back what would take others' files with it: a directory goes only
// when nothing of theirs is in it.
func (c *carrying) settle(wanted map[string]shownPath) {
	c.stays(parent)
	said := make(map[string]bool)
	for _, path := range slices.Sorted(maps.Keys(c.pieces)) {
		then, p := wanted[path].then, c.pieces[path]
		folder := p.Entry == nil && then != nil && isFolder(then) || p.Entry != nil && p.Entry.Kind == manifest.KindDir
		if !folder && c.open[path] {
			delete(c.pieces, path)
			c.problem(path, "this folder stays, since it holds what came later")
			said[path] = true
		}
		for dir := parent(path); then == nil && dir != ""; dir = parent(dir) {
			if c.open[dir] && !said[dir] && c.shape(dir)[1] == manifest.ShapeNone {
				said[dir] = true
				if c.to.Has(c.base, dir) == nil {
					c.done.problems = append(c.done.problems, manifest.Problem{Path: dir, Text: "this folder stays, since it holds what came later"})
				}
			}
		}
	}
}

func (c *carrying) shape(dir string) [2]manifest.Shape {
	s, known := c.shapes[dir]
	if !known {
		s = [2]manifest.Shape{c.onto.Shape(c.base, dir), c.to.Shape(c.base, dir)}
		c.shapes[dir] = s
	}
	return s
}

// linked looks after files with several names.
func (c *carrying) linked() {
	if len(c.pieces) == 0 || !links(c.onto) && !links(c.to) {
		return
	}
	there, names := c.onto.LinkGroups()
	was, wasNames := c.from.LinkGroups()
	want, wantNames := c.to.LinkGroups()
	for _, path := range slices.Sorted(maps.Keys(c.pieces)) {
		p := c.pieces[path]
		if now := c.to.Has(c.base, path); p.Entry != nil || now == nil {
			continue
		}
		if g := there[path]; g != 0 && !slices.Equal(names[g], wasNames[was[path]]) {
			other := slices.IndexFunc(names[g], func(name string) bool { return c.pieces[name] == nil })
			if other >= 0 {
				delete(c.pieces, path)
				c.conflict(path, "it has the name "+api.Escape(names[g][other])+" too by now, which keeps what it is", nil, func(*manifest.Entry) { c.pieces[path] = p })
				continue
			}
		}
		for _, name := range wantNames[want[path]] {
			if c.pieces[name] != nil {
				continue
			}
			if _, differs := c.apart[name]; differs {
				c.problem(path, "it was one file with %s, which has changed since: they are two now", api.Escape(name))
				break
			}
			c.pieces[name] = &manifest.Piece{Path: name, From: c.to}
		}
	}
}

func links(m *manifest.Manifest) bool { return m != nil && m.Root.Sub.Links }

// lifted are the pieces, with directories as a whole where the two states are
// directories of different kinds and nothing of others is in them.
func (c *carrying) lifted() []manifest.Piece {
	c.stays(func(path string) string { return path }) // conflicts and links may have changed what is in place
	var out []manifest.Piece
	wholes := make(map[string]bool)
	for _, path := range slices.Sorted(maps.Keys(c.pieces)) {
		p := c.pieces[path]
		top := ""
		for dir := path; dir != ""; dir = parent(dir) {
			if s := c.shape(dir); s[0] != s[1] && !c.open[dir] {
				top = dir
			}
		}
		if top != "" && !wholes[top] {
			wholes[top] = true
			out = append(out, manifest.Piece{Path: top, From: c.to, Whole: true})
		}
		if top == "" || p.Entry != nil {
			out = append(out, *p)
		}
	}
	return out
}
