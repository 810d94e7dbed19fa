package launch

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"slices"

	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/tree"
)

// Checkout is server.Traveller's.
func (t traveller) Checkout(ctx context.Context, id string, r api.CheckoutRequest) (api.Checkout, error) {
	whole, err := t.at(ctx, id, r.At)
	if err != nil {
		return api.Checkout{}, err
	}
	defer whole.Close()
	var paths []string
	for _, p := range r.Paths {
		paths = append(paths, string(p))
	}
	slices.Sort(paths)
	return whole.CheckOut(ctx, string(r.Into), slices.Compact(paths))
}

// Compare is server.Traveller's.
func (t traveller) Compare(ctx context.Context, id string, at api.Moment, other string, then api.Moment) iter.Seq2[api.FileDiff, error] {
	return func(yield func(api.FileDiff, error) bool) {
		from, to, gaps, err := t.differing(ctx, id, at, other, then)
		if err != nil {
			yield(api.FileDiff{}, err)
			return
		}
		for d, err := range files.Recorded(t.trees.Store, id).Diffs(ctx, from, to) {
			if !yield(d, err) || err != nil {
				return
			}
		}
		for _, g := range gaps {
			if !yield(api.FileDiff{Change: api.Change{Path: g.Path}, Note: "can't be compared: " + g.Why}, nil) {
				return
			}
		}
	}
}

// ComparePatch is server.Traveller's.
func (t traveller) ComparePatch(ctx context.Context, id string, at api.Moment, other string, then api.Moment, globs []string, w io.Writer) error {
	from, to, gaps, err := t.differing(ctx, id, at, other, then)
	if err != nil {
		return err
	}
	for _, g := range gaps {
		if _, err := fmt.Fprintf(w, "%s%s: %s\n", api.PatchLost, cmp.Or(g.Path, "the project"), g.Why); err != nil {
			return err
		}
	}
	return files.Recorded(t.trees.Store, id).Patch(ctx, from, to, globs, w)
}

// differing are what two sessions saw, as two states, and what can't be compared.
func (t traveller) differing(ctx context.Context, id string, at api.Moment, other string, then api.Moment) (from, to *manifest.Manifest, gaps []api.Trouble, err error) {
	a, err := t.at(ctx, id, at)
	if err != nil {
		return nil, nil, nil, err
	}
	defer a.Close()
	b, err := t.at(ctx, other, then)
	if err != nil {
		return nil, nil, nil, err
	}
	defer b.Close()
	from, to, all, err := tree.Differing(ctx, a, b)
	gaps, _ = tree.Told(all)
	return from, to, gaps, err
}
