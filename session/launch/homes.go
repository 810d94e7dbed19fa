package launch

import (
	"context"

	"stepbox/policy"
	"stepbox/session/api"
	"stepbox/session/apply"
	"stepbox/session/home"
	"stepbox/session/ledger"
	"stepbox/store"
)

// homes are those of sessions, by the record.
type homes struct {
	store    *store.Store
	dir      string
	live     registry
	profiles func() *policy.Profiles
}

func (h homes) of(ctx context.Context, id string) (home.Place, *policy.Profile, error) {
	s, err := ledger.Session(ctx, h.store, id)
	if err != nil {
		return home.Place{}, nil, noSession(id, err)
	}
	profile := h.profiles().Named(s.Agent)
	if profile == nil {
		return home.Place{}, nil, api.Problemf(api.CodeInvalid, "nothing is known of agents called %s any more", api.Escape(s.Agent))
	}
	return home.Of(s.Home, h.dir, h.store.SessionDir(id), profile.Name), profile, nil
}

// Changes is server.Homes's.
func (h homes) Changes(ctx context.Context, id string) (api.HomeChanges, error) {
	place, profile, err := h.of(ctx, id)
	if err != nil {
		return api.HomeChanges{}, err
	}
	return place.Changes(ctx, profile)
}

// Keep is server.Homes's. Only what nobody writes any more can be looked at before it is
// kept, so nobody goes on with the session meanwhile.
func (h homes) Keep(ctx context.Context, id string, r api.KeepHome) (api.HomeChanges, error) {
	place, profile, err := h.of(ctx, id)
	if err != nil {
		return api.HomeChanges{}, err
	}
	if h.live.live(id) {
		return api.HomeChanges{}, api.Problemf(api.CodeBusy, "session %s is running, and may change its home after you looked: stepbox kill %s ends it", id, id)
	}
	release, err := apply.Ended{Store: h.store, ID: id, Live: h.live.live}.Hold(ctx)
	if err != nil {
		return api.HomeChanges{}, err
	}
	defer release()
	var paths []string
	for _, p := range r.Paths {
		paths = append(paths, string(p))
	}
	return place.Keep(ctx, profile, paths...)
}
