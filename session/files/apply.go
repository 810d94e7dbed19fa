package files

import (
	"context"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
)

// Difference is what differs between two states; nil is the project folder as the
// session first saw it. It isn't to be changed.
func (f *Files) Difference(ctx context.Context, from, to *manifest.Manifest) (diff.Difference, error) {
	c, err := f.compare(ctx, from, to)
	if err != nil {
		return diff.Difference{}, err
	}
	return c.Difference, nil
}

// Hunks is the unified difference of two texts.
func Hunks(before, after string) ([]api.Hunk, error) {
	out, _, _, err := hunks(before, after)
	return out, err
}

// markApplied says of listed changes whether an apply wrote them as they are.
func (h *History) markApplied(ctx context.Context, id string, s Scope, listed []api.Change) error {
	as, err := h.Applied(ctx, id)
	if err != nil || as == nil {
		return err
	}
	c, err := s.Files.compare(ctx, s.From, s.To)
	if err != nil {
		return err
	}
	for i := range listed {
		path, err := pathOfKey(listed[i].Key)
		if err != nil {
			return err
		}
		if n, found := c.Search(path); found {
			listed[i].Applied = as(path, c.Changes[n].New)
		}
	}
	return nil
}
