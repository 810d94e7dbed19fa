package server

import (
	"context"
	"net/http"

	"stepbox/session/api"
)

// Verifier checks records and tells how that goes, last of each what was found.
type Verifier interface {
	Verify(ctx context.Context, r api.VerifyRequest, tell func(api.Verifying)) error
}

// Ring is the keys that seal records.
type Ring interface {
	Keys() ([]api.Key, error)
	Change(ctx context.Context, to api.KeyRequest) (api.Key, error)
}

// verifies adds the routes of a Verifier and a Ring.
func verifies(mux *http.ServeMux, v Verifier, r Ring) {
	mux.HandleFunc("POST /v1/verify", func(w http.ResponseWriter, q *http.Request) {
		body, err := bodyOf[api.VerifyRequest](q)
		if err != nil {
			fail(w, err)
			return
		}
		told(w, func(tell func(api.Verifying)) error { return v.Verify(q.Context(), body, tell) },
			func(p *api.Problem) api.Verifying { return api.Verifying{Problem: p} })
	})
	mux.HandleFunc("GET /v1/keys", answer(func(*http.Request) (any, error) { return r.Keys() }))
	mux.HandleFunc("POST /v1/keys", answer(func(q *http.Request) (any, error) {
		body, err := bodyOf[api.KeyRequest](q)
		if err != nil {
			return nil, err
		}
		return r.Change(q.Context(), body)
	}))
}
