package launch

import (
	"context"
	"iter"
	"slices"

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
		a, err := t.at(ctx, id, at)
		if err != nil {
			yield(api.FileDiff{}, err)
			return
		}
		defer a.Close()
		b, err := t.at(ctx, other, then)
		if err != nil {
			yield(api.FileDiff{}, err)
			return
		}
		defer b.Close()
		from, to, gaps, err := tree.Differing(ctx, a, b)
		if err != nil {
			yield(api.FileDiff{}, err)
			return
		}
		for d, err := range files.Recorded(t.trees.Store, id).Diffs(ctx, from, to) {
			if !yield(d, err) || err != nil {
				return
			}
		}
		told, _ := tree.Told(gaps)
		for _, g := range told {
			if !yield(api.FileDiff{Change: api.Change{Path: g.Path}, Note: "can't be compared: " + g.Why}, nil) {
				return
			}
		}
	}
}
