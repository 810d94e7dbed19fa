package server

import (
	"context"
	"encoding/json"
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
		out, flush := &begun{ResponseWriter: w, kind: lines}, http.NewResponseController(w)
		tell := func(p api.Verifying) {
			if json.NewEncoder(out).Encode(p) == nil {
				_ = flush.Flush() // the client is gone: its context ends the work
			}
		}
		switch err := v.Verify(q.Context(), body, tell); {
		case err == nil:
		case out.is:
			tell(api.Verifying{Problem: problem(err)})
		default:
			fail(w, err)
		}
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
