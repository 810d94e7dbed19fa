package files

import (
	"bytes"
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"stepbox/policy/git"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
)

// Same says whether two states have the same files, time stamps aside: those, and what
// git notes of them in its indexes whenever it looks (git status does), are no change
// of what is in the files. Nil is the project as the session first saw it.
func (f *Files) Same(ctx context.Context, from, to *manifest.Manifest) (bool, error) {
	all, err := f.Between(ctx, from, to)
	if err != nil {
		return false, err
	}
	for _, c := range all {
		if up, name := path.Split(c.Path); name != "index" || path.Base(up) != ".git" || c.Status != diff.Modified || c.Mode || c.Owner || c.Xattrs {
			return false, nil
		}
		was, werr := f.index(ctx, c.Old)
		is, ierr := f.index(ctx, c.New)
		if werr != nil || ierr != nil || !slices.EqualFunc(was, is, func(a, b git.Entry) bool {
			return a.Path == b.Path && a.Stage == b.Stage && a.Mode == b.Mode && a.Sparse == b.Sparse && bytes.Equal(a.Hash, b.Hash)
		}) {
			return false, ctx.Err() // what can't be read may be anything
		}
	}
	return true, nil
}

// index reads what an index names, by path and stage.
func (f *Files) index(ctx context.Context, e *diff.File) ([]git.Entry, error) {
	b, err := f.Read(ctx, e, maxDiffBytes)
	if err != nil {
		return nil, err
	}
	all, err := git.ParseIndex(b)
	slices.SortStableFunc(all, func(a, b git.Entry) int { return cmp.Or(strings.Compare(a.Path, b.Path), a.Stage-b.Stage) })
	return all, err
}

// loose says whether a new file is an object by itself, and of the name that its content has: git doesn't look, and what it finds by a name
// is what commits will have.
func (f *Files) loose(ctx context.Context, c diff.Change) bool {
	name := strings.ReplaceAll(strings.TrimPrefix(c.Path, ".git/objects/"), "/", "")
	data, err := f.Read(ctx, c.New, maxDiffBytes)
	if err != nil {
		return false
	}
	return git.IsLoose(name, data)
}

// maxIndex bounds an index that is looked into, in bytes: some hundred for each file of the project.
const maxIndex = 64 << 20

// idle says whether some changes make nothing another that anything goes by: they are of the project's repository, new objects,
// which nothing names, and what git notes in its index as it looks.
func (f *Files) idle(ctx context.Context, changed []diff.Change) bool {
	return !slices.ContainsFunc(changed, func(c diff.Change) bool {
		if strings.HasPrefix(c.Path, ".git/objects/") {
			return c.Status != diff.Added || c.New.Kind != manifest.KindDir && !f.loose(ctx, c)
		}
		return c.Path != ".git/index" || !f.refreshed(ctx, c)
	})
}

// refreshed says whether an index only has what git noted as it looked.
func (f *Files) refreshed(ctx context.Context, c diff.Change) bool {
	if c.Status != diff.Modified || c.Mode || c.Owner || c.Xattrs {
		return false
	}
	was, err := f.Read(ctx, c.Old, maxIndex)
	if err != nil {
		return false
	}
	is, err := f.Read(ctx, c.New, maxIndex)
	return err == nil && git.Refreshed(was, is)
}

// Along reads of a checkpoint's root what leads to a path: see manifest.LoadPath.
func (f *Files) Along(ctx context.Context, root, path string) (*manifest.Manifest, error) {
	hash, err := ParseHash(root)
	if err != nil {
		return nil, err
	}
	return manifest.LoadPath(ctx, Bodies{f.store}, hash, path)
}

// Changed counts the files that differ from the project as the session first saw it,
// without git's own.
func (f *Files) Changed(ctx context.Context, now *manifest.Manifest) (n int, err error) {
	all, err := f.Between(ctx, nil, now)
	for _, c := range all {
		if f.groups.of(c.Path, false) != groupGit {
			n++
		}
	}
	return n, err
}
