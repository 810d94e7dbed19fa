package tree

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"strings"

	"stepbox/policy/git"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/base"
	"stepbox/session/frozen"
	"stepbox/session/outfit"
)

const hidden = "it is hidden from the agent"

// record puts what the project was into an empty tree.
func (t *Tree) record(rec *base.Record) {
	t.repos, t.objects = rec.Repositories, make([]*objects, len(rec.Repositories))
	for i := range rec.Repositories {
		r := &rec.Repositories[i]
		t.folder(r.Path)
		for j := range r.Tracked {
			t.tracked(i, manifest.Join(r.Path, r.Tracked[j].Path), &r.Tracked[j])
		}
	}
	for i := range rec.Entries {
		e := &rec.Entries[i]
		if e.Kind == manifest.KindWhiteout {
			t.remove(e.Path)
			continue
		}
		dir, name := manifest.Split(e.Path)
		at, was := t.folder(dir), t.find(e.Path)
		f := &File{Entry: e.Entry, Path: e.Path}
		if f.Name = name; f.Kind == manifest.KindDir && was != nil {
			f.below = was.below
		}
		at.put(f)
	}
}

// tracked is a path of an index.
func (t *Tree) tracked(repo int, path string, e *base.Tracked) {
	switch {
	case e.Sparse || e.Stage != 0: // it isn't there, or an entry tells what is
		return
	case e.Mode == base.ModeSubmodule:
		t.folder(path)
		return
	case len(e.Hash) == 0:
		t.gap(path, hidden)
		return
	}
	dir, name := manifest.Split(path)
	f := &File{Path: path, blob: e.Hash, repo: repo}
	f.Entry = manifest.Entry{Name: name, Kind: manifest.KindFile, Meta: manifest.Meta{Mode: 0o644, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}, Size: -1}
	switch e.Mode {
	case base.ModeExecutable:
		f.Mode = 0o755
	case base.ModeLink:
		f.Kind, f.Mode = manifest.KindSymlink, 0o777
	}
	t.folder(dir).put(f)
}

// folder finds or makes a folder.
func (t *Tree) folder(path string) *File {
	at := t.root
	if path == "" {
		return at
	}
	for name := range strings.SplitSeq(path, "/") {
		next := at.below[name]
		if next == nil || next.Kind != manifest.KindDir {
			next = &File{Path: manifest.Join(at.Path, name), plain: true}
			next.Entry = manifest.Entry{Name: name, Kind: manifest.KindDir, Meta: manifest.Meta{Mode: 0o755, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}}
			at.put(next)
		}
		at = next
	}
	return at
}

func (f *File) put(c *File) {
	if f.below == nil {
		f.below = map[string]*File{}
	}
	f.below[c.Name] = c
}

func (t *Tree) remove(path string) {
	dir, name := manifest.Split(path)
	if at := t.find(dir); at != nil {
		delete(at.below, name)
	}
}

// overBase puts what the session first saw where it wrote in place of what the folder
// was at the start: a person may have written in between. What it knew when it was
// resumed or forked, old, is older than that start, and counts only below what up, the
// upper, covers.
func (t *Tree) overBase(at *File, b, old, up *manifest.Node) {
	if b.Opaque && b.Unsaved == "" && (old == nil || !old.Opaque) { // all that was in it is listed
		maps.DeleteFunc(at.below, func(name string, _ *File) bool { return b.Sub.Find(name) == nil })
	}
	for n := range b.Sub.All() {
		was, had, above := at.below[n.Name], find(old, n.Name), find(up, n.Name)
		if above != nil && (above.Kind != manifest.KindDir || above.Opaque) {
			had = nil
		}
		switch {
		case n.Name == ".git":
		case n.Kind == manifest.KindDir:
			t.folderOver(at, n, had, above)
		case unchanged(had, n):
			if was.lacks(n) {
				at.seen(n)
			}
		case n.Kind == manifest.KindWhiteout:
			delete(at.below, n.Name)
		case was.tells(n): // the record of the start knows more
			was.unkept = &n.Entry
		default:
			at.seen(n)
		}
	}
}

// folderOver is overBase for a folder in one.
func (t *Tree) folderOver(at *File, n, had, up *manifest.Node) {
	was := at.below[n.Name]
	there := was != nil && was.Kind == manifest.KindDir
	f := &File{Entry: n.Entry, Path: manifest.Join(at.Path, n.Name)}
	f.Opaque = false
	older := had != nil && had.Kind == n.Kind
	if there {
		f.below = was.below
		if f.Unsaved == "" && !n.Opaque {
			f.Unsaved = was.Unsaved
		}
		if older && !was.plain {
			f.Entry = was.Entry
		}
	}
	t.overBase(f, n, had, up)
	if there || !older || up != nil || len(f.below) > 0 { // else it is gone since
		at.put(f)
	}
}

// seen puts into a folder what the session first saw there.
func (f *File) seen(n *manifest.Node) {
	c := &File{Entry: n.Entry, Path: manifest.Join(f.Path, n.Name)}
	if c.Links = 0; c.Unsaved != "" {
		c.unkept = &n.Entry
	}
	f.put(c)
}

