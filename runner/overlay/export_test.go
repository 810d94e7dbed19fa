package overlay

import (
	"context"
	"testing"
	"time"
)

// set gives a variable another value until the test ends.
func set[T any](t *testing.T, v *T, to T) {
	old := *v
	*v = to
	t.Cleanup(func() { *v = old })
}

// quick lets watchers wake soon.
func quick(t *testing.T) {
	set(t, &debounce, time.Millisecond)
	set(t, &rescanning, 20*time.Millisecond)
}

// plainDiff is Diff without a look for renames.
func plainDiff(ctx context.Context, lower *Lower, from, to *Manifest) (Difference, error) {
	defer func(old int64) { renameData = old }(renameData)
	renameData = -1
	return Diff(ctx, lower, from, to, DiffOptions{})
}
