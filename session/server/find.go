package server

import (
	"context"
	"net/http"

	"stepbox/session/api"
)

// Finder finds sessions, and keeps what a person says of them.
type Finder interface {
	Find(ctx context.Context, q api.Query) (api.FoundPage, error)
	Label(ctx context.Context, id string, l api.Label) (api.Session, error)
}

func finder(mux *http.ServeMux, f Finder) {
	mux.HandleFunc("POST /v1/find", answer(func(q *http.Request) (any, error) {
		body, err := bodyOf[api.Query](q)
		if err != nil {
			return nil, err
		}
		return f.Find(q.Context(), body)
	}))
	mux.HandleFunc("PATCH /v1/sessions/{id}", answer(func(q *http.Request) (any, error) {
		body, err := bodyOf[api.Label](q)
		if err != nil {
			return nil, err
		}
		return f.Label(q.Context(), q.PathValue("id"), body)
	}))
}
