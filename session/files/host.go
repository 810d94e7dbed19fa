package files

import (
	"context"
	"sync"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/project"
)

// What a session shows of its files is what is recorded. Beside it stands what
// became of them in the project folder meanwhile, as it is now: a person, their git
// or another session's apply may have changed them.

// maxCompareHost is how many bytes of one file in the project are read to tell
// whether it is what the session has; maxHashed how many answers are remembered.
const (
	maxCompareHost = 64 << 20
	maxHashed      = 10_000
)

// hashed remembers which content a file of the project had, by what tells that it
// wasn't written since.
type hashed struct {
	mu    sync.Mutex
	known map[inode.Key]project.State // guarded by mu
}

func (h *hashed) of(ctx context.Context, f *project.Folder, path string, st *unix.Stat_t) (project.State, error) {
	key := inode.KeyOf(st)
	h.mu.Lock()
	s, ok := h.known[key]
	h.mu.Unlock()
	if ok {
		return s, nil
	}
	s, err := f.Look(ctx, path)
	if err != nil {
		return s, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known == nil || len(h.known) >= maxHashed {
		h.known = make(map[inode.Key]project.State)
	}
	h.known[key] = s
	return s, nil
}

// onHost says of each change what the project folder has in its place by now.
// Listed are the changes as they are told. A folder that isn't there says nothing.
func (f *Files) onHost(ctx context.Context, folder string, to *manifest.Manifest, changes []diff.Change, listed []api.Change) {
	if to == nil || to.Base == nil {
		return
	}
	host, err := project.Open(folder)
	if err != nil {
		return
	}
	defer host.Close()
	first := &manifest.Manifest{Root: to.Base.Root}
	for i := range listed {
		c := &changes[i]
		had := first.Lookup(c.Path)
		if had != nil && had.Absent() {
			had = nil
		}
		listed[i].Host, listed[i].Applied = f.meanwhile(ctx, host, c.Path, had, c.New)
		if c.From != "" && listed[i].Host == "" {
			if was := first.Lookup(c.From); was != nil && !was.Absent() {
				why, gone := f.meanwhile(ctx, host, c.From, was, nil)
				listed[i].Host, listed[i].Applied = why, listed[i].Applied && gone
			}
		}
	}
}

// meanwhile compares a path of the project with what it was when the session first
// saw it, and with what the session made of it; nil is nothing.
func (f *Files) meanwhile(ctx context.Context, host *project.Folder, path string, had *manifest.Entry, made *diff.File) (why string, applied bool) {
	st, there, err := host.Stat(path)
	switch {
	case err != nil:
		return "can't be looked at in the project", false
	case !there && made == nil:
		return "", true
	case !there && had == nil:
		return "", false
	case !there:
		return "deleted in the project meanwhile", false
	}
	kind := inode.KindOf(&st)
	if had != nil && kind == had.Kind && (kind == manifest.KindDir || st.Size == had.Size && manifest.TimeOf(st.Mtim) == had.MTime) && st.Mode&0o7777 == had.Mode {
		return "", false
	}
	now := project.State{Kind: kind, Mode: st.Mode & 0o7777}
	if kind == manifest.KindFile && st.Size <= maxCompareHost || kind == manifest.KindSymlink {
		if now, err = f.hashes.of(ctx, host, path, &st); err != nil {
			return "can't be looked at in the project", false
		}
	}
	switch {
	case made != nil && now.Same(project.Of(&made.Entry)):
		return "", true
	case had != nil && now.Same(project.Of(had)):
		return "", false
	case had == nil:
		return "made in the project, too", false
	}
	return "changed in the project meanwhile", false
}
