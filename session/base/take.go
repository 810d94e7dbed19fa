package base

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stepbox/policy/git"
	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
)

// Options say what to take a record of.
type Options struct {
	Folder string       // the project, absolute and without links
	Lower  *lower.Lower // the same, without what is hidden
	Person git.Person
	Bodies content.Bodies          // where contents are kept
	Moved  func(dir string) string // where a repository's folder is read; see git.OpenAs
}

// limits bound a record.
type limits struct {
	names    int   // names that are looked at
	fileData int64 // bytes of one file's content that are kept
	data     int64 // bytes of all contents that are kept
	files    int   // files whose contents are kept
	read     int64 // bytes that are read, for hashes, too
}

// most is what a record may take. Tests have less.
var most = limits{names: 1_000_000, fileData: 64 << 20, data: 256 << 20, files: 20_000, read: 1 << 30}

const maxRepositories = 1000

var errMany = errors.New("too many names")

// Take looks at a project folder. The folder may change meanwhile: each file is
// what it was when Take came to it, and one that moves while it is read says so.
// When ctx ends it returns what it has, which is said to be incomplete; it fails
// only if contents can't be kept.
func Take(ctx context.Context, o Options) (*Record, error) {
	if o.Moved == nil {
		o.Moved = func(dir string) string { return dir }
	}
	t := &taker{Options: o, ctx: ctx, left: most, collector: lower.NewCollector(o.Bodies), rec: &Record{}, uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())}
	t.enter("", git.OpenAs(o.Folder, o.Person, o.Moved))
	err := o.Lower.Walk(ctx, t.name)
	for len(t.scopes) > 0 {
		t.leave(err == nil)
	}
	// What was read is kept all the same: what the record names must be there.
	if err := t.collector.Flush(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	switch {
	case errors.Is(err, errMany):
		t.rec.Missing = fmt.Sprintf("the project has more than %d files", most.names)
	case ctx.Err() != nil:
		t.rec.Missing = "the session ended first"
	case errors.Is(err, errStore):
		return nil, err
	case err != nil:
		t.rec.Missing = err.Error()
	}
	slices.SortFunc(t.rec.Entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(t.rec.Repositories, func(a, b Repository) int { return strings.Compare(a.Path, b.Path) })
	return t.rec, nil
}

// taker is one walk through a project.
type taker struct {
	Options
	ctx       context.Context
	collector *lower.Collector
	rec       *Record
	scopes    []*scope // of repositories in each other, the innermost last
	left      limits
	uid, gid  uint32 // this process's, the only ones that the agent's user namespace has
}

var errStore = errors.New("cannot keep contents")

// enter begins a repository, or what isn't in one.
func (t *taker) enter(path string, r *git.Repository) {
	t.scopes = append(t.scopes, newScope(path, r))
}

// leave ends the innermost scope. If all of it was looked at, what it has tracked
// and wasn't there is gone.
func (t *taker) leave(whole bool) {
	s := t.scopes[len(t.scopes)-1]
	t.scopes = t.scopes[:len(t.scopes)-1]
	if whole {
		for _, rel := range s.deleted() {
			t.add(Entry{manifest.Join(s.path, rel), manifest.Entry{Kind: manifest.KindWhiteout}})
		}
	}
	if s.git != nil {
		s.hide()
		t.rec.Repositories = append(t.rec.Repositories, s.record)
	}
}

// name is given every name of the project.
func (t *taker) name(n *lower.Found) error {
	if t.left.names--; t.left.names < 0 {
		return errMany
	}
	if e := &n.Entry; !n.Hidden && e.Unsaved == "" && (e.UID != t.uid || e.GID != t.gid) {
		t.rec.Foreign++
		t.rec.Foreigner = cmp.Or(t.rec.Foreigner, n.Path)
	}
	s := t.scopes[len(t.scopes)-1]
	for s.path != "" && !strings.HasPrefix(n.Path, s.path+"/") {
		t.leave(true)
		s = t.scopes[len(t.scopes)-1]
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(n.Path, s.path), "/")
	switch {
	case n.Hidden:
		s.apart[rel] = true
		s.secret[rel] = true
		return lower.ErrSkipDir
	case n.Entry.Name == ".git":
		return lower.ErrSkipDir
	case n.Entry.Unsaved != "":
		s.apart[rel] = true
		t.again(entry(n))
		return lower.ErrSkipDir
	case n.Entry.Kind == manifest.KindDir:
		return t.folder(s, rel, n)
	}
	return t.file(s, rel, n)
}

// again adds an entry, in place of an earlier one of the same folder.
func (t *taker) again(e Entry) {
	if i := len(t.rec.Entries) - 1; i >= 0 && t.rec.Entries[i].Path == e.Path {
		t.rec.Entries = t.rec.Entries[:i]
	}
	t.add(e)
}

func (t *taker) add(e Entry) { t.rec.Entries = append(t.rec.Entries, e) }

func entry(n *lower.Found) Entry {
	e := Entry{n.Path, n.Entry}
	e.Name = ""
	return e
}

const ignored = "not kept: git ignores it"

func (t *taker) folder(s *scope, rel string, n *lower.Found) error {
	if !s.knows() {
		if t.nested(s, rel, n) == nil {
			t.add(entry(n))
		}
		return nil
	}
	tracked := s.git.Tracked(rel)
	if !tracked && s.git.Ignored(rel, true) {
		e := entry(n)
		e.Unsaved = ignored
		t.add(e)
		return lower.ErrSkipDir
	}
	if t.nested(s, rel, n) != nil {
		return nil
	}
	s.folders[rel] = true
	s.git.ReadFolder(rel)
	if noted := s.see(rel); !tracked || noted != nil && noted.Mode != ModeSubmodule { // it was a file
		t.add(entry(n))
	}
	return nil
}

// nested enters the repository that a folder is the root of, if it is one.
func (t *taker) nested(s *scope, rel string, n *lower.Found) *scope {
	dir := filepath.Join(t.Folder, n.Path)
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err != nil || len(t.rec.Repositories)+len(t.scopes) >= maxRepositories {
		return nil
	}
	r := git.OpenAs(dir, t.Person, t.Moved)
	if root, _ := r.Root(); root != dir {
		return nil
	}
	s.see(rel) // as a submodule
	s.apart[rel] = true
	t.enter(n.Path, r)
	return t.scopes[len(t.scopes)-1]
}

// file is anything but a folder.
func (t *taker) file(s *scope, rel string, n *lower.Found) error {
	if n.Entry.Kind == manifest.KindSymlink {
		if err := n.Link(t.ctx); err != nil {
			n.Entry.Unsaved = "not kept: " + err.Error()
		}
	}
	if !s.knows() {
		t.add(entry(n))
		return nil
	}
	if noted := s.see(rel); noted != nil {
		if same, err := t.same(s, noted, n); err != nil || same {
			return err
		}
	} else {
		s.there[rel] = true
		if s.git.Ignored(rel, false) {
			n.Entry.Unsaved = ignored
			t.add(entry(n))
			return nil
		}
	}
	if err := t.content(n); err != nil {
		return err
	}
	t.add(entry(n))
	return nil
}

// content reads and keeps a file's content, as far as the bounds allow.
func (t *taker) content(n *lower.Found) error {
	if n.Entry.Kind != manifest.KindFile || n.Entry.Unsaved != "" {
		return nil
	}
	l, size, why := &t.left, n.Entry.Size, ""
	switch {
	case size > l.fileData:
		why = fmt.Sprintf("it is larger than %d MiB", l.fileData>>20)
	case size > l.data:
		why = "there is too much that git doesn't have"
	case l.files == 0:
		why = "there are too many files that git doesn't have"
	}
	if size > l.read {
		n.Entry.Unsaved = "not kept, nor read: there is too much that git doesn't have"
		return nil
	}
	l.read -= size
	if why == "" {
		l.data -= size
		l.files--
	}
	if err := t.collector.Read(t.ctx, n, why == ""); err != nil {
		if t.ctx.Err() != nil {
			return t.ctx.Err()
		}
		return fmt.Errorf("%w: %w", errStore, err)
	}
	if why != "" && n.Entry.Unsaved == "" {
		n.Entry.Unsaved = "not kept: " + why
	}
	return nil
}