// lacks says whether of a file no more is known than what it looked like, which is as
// this one does, whose content is kept.
func (f *File) lacks(n *manifest.Node) bool {
	return f != nil && f.blob == nil && !f.kept() && n.Kind == manifest.KindFile && n.Unsaved == "" && f.alike(&n.Entry)
}

// tells says whether more is known of a file than that its content wasn't kept.
func (f *File) tells(n *manifest.Node) bool {
	return f != nil && n.Unsaved != "" && f.Kind == n.Kind && (f.blob != nil || f.alike(&n.Entry))
}

// unchanged says whether it was known already what there was.
func unchanged(had, n *manifest.Node) bool {
	return had != nil && had.Hash == n.Hash && had.Unsaved == n.Unsaved && (&File{Entry: had.Entry}).alike(&n.Entry)
}

// find is what a folder has under a name; nil: nothing, or it is none itself.
func find(folder *manifest.Node, name string) *manifest.Node {
	if folder == nil || folder.Kind != manifest.KindDir {
		return nil
	}
	return folder.Sub.Find(name)
}

// fill has the contents of files that the session came to see only later, where the
// start knows of a file no more than what it looked like; with partial, of files too
// that the start, of which not all is known, says nothing about.
func (t *Tree) fill(at *File, b *manifest.Node, partial bool) {
	for n := range b.Sub.All() {
		was := at.below[n.Name]
		switch {
		case n.Name == ".git":
		case n.Kind == manifest.KindDir && was == nil && partial:
			was = &File{Entry: n.Entry, Path: manifest.Join(at.Path, n.Name)}
			was.Opaque = false
			at.put(was)
			t.fill(was, n, partial)
		case n.Kind == manifest.KindDir && was != nil && was.Kind == manifest.KindDir:
			t.fill(was, n, partial)
		case was == nil && partial && n.Kind < manifest.KindDevice, was.lacks(n):
			at.seen(n)
		}
	}
}

// alike says whether two files look the same, as far as that can be told without
// their contents.
func (f *File) alike(e *manifest.Entry) bool {
	return f.Kind == e.Kind && f.Size == e.Size && f.MTime == e.MTime && f.Mode == e.Mode && f.Target == e.Target
}

// overUpper puts what the session wrote on top, whiteouts too: they may cover what isn't known.
func (t *Tree) overUpper(at *File, up *manifest.Node) {
	for n := range up.Sub.All() {
		was := at.below[n.Name]
		f := &File{Entry: n.Entry, Path: manifest.Join(at.Path, n.Name), whole: n.Opaque, was: was, wrote: true}
		if n.Name == ".git" { // what it covers isn't in the record, so that its whiteouts are needed
			f.upper = n
		}
		if n.Kind == manifest.KindDir && !n.Opaque && was != nil && was.Kind == manifest.KindDir {
			f.below = was.below
			if f.Unsaved == "" {
				f.Unsaved = was.Unsaved
			}
		}
		f.Opaque = false
		at.put(f)
		if n.Kind == manifest.KindDir {
			t.overUpper(f, n)
		}
	}
	if up.Name == "" {
		at.Entry, at.plain = up.Entry, false
	}
}

// ownFolders says of which repositories the own folders aren't what they were, for
// they aren't in the record.
func (t *Tree) ownFolders(ctx context.Context) {
	had := frozen.Git{Project: t.Session.Folder, Folder: t.source.Store.SessionDir(t.Session.ID)}
	taken, _, err := frozen.Load(had.Folder)
	err = cmp.Or(err, had.Beyond(taken))
	for i := range t.repos {
		if ctx.Err() != nil {
			return
		}
		if why := t.ownFolder(i, had, err); why != "" {
			t.gap(manifest.Join(t.repos[i].Path, ".git"), why)
		}
	}
}

// ownFolder says what of a repository's own folder isn't what it was, unless something failed before.
func (t *Tree) ownFolder(i int, had frozen.Git, failed error) string {
	r := &t.repos[i]
	dir, err := t.repository(i)
	if err = cmp.Or(err, failed); err != nil {
		return "git's own folder isn't in the record, and " + err.Error()
	}
	g := git.OpenAs(dir, outfit.Person(t.source.Home, t.source.Env), had.Of)
	root, _ := g.Root()
	commit, branch := g.Head()
	switch {
	case root == "":
		return "git's own folder isn't in the record, and isn't there any more"
	case r.Prefix != "" || root != dir || had.Outer != "" && r.Path == "":
		return fmt.Sprintf("the repository lies outside of the project: it is as the session had it last, at commit %s, without what that wrote there", short(commit))
	case commit != r.Commit || branch != r.Branch:
		return fmt.Sprintf("git's own folder isn't in the record but for what the session wrote in it; the rest is as the session had it last, at commit %s and not at %s", short(commit), short(r.Commit))
	}
	return ""
}

func short(commit string) string {
	if commit == "" {
		return "none"
	}
	return commit[:min(12, len(commit))]
}
