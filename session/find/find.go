// Package find finds sessions, by what a person says of them, how they stand, and what
// happened in them.
//
// A Finder is safe for concurrent use. What it finds text in came from the sandbox and
// was escaped when it was recorded; what an agent printed is escaped here.
package find

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/ledger"
	"stepbox/store"
)

// Finder finds sessions in the record.
type Finder struct {
	*files.History
	indexing chan struct{} // holds one: who brings the index up to date
}

func New(h *files.History) *Finder { return &Finder{History: h, indexing: make(chan struct{}, 1)} }

// Bounds of an answer.
const (
	limitUsual = 50
	limitMost  = 1000
	hitsMost   = 1000
	alsoMost   = 200 // interrupted sessions whose changes are counted for a list
)

var orders = map[api.Sort]store.Order{
	api.SortNewest: store.ByNumber, api.SortLongest: store.ByLength, api.SortChanges: store.ByChanges, api.SortName: store.ByName,
}

// Find answers a query.
func (f *Finder) Find(ctx context.Context, q api.Query) (api.FoundPage, error) {
	out := api.FoundPage{Found: []api.Found{}}
	c, err := f.choice(ctx, q)
	if err != nil {
		return out, err
	}
	l, err := f.look(ctx, q, &c, &out)
	if err != nil {
		return out, err
	}
	chosen, err := f.Store.Choose(ctx, c)
	if errors.Is(err, store.ErrChoice) {
		err = api.Problemf(api.CodeUsage, "%v", err)
	}
	if err != nil {
		return out, err
	}
	out.Next, out.Total = chosen.Next, chosen.Total
	for i, doc := range chosen.Docs {
		s, err := f.listed(ctx, doc, chosen.Labels[i], c.First)
		if p := (*api.Problem)(nil); errors.As(err, &p) && p.Code == api.CodeNotFound { // removed meanwhile
			continue
		}
		if err != nil {
			return out, err
		}
		found := api.Found{Session: s}
		if q.Hits > 0 && len(l.words) > 0 {
			found.Hits, found.More, err = f.hits(ctx, s, l, min(q.Hits, hitsMost))
			if errors.Is(err, store.ErrNotFound) { // as above
				continue
			}
			if err != nil {
				return out, err
			}
		}
		out.Found = append(out.Found, found)
	}
	return out, nil
}

// choice is what a query asks of the store, but for its text.
func (f *Finder) choice(ctx context.Context, q api.Query) (store.Choice, error) {
	order, ok := orders[q.Sort]
	if !ok {
		return store.Choice{}, api.Problemf(api.CodeUsage, "there is no order %q: use longest, changes or name", api.Escape(api.Trim(string(q.Sort), 80)))
	}
	c := store.Choice{
		Agent: q.Agent, Session: q.Session, Parent: q.Parent, Folder: q.Folder, Tags: q.Tags, Since: q.Since, Before: q.Before,
		Order: order, After: q.After, Skip: max(0, q.Skip), Limit: min(cmp.Or(max(0, q.Limit), limitUsual), limitMost),
	}
	unended, err := f.Store.Unended(ctx)
	if err != nil {
		return c, err
	}
	interrupted := slices.DeleteFunc(slices.Clone(unended), f.Live)
	c.First = slices.DeleteFunc(unended, func(id string) bool { return slices.Contains(interrupted, id) })
	switch q.State {
	case "":
	case "live":
		c.In = &c.First
	case "past":
		c.NotIn = c.First
	case "interrupted":
		c.In = &interrupted
	case string(api.SessionEnded):
		c.State = q.State
	case "failed":
		c.Failed = true
	case "unapplied":
		c.Unapplied, c.NotIn = true, c.First
		for _, id := range interrupted[:min(len(interrupted), alsoMost)] {
			if s, err := f.Session(ctx, id); err == nil && s.Unapplied > 0 { // else it is gone
				c.Also = append(c.Also, id)
			}
		}
	case "pinned":
		c.Pinned = true
	case "trashed":
		c.Trashed = true
	default:
		return c, api.Problemf(api.CodeUsage, "there is no state %q: use live, past, ended, interrupted, failed, unapplied, pinned or trashed", api.Escape(api.Trim(q.State, 80)))
	}
	return c, nil
}

// listed is a session as it is listed.
func (f *Finder) listed(ctx context.Context, doc, label json.RawMessage, live []string) (s api.Session, err error) {
	if s, err = ledger.Decode(doc); err != nil {
		return s, err
	}
	if s.Live() && !slices.Contains(live, s.ID) {
		s, err = f.History.History.Session(ctx, s.ID)
	} else {
		f.Labelled(ctx, &s, label)
	}
	f.Today(ctx, &s)
	if err == nil && s.State != api.SessionEnded { // counted at its end
		if now, err := f.Scope(ctx, s.ID, api.Scope{}); err == nil && now.To != nil { // else nothing can be counted yet
			if n, err := now.Files.Changed(ctx, now.To); err == nil {
				s.Changed = n
			}
		}
	}
	return s, err
}
