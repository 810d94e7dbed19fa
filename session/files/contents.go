package files

import (
	"context"
	"fmt"
	"io"

	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
)

// Contents calls f with each file that differs in a scope, as it is there in the end,
// by path, and says whether an apply wrote it to the project folder so. Files whose
// content isn't kept are left out. The reader is valid during the call.
func (h *History) Contents(ctx context.Context, id string, in api.Scope, f func(path string, applied bool, r io.Reader) error) error {
	s, err := h.Scope(ctx, id, in)
	if err != nil || s.To == nil {
		return err
	}
	changes, err := s.Files.Between(ctx, s.From, s.To)
	if err != nil {
		return err
	}
	applied, err := h.applied(ctx, id)
	if err != nil {
		return err
	}
	for _, change := range changes {
		if change.New == nil || change.New.Kind != manifest.KindFile || change.New.Unsaved != "" {
			continue
		}
		r, _, err := s.Files.open(ctx, change.New)
		if err != nil {
			return fmt.Errorf("cannot read %q as it was: %w", change.Path, err)
		}
		err = f(change.Path, applied != nil && applied(change.Path, change.New), r)
		r.Close()
		if err != nil {
			return err
		}
	}
	return nil
}
