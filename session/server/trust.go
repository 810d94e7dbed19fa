package server

import (
	"context"
	"net/http"

	"stepbox/session/api"
)

// Truster keeps which projects' policies a person confirmed.
type Truster interface {
	Project(ctx context.Context, folder string) (api.ProjectPolicy, error)
	Trust(ctx context.Context, r api.TrustRequest) (api.ProjectPolicy, error)
	Distrust(ctx context.Context, folder string) (api.ProjectPolicy, error)
}

// trust adds the routes on it.
func trust(mux *http.ServeMux, t Truster) {
	mux.HandleFunc("GET /v1/policy/trust", answer(func(q *http.Request) (any, error) {
		return t.Project(q.Context(), q.URL.Query().Get("folder"))
	}))
	mux.HandleFunc("POST /v1/policy/trust", answer(asked(func(ctx context.Context, _ string, r api.TrustRequest) (api.ProjectPolicy, error) {
		return t.Trust(ctx, r)
	})))
	mux.HandleFunc("DELETE /v1/policy/trust", answer(asked(func(ctx context.Context, _ string, r api.TrustRequest) (api.ProjectPolicy, error) {
		return t.Distrust(ctx, r.Folder)
	})))
}
