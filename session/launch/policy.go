package launch

import (
	"context"
	"os"

	"stepbox/session/api"
	"stepbox/session/explain"
	"stepbox/session/rules"
	"stepbox/session/server"
	"stepbox/store"
)

// explainer answers what rules there are for the person that this process is of.
func explainer(session func(context.Context, string) (api.Session, error), data, home string) *explain.Service {
	return &explain.Service{
		Session: session, Home: home, Data: data, Config: os.Getenv("XDG_CONFIG_HOME"),
		User: rules.User(home, os.Getenv("XDG_CONFIG_HOME")), Trust: rules.TrustIn(data),
	}
}

// Rules connects to what answers on rules alone. It needs no record, so that rules can be
// checked where there is none and none can be made.
func Rules(context.Context) (*api.Client, func(), error) {
	dir, err := store.Dir()
	if err != nil {
		return nil, nil, err
	}
	log, err := openLog("")
	if err != nil {
		return nil, nil, err
	}
	home, _ := os.UserHomeDir() // without one there are no rules there
	none := func(_ context.Context, id string) (api.Session, error) {
		return api.Session{}, api.Problemf(api.CodeNotFound, "no session %q is known here", api.Escape(id))
	}
	client, end := answered(server.Rules(explainer(none, dir, home)), log)
	return client, end, nil
}
