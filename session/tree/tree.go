// Package tree rebuilds a project as a session saw it at a moment, from the record:
// what the folder was when the session started, what the session first saw where it
// wrote, and on top of that what it had written by then. Contents come from the
// record, of files that were as git had them from the person's own repository, and
// else from the project folder if the file there is still the one that it was. What
// can't be had exactly says so; it is never made up.
//
// What is in a tree was made in a sandbox: links are data and are never followed.
// A Tree belongs to one goroutine, and is closed by who made it.
package tree

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"time"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/base"
	"stepbox/session/files"
	"stepbox/session/ledger"
	"stepbox/session/outfit"
	"stepbox/store"
)

// Source is where trees are made from.
type Source struct {
	Store *store.Store
	Home  string                  // the person's home folder
	Env   []string                // the person's environment, for their git
	Same  func(api.Session) error // says why the project folder isn't the one that it was; nil: it is
}

// Tree is a project at a moment.
type Tree struct {
	Session api.Session
	At      api.At

	root    *File
	gaps    []manifest.Problem // paths that aren't surely as they were, "" the project itself: those known without looking
	repos   []base.Repository
	objects []*objects // of repos, started when they are asked
	bodies  content.Bodies
	lower   *lower.Lower // the project folder as it is now; nil when it is gone
	source  Source
	began   time.Time // when the session started, or was resumed last before
}

// File is one name of a tree. It must not be changed.
//
// Of a file that was as git had it, only what git knows is known: Hash is zero, Size
// -1, the times are zero and of the mode only whether it is executable.
type File struct {
	manifest.Entry
	Path string

	blob   []byte           // the name that git has for the content; nil: it isn't by git that it is known
	repo   int              // in which repository
	below  map[string]*File // of folders
	was    *File            // of what the session wrote: what it saw there before; nil: nothing
	wrote  bool
	unkept *manifest.Entry // what the session saw of a file without keeping its content
	whole  bool            // a folder of which nothing but what is in it was there
	plain  bool            // a folder of which no more is known than that it was there
	upper  *manifest.Node  // of a repository's own folder: what the session wrote there, and a whiteout
}

// In makes the tree of a session at a moment.
func (s Source) In(ctx context.Context, h *ledger.History, id string, m api.Moment) (*Tree, error) {
	at, err := h.At(ctx, id, m)
	if err != nil {
		return nil, err
	}
	session, err := h.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	var state *manifest.Manifest
	if at.Checkpoint != 0 {
		if state, err = files.Recorded(s.Store, id).At(ctx, at.Checkpoint); err != nil {
			return nil, err
		}
	}
	var was api.Session // then; none is before it started
	if then, err := s.Store.AsOf(ctx, id, store.KindSession, at.Seq, 1); err != nil || len(then) > 0 && json.Unmarshal(then[0], &was) != nil {
		return nil, fmt.Errorf("cannot read how session %s stood then: %w", id, cmp.Or(err, errors.New("its record is damaged: stepbox verify "+id+" says where")))
	}
	var rec *base.Record
	missing := "what the project was isn't in the record"
	if was.Resumed > 0 {
		missing = "what the project was when the session was resumed isn't in the record"
	}
	if b := session.BaseOf(was.Resumed); b != nil {
		hash, err := files.ParseHash(b.Hash)
		if err == nil {
			rec, err = base.Load(ctx, files.Bodies{Store: s.Store}, hash)
		}
		if err != nil {
			missing = "what the project was can't be read: " + err.Error()
		}
	}
	t := s.of(session, rec)
	if t.At = at; was.Resumed > 0 {
		t.began = was.ResumedAt
	}
	switch {
	case rec == nil:
		t.gap("", missing+"; what the session never touched isn't known")
	case rec.Missing != "":
		t.gap("", "the record of what the project was is incomplete: "+rec.Missing)
	}
	if last, err := h.At(ctx, id, "end"); err == nil && last.Checkpoint != 0 && last.Checkpoint != at.Checkpoint {
		later, err := files.Recorded(s.Store, id).At(ctx, last.Checkpoint)
		if err != nil {
			return nil, err
		}
		if later.Base != nil {
			t.fill(t.root, later.Base.Root, session.Resumed == 0 && (rec == nil || rec.Missing != ""))
		}
	}
	if state != nil {
		if state.Base != nil {
			var old *manifest.Node
			if was.Resumed > 0 || session.Parent != nil {
				if old, err = s.earlier(ctx, h, at, id, state); err != nil {
					t.Close()
					return nil, err
				}
			}
			t.overBase(t.root, state.Base.Root, old, state.Root)
		}
		t.overUpper(t.root, state.Root)
	}
	t.ownFolders(ctx)
	return t, nil
}

