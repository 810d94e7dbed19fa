package server

import (
	"context"
	"encoding/json"
	"net/http"

	"stepbox/session/api"
)

// Policies answer what rules there are and what they say.
type Policies interface {
	Show(ctx context.Context, of api.PolicyOf) (api.Policy, error)
	Check(ctx context.Context, files []string) (api.PolicyChecked, error)
	Explain(ctx context.Context, r api.ExplainRequest) (api.Explained, error)
	Test(ctx context.Context, r api.PolicyTest) (api.PolicyTested, error)
	// Init writes a file to begin with, a project's or, with "", the person's.
	Init(ctx context.Context, project string) (api.PolicyMade, error)
	Schema() []byte

	Profiles(ctx context.Context) ([]api.Profile, error)
	Profile(ctx context.Context, name string) (api.Profile, error)
}

// Rules serves what is asked of rules alone, where no session is known.
func Rules(p Policies) http.Handler {
	mux := http.NewServeMux()
	policies(mux, p)
	return mux
}

// policies adds the routes on rules.
func policies(mux *http.ServeMux, p Policies) {
	mux.HandleFunc("GET /v1/policy/schema", answer(func(*http.Request) (any, error) { return json.RawMessage(p.Schema()), nil }))
	mux.HandleFunc("GET /v1/profiles", answer(func(q *http.Request) (any, error) { return p.Profiles(q.Context()) }))
	mux.HandleFunc("GET /v1/profiles/{name}", answer(func(q *http.Request) (any, error) { return p.Profile(q.Context(), q.PathValue("name")) }))
	on(mux, "show", p.Show)
	on(mux, "check", func(ctx context.Context, f api.PolicyFiles) (api.PolicyChecked, error) { return p.Check(ctx, f.Files) })
	on(mux, "explain", p.Explain)
	on(mux, "test", p.Test)
	on(mux, "init", func(ctx context.Context, of api.PolicyOf) (api.PolicyMade, error) { return p.Init(ctx, of.Project) })
}

func on[B, T any](mux *http.ServeMux, what string, f func(context.Context, B) (T, error)) {
	mux.HandleFunc("POST /v1/policy/"+what, answer(asked(func(ctx context.Context, _ string, body B) (T, error) { return f(ctx, body) })))
}
