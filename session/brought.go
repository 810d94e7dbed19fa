package session

import (
	"cmp"
	"errors"
	"slices"

	"stepbox/session/api"
	"stepbox/session/bring"
	"stepbox/session/home"
)

// bring makes the agent's home, and brings to it what comes along of the person's. It is
// done before the session begins, so that none of it counts as the agent's work.
func (s *Session) bring(place home.Place) (_ *api.Brought, err error) {
	if err := place.Make(); err != nil {
		return nil, err
	}
	was, err := home.Open(place.Folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, was.Close()) }()
	into, err := home.Open(cmp.Or(place.Front, place.Folder))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, into.Close()) }()
	defer func() {
		if err == nil {
			err = place.Save()
		}
	}()
	return bring.All(bring.Needs{
		Home: s.cfg.Home, Workspace: s.cfg.Workspace, Private: []string{s.cfg.DataDir, s.cfg.RunDir}, Env: slices.Concat(s.cfg.Env, s.cfg.Vars),
		Brings: s.profile.Brings(), Into: into, Was: was,
	}), nil
}
