package files

import (
	"bufio"
	"context"
	"io"
	"slices"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/patch"
)

// Patch writes changes as a patch that git apply takes.
func (h *History) Patch(ctx context.Context, id string, r api.PatchRequest, w io.Writer) error {
	s, err := h.picked(ctx, id, r)
	if err != nil || s.To == nil {
		return err
	}
	if r.Scope == (api.Scope{}) {
		r.Globs = nil // they are chosen already
	}
	return s.Files.Patch(ctx, s.From, s.To, r.Globs, w)
}

// Patch writes what differs between two states as a patch that git apply takes, of the
// paths that match a pattern, or of all if there is none.
func (f *Files) Patch(ctx context.Context, from, to *manifest.Manifest, globs []string, w io.Writer) error {
	c, err := f.compare(ctx, from, to)
	if err != nil {
		return err
	}
	changes := c.Changes
	if only, err := chooserOf(api.Selection{Globs: globs}); err != nil {
		return err
	} else if !only.all() {
		changes = slices.DeleteFunc(slices.Clone(changes), func(c diff.Change) bool { return !slices.ContainsFunc(c.Paths(), only.matches) })
	}
	if c.More > 0 {
		return api.Problemf(api.CodeBusy, "%d files have changed, more than a patch can be made of; choose some by --path", len(c.Changes)+c.More)
	}
	out := bufio.NewWriterSize(w, 64<<10)
	if err := patch.Write(ctx, out, f.open, changes); err != nil {
		return err
	}
	return out.Flush()
}

// picked is what a patch is made of.
func (h *History) picked(ctx context.Context, id string, r api.PatchRequest) (Scope, error) {
	switch {
	case r.Selection.All(), r.Scope != (api.Scope{}) && len(r.Actions)+len(r.Without)+len(r.Files) == 0:
		return h.Scope(ctx, id, r.Scope)
	case r.Scope != api.Scope{}:
		return Scope{}, api.Problemf(api.CodeInvalid, "a patch is of a scope, of which paths may be chosen, or of a selection")
	}
	sel, err := h.Select(ctx, id, r.Selection)
	if err == nil && len(sel.Conflicts) > 0 {
		c := sel.Conflicts[0]
		err = api.Problemf(api.CodeInvalid, "what was chosen can't be had without the rest: %s: %s", c.Path, c.Why)
	}
	return sel.Scope, err
}
