package launch

import (
	"context"
	"iter"
	"slices"

	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/tree"
)

// forester rebuilds projects as sessions saw them.
type forester struct {
	tree.Source
	history *files.History
}

func (f forester) at(ctx context.Context, id string, m api.Moment) (*tree.Tree, error) {
	return f.In(ctx, &f.history.History, id, m)
}

// Checkout is server.Forester's.
func (f forester) Checkout(ctx context.Context, id string, r api.CheckoutRequest) (api.Checkout, error) {
	t, err := f.at(ctx, id, r.At)
	if err != nil {
		return api.Checkout{}, err
	}
	defer t.Close()
	var paths []string
	for _, p := range r.Paths {
		paths = append(paths, string(p))
	}
	slices.Sort(paths)
	return t.CheckOut(ctx, string(r.Into), slices.Compact(paths))
}

// Compare is server.Forester's.
func (f forester) Compare(ctx context.Context, id string, at api.Moment, other string, then api.Moment) iter.Seq2[api.FileDiff, error] {
	return func(yield func(api.FileDiff, error) bool) {
		a, err := f.at(ctx, id, at)
		if err != nil {
			yield(api.FileDiff{}, err)
			return
		}
		defer a.Close()
		b, err := f.at(ctx, other, then)
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
		for d, err := range files.Recorded(f.Store, id).Diffs(ctx, from, to) {
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
