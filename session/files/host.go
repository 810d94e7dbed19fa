package files

import (
	"context"

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

// onHost says of each change what the project folder has in its place by now.
// Listed are the changes as they are told. A folder that isn't there says nothing, nor
// does what an apply wrote there last, of a part or of an earlier state.
func (f *Files) onHost(ctx context.Context, folder string, to *manifest.Manifest, wrote func(path string, f *diff.File) bool, changes []diff.Change, listed []api.Change) {
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
		listed[i].Host, listed[i].Applied = f.meanwhile(ctx, host, wrote, c.Path, had, c.New)
		if c.From != "" && listed[i].Host == "" {
			if was := first.Lookup(c.From); was != nil && !was.Absent() {
				why, gone := f.meanwhile(ctx, host, wrote, c.From, was, nil)
				listed[i].Host, listed[i].Applied = why, listed[i].Applied && gone
			}
		}
	}
}

// meanwhile compares a path of the project with what it was when the session first
// saw it, and with what the session made of it; nil is nothing.
func (f *Files) meanwhile(ctx context.Context, host *project.Folder, wrote func(path string, f *diff.File) bool, path string, had *manifest.Entry, made *diff.File) (why string, applied bool) {
	st, there, err := host.Stat(path)
	switch {
	case err != nil:
		return "can't be looked at in the project", false
	case !there && made == nil:
		return "", true
	case !there && had == nil:
		return "", false
	case !there && wrote != nil && wrote(path, nil):
		return "", false
	case !there:
		return "deleted in the project meanwhile", false
	}
	kind := inode.KindOf(&st)
	if had != nil && kind == had.Kind && (kind == manifest.KindDir || st.Size == had.Size && manifest.TimeOf(st.Mtim) == had.MTime) && st.Mode&0o7777 == had.Mode {
		return "", false
	}
	now := project.State{Kind: kind, Meta: manifest.Meta{Mode: st.Mode & 0o7777}}
	if kind == manifest.KindFile && st.Size <= maxCompareHost || kind == manifest.KindSymlink {
		var known bool
		if now, known = f.hashes.get(inode.KeyOf(&st)); !known {
			if now, err = host.Look(ctx, path); err != nil {
				return "can't be looked at in the project", false
			}
			f.hashes.put(inode.KeyOf(&st), now, maxHashed)
		}
	}
	switch {
	case now.Same(StateOf(made)):
		return "", true
	case now.Same(project.Of(had)):
		return "", false
	case wrote != nil && wrote(path, &diff.File{Path: path, Entry: manifest.Entry{Kind: now.Kind, Meta: manifest.Meta{Mode: now.Mode}, Size: now.Size, Hash: now.Hash, Target: now.Target}}):
		return "", false
	case had == nil:
		return "made in the project, too", false
	}
	return "changed in the project meanwhile", false
}
