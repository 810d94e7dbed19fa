package launch

import (
	"context"
	"errors"
	"io"

	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/apply"
	"stepbox/session/bisect"
	"stepbox/session/files"
	"stepbox/session/tree"
)

// traveller shows what files were, from the record.
type traveller struct {
	history *files.History
	trees   tree.Source
}

// at is the project as a session saw it at a moment.
func (t traveller) at(ctx context.Context, id string, m api.Moment) (*tree.Tree, error) {
	return t.trees.In(ctx, &t.history.History, id, m)
}

// File is server.Traveller's.
func (t traveller) File(ctx context.Context, id, path string, at api.Moment) (io.ReadCloser, error) {
	whole, err := t.at(ctx, id, at)
	if err != nil {
		return nil, err
	}
	f, err := whole.Stat(ctx, path)
	if err != nil || f == nil {
		whole.Close()
	}
	if err != nil {
		return nil, err
	}
	if f == nil {
		return nil, whole.None(path)
	}
	if err := readable(&f.Entry, path); err != nil {
		whole.Close()
		return nil, err
	}
	r, _, err := whole.Open(ctx, path)
	if gap := (*manifest.Problem)(nil); errors.As(err, &gap) {
		whole.Close()
		return nil, api.Problemf(api.CodeNotFound, "%q can't be had as it was: %s", api.Escape(path), api.Escape(gap.Text))
	}
	if err != nil {
		whole.Close()
		return nil, err
	}
	return treeFile{r, whole}, nil
}

// readable says why what was at a path has no content to be read.
func readable(e *manifest.Entry, path string) error {
	switch e.Kind {
	case manifest.KindFile:
		return nil
	case manifest.KindSymlink:
		return api.Problemf(api.CodeInvalid, "%q was a link to %q then", api.Escape(path), api.Escape(e.Target))
	}
	return api.Problemf(api.CodeInvalid, "%q was a %s then, not a file", api.Escape(path), e.Kind)
}

// treeFile is a file of a tree, which goes with it.
type treeFile struct {
	io.ReadCloser
	tree *tree.Tree
}

// Close lets both go.
func (f treeFile) Close() error {
	defer f.tree.Close()
	return f.ReadCloser.Close()
}

// bisector finds actions that broke something, in throw-away sandboxes as those of
// an apply's checks.
func bisector(a *apply.Applier, h *files.History, trees tree.Source) *bisect.Bisector {
	return &bisect.Bisector{History: h, Trees: trees, Same: a.Same, Sandbox: func(s api.Session) bisect.Sandbox { return a.Sandbox(s) }}
}
