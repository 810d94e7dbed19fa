package files

import (
	"bufio"
	"context"
	"io"
	"slices"

	"stepbox/runner/overlay/diff"
	"stepbox/session/api"
	"stepbox/session/patch"
)

// Patch writes changes as a patch that git apply takes.
func (h *History) Patch(ctx context.Context, id string, r api.PatchRequest, w io.Writer) error {
	s, err := h.picked(ctx, id, r)
	if err != nil || s.To == nil {
		return err
	}
	c, err := s.Files.compare(ctx, s.From, s.To)
	if err != nil {
		return err
	}
	changes := c.Changes
	if only, err := chooserOf(api.Selection{Globs: r.Globs}); err != nil {
		return err
	} else if r.Scope != (api.Scope{}) && !only.all() { // else they are chosen already
		changes = slices.DeleteFunc(slices.Clone(changes), func(c diff.Change) bool { return !slices.ContainsFunc(c.Paths(), only.matches) })
	}
	if c.More > 0 {
		return api.Problemf(api.CodeBusy, "%d files have changed, more than a patch can be made of; choose some by --path", len(c.Changes)+c.More)
	}
	out := bufio.NewWriterSize(w, 64<<10)
	if err := patch.Write(ctx, out, s.Files.open, changes); err != nil {
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
