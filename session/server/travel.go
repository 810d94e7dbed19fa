package server

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"stepbox/session/api"
)

// Traveller shows what files were.
type Traveller interface {
	// File opens a file of the project as a session saw it at a moment.
	File(ctx context.Context, id, path string, at api.Moment) (io.ReadCloser, error)
}

// Blamer says who wrote the lines of files.
type Blamer interface {
	At(ctx context.Context, id, path string, m api.Moment) (api.Blame, error)
	Today(ctx context.Context, name string) (api.Blame, error)
}

// Bisector finds the action after which a command fails. It tells how that goes until
// it returns; when ctx ends, nothing of it is left.
type Bisector interface {
	Bisect(ctx context.Context, id string, r api.BisectRequest, tell func(api.BisectProgress)) (api.Bisected, error)
}

// travelRoutes are those of what files were.
func travelRoutes(mux *http.ServeMux, t Traveller, b Blamer, s Bisector) {
	mux.HandleFunc("GET /v1/sessions/{id}/file", func(w http.ResponseWriter, q *http.Request) {
		out := &begun{ResponseWriter: w, kind: "application/octet-stream"}
		out.end(func() error {
			path, err := api.PathOf(q.URL.Query().Get("key"))
			if err != nil {
				return err
			}
			r, err := t.File(q.Context(), q.PathValue("id"), path, api.Moment(q.URL.Query().Get("at")))
			if err != nil {
				return err
			}
			defer r.Close()
			_, err = io.Copy(out, r)
			return err
		}())
	})
	byKey := func(f func(q *http.Request, path string) (any, error)) http.HandlerFunc {
		return answer(func(q *http.Request) (any, error) {
			path, err := api.PathOf(q.URL.Query().Get("key"))
			if err != nil {
				return nil, err
			}
			return f(q, path)
		})
	}
	mux.HandleFunc("GET /v1/sessions/{id}/blame", byKey(func(q *http.Request, path string) (any, error) {
		return b.At(q.Context(), q.PathValue("id"), path, api.Moment(q.URL.Query().Get("at")))
	}))
	mux.HandleFunc("GET /v1/blame", byKey(func(q *http.Request, path string) (any, error) { return b.Today(q.Context(), path) }))
	mux.HandleFunc("POST /v1/sessions/{id}/bisect", func(w http.ResponseWriter, q *http.Request) {
		r, err := bodyOf[api.BisectRequest](q)
		if err != nil {
			fail(w, err)
			return
		}
		out, flush := &begun{ResponseWriter: w, kind: lines}, http.NewResponseController(w)
		tell := func(p api.BisectProgress) {
			if json.NewEncoder(out).Encode(p) == nil {
				_ = flush.Flush() // who has gone ends the request's context
			}
		}
		done, err := s.Bisect(q.Context(), q.PathValue("id"), r, tell)
		switch {
		case err == nil:
			tell(api.BisectProgress{Done: &done})
		case out.is:
			tell(api.BisectProgress{Problem: problem(err)})
		default:
			fail(w, err)
		}
	})
}
