package server

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"stepbox/session/api"
	"stepbox/session/explain"
)

// Rules serves what is asked of rules alone, where no session is known.
func Rules(p *explain.Service) http.Handler {
	mux := http.NewServeMux()
	policies(mux, p)
	return mux
}

// policies adds the routes on rules.
func policies(mux *http.ServeMux, p *explain.Service) {
	mux.HandleFunc("GET /v1/policy/schema", answer(func(*http.Request) (any, error) { return json.RawMessage(p.Schema()), nil }))
	mux.HandleFunc("GET /v1/profiles", answer(func(q *http.Request) (any, error) { return p.Profiles(q.Context()) }))
	mux.HandleFunc("GET /v1/profiles/{name}", answer(func(q *http.Request) (any, error) { return p.Profile(q.Context(), q.PathValue("name")) }))
	on(mux, "show", p.Show)
	on(mux, "check", func(ctx context.Context, f api.PolicyFiles) (api.PolicyChecked, error) { return p.Check(ctx, f.Files) })
	on(mux, "explain", p.Explain)
	on(mux, "test", p.Test)
	on(mux, "init", func(ctx context.Context, of api.PolicyOf) (api.PolicyMade, error) { return p.Init(ctx, of.Project) })
}

// kept adds the routes on what a person keeps: rules in files, and which projects' are confirmed.
func kept(mux *http.ServeMux, p *explain.Service) {
	mux.HandleFunc("GET /v1/policy/trust", answer(func(q *http.Request) (any, error) {
		return p.Project(q.Context(), q.URL.Query().Get("folder"))
	}))
	mux.HandleFunc("POST /v1/policy/trust", answer(asked(func(ctx context.Context, _ string, r api.TrustRequest) (api.ProjectPolicy, error) {
		return p.Confirm(ctx, r)
	})))
	mux.HandleFunc("DELETE /v1/policy/trust", answer(asked(func(ctx context.Context, _ string, r api.TrustRequest) (api.ProjectPolicy, error) {
		return p.Distrust(ctx, r.Folder)
	})))
	mux.HandleFunc("POST /v1/policy/rules", answer(asked(func(ctx context.Context, _ string, r api.FolderRule) (api.RuleKept, error) {
		r.Rule.By = cmp.Or(api.Person(ctx), r.Rule.By)
		return p.KeepRule(ctx, r)
	})))
	mux.HandleFunc("DELETE /v1/policy/rules", answer(asked(func(ctx context.Context, _ string, r api.FolderRule) (api.RuleKept, error) {
		return p.ForgetRule(ctx, r)
	})))
}

func on[B, T any](mux *http.ServeMux, what string, f func(context.Context, B) (T, error)) {
	mux.HandleFunc("POST /v1/policy/"+what, answer(asked(func(ctx context.Context, _ string, body B) (T, error) { return f(ctx, body) })))
}