// earlier is what a session that was resumed, or forked, knew already of the project as
// its agent last started by a moment.
func (s Source) earlier(ctx context.Context, h *ledger.History, at api.At, id string, state *manifest.Manifest) (*manifest.Node, error) {
	told, err := s.Store.Told(ctx, id, store.KindSession, 0)
	if err != nil {
		return nil, err
	}
	var began uint64
	for _, e := range told {
		switch {
		case e.Seq > at.Seq:
		case e.Event == "session.resumed": // until the agent starts nothing is new
			began = 0
		case e.Event == "session.started":
			began = e.Seq
		}
	}
	if began != 0 {
		first, err := h.At(ctx, id, api.MomentOf(began))
		if err == nil && first.Checkpoint != 0 {
			state, err = files.Recorded(s.Store, id).At(ctx, first.Checkpoint)
		}
		if err != nil {
			return nil, err
		}
	}
	if state.Base == nil {
		return nil, nil
	}
	return state.Base.Root, nil
}

// of is what the project was at the start, as far as rec knows.
func (s Source) of(session api.Session, rec *base.Record) *Tree {
	t := &Tree{Session: session, bodies: files.Bodies{Store: s.Store}, source: s, began: session.StartedAt, root: &File{Entry: manifest.Entry{Kind: manifest.KindDir, Meta: manifest.Meta{Mode: 0o755}}, plain: true}}
	if s.Same == nil || s.Same(session) == nil {
		t.lower, _ = lower.Open(session.Folder, lower.Options{Hidden: session.HiddenPaths}) // without it, less can be had
	}
	if rec != nil {
		t.record(rec)
	}
	return t
}

// Close lets go of what the tree reads from.
func (t *Tree) Close() {
	for _, o := range t.objects {
		o.close()
	}
	if t.lower != nil {
		_ = t.lower.Close() // it was only read
	}
}

func (t *Tree) gap(path, why string) {
	t.gaps = append(t.gaps, manifest.Problem{Path: path, Text: why})
}

// Stat is what the tree has at a path; nil is nothing.
func (t *Tree) Stat(ctx context.Context, path string) (*File, error) {
	f := t.find(path)
	if f == nil {
		return nil, nil
	}
	return f, t.settle(ctx, f)
}

// None is what is said of a path that the tree doesn't have: of some nobody knows.
func (t *Tree) None(path string) error {
	why := ""
	for _, g := range t.gaps {
		if g.Path == "" || manifest.Within(path, g.Path) {
			why = g.Text
		}
	}
	f := t.root
	for name := range strings.SplitSeq(path, "/") {
		if f.whole {
			why = ""
		} else if f.Unsaved != "" {
			why = f.Unsaved
		}
		if f = f.below[name]; f == nil || f.Kind == manifest.KindWhiteout {
			break
		}
	}
	if why != "" && (f == nil || f.Kind != manifest.KindWhiteout) {
		return api.Problemf(api.CodeNotFound, "whether there was %q then isn't known: %s", api.Escape(path), api.Escape(why))
	}
	return api.Problemf(api.CodeNotFound, "there was no %q then; stepbox show %s lists the actions, after which it may have been", api.Escape(path), t.Session.ID)
}

func (t *Tree) find(path string) *File {
	f := t.root
	if path == "" {
		return f
	}
	for name := range strings.SplitSeq(path, "/") {
		if f = f.below[name]; f == nil || f.Kind == manifest.KindWhiteout {
			return nil
		}
	}
	return f
}

// Walk calls f with everything that is in the tree below a path, and with what is at
// the path itself, folders before what they hold, names in order. An fs.SkipDir that f
// returns leaves out what is in a folder. A link whose target can't be had has none,
// and says why in Unsaved.
func (t *Tree) Walk(ctx context.Context, path string, f func(*File) error) error {
	at := t.find(path)
	if at == nil {
		return fmt.Errorf("cannot look at %q: %w", path, fs.ErrNotExist)
	}
	return t.walk(ctx, at, f)
}

func (t *Tree) walk(ctx context.Context, at *File, f func(*File) error) error {
	if at.Kind == manifest.KindWhiteout {
		return nil
	}
	if err := t.settle(ctx, at); err != nil {
		return err
	}
	if err := f(at); err != nil {
		if errors.Is(err, fs.SkipDir) {
			return nil
		}
		return err
	}
	for _, name := range at.names() {
		if err := t.walk(ctx, at.below[name], f); err != nil {
			return err
		}
	}
	return nil
}

func (f *File) names() []string { return slices.Sorted(maps.Keys(f.below)) }

// settle reads a link's target, if that is in git's objects.
func (t *Tree) settle(ctx context.Context, f *File) error {
	if f.Kind != manifest.KindSymlink || f.blob == nil || f.Target != "" || f.Unsaved != "" {
		return ctx.Err()
	}
	target, err := t.linkTarget(ctx, f)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f.Unsaved = err.Error()
		return nil
	}
	f.Target = target
	return nil
}

// git is the person's git on one of the repositories, as it is now.
func (t *Tree) git(ctx context.Context, repo int, args ...string) (*exec.Cmd, error) {
	dir, err := t.metadata(repo)
	if err != nil {
		return nil, err
	}
	return outfit.Git(ctx, t.Session.Folder, dir, t.source.Home, t.source.Env, args...)
}
