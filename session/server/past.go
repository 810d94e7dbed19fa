package server

import (
	"context"
	"io"
	"iter"
	"net/http"

	"stepbox/session/api"
)

// Traveller shows what files and whole projects were, as sessions saw them.
type Traveller interface {
	// File opens a file of the project as a session saw it at a moment.
	File(ctx context.Context, id, path string, at api.Moment) (io.ReadCloser, error)
	Checkout(ctx context.Context, id string, r api.CheckoutRequest) (api.Checkout, error)
	Compare(ctx context.Context, id string, at api.Moment, other string, then api.Moment) iter.Seq2[api.FileDiff, error]
	// ComparePatch writes the same as a patch, of paths that match a pattern or all.
	ComparePatch(ctx context.Context, id string, at api.Moment, other string, then api.Moment, globs []string, w io.Writer) error
}

// past adds the routes that are answered from the record, of live sessions too.
func past(mux *http.ServeMux, s Services) {
	at := func(q *http.Request) api.Moment { return api.Moment(q.URL.Query().Get("at")) }
	mux.HandleFunc("GET /v1/sessions/{id}/file", func(w http.ResponseWriter, q *http.Request) {
		out := &begun{ResponseWriter: w, kind: "application/octet-stream"}
		_, err := byKey(func(q *http.Request, path string) (any, error) {
			r, err := s.Travel.File(q.Context(), q.PathValue("id"), path, at(q))
			if err != nil {
				return nil, err
			}
			defer r.Close()
			_, err = io.Copy(out, r)
			return nil, err
		})(q)
		out.end(err)
	})
	mux.HandleFunc("POST /v1/sessions/{id}/checkout", answer(asked(func(ctx context.Context, id string, r api.CheckoutRequest) (api.Checkout, error) {
		return s.Travel.Checkout(ctx, id, r)
	})))
	mux.HandleFunc("GET /v1/sessions/{id}/compare", func(w http.ResponseWriter, q *http.Request) {
		v := q.URL.Query()
		if v.Has("patch") {
			out := &begun{ResponseWriter: w, kind: "text/x-diff"}
			out.end(s.Travel.ComparePatch(q.Context(), q.PathValue("id"), at(q), v.Get("with"), api.Moment(v.Get("then")), v["path"], out))
			return
		}
		sendDiffs(w, s.Travel.Compare(q.Context(), q.PathValue("id"), at(q), v.Get("with"), api.Moment(v.Get("then"))))
	})
	mux.HandleFunc("GET /v1/sessions/{id}/blame", answer(byKey(func(q *http.Request, path string) (any, error) {
		return s.Blamer.At(q.Context(), q.PathValue("id"), path, at(q))
	})))
	mux.HandleFunc("GET /v1/blame", answer(byKey(func(q *http.Request, path string) (any, error) { return s.Blamer.Today(q.Context(), path) })))
	mux.HandleFunc("POST /v1/sessions/{id}/bisect", told(func(q *http.Request, r api.BisectRequest, tell func(api.BisectProgress)) (api.Bisected, error) {
		return s.Bisector.Bisect(q.Context(), q.PathValue("id"), r, tell)
	}, func(done *api.Bisected, p *api.Problem) *api.BisectProgress {
		return &api.BisectProgress{Done: done, Problem: p}
	}))
	mux.HandleFunc("POST /v1/find", answer(asked(func(ctx context.Context, _ string, q api.Query) (api.FoundPage, error) { return s.Finder.Find(ctx, q) })))
	mux.HandleFunc("PATCH /v1/sessions/{id}", answer(asked(func(ctx context.Context, id string, l api.Label) (api.Session, error) {
		return s.Finder.Label(ctx, id, l)
	})))
	mux.HandleFunc("POST /v1/verify", told(func(q *http.Request, r api.VerifyRequest, tell func(api.Verifying)) (struct{}, error) {
		return struct{}{}, s.Verifier.Verify(q.Context(), r, tell)
	}, func(_ *struct{}, p *api.Problem) *api.Verifying {
		if p == nil {
			return nil // all was told
		}
		return &api.Verifying{Problem: p}
	}))
	mux.HandleFunc("GET /v1/key", answer(func(q *http.Request) (any, error) { return s.Key.Told(q.Context()) }))
}

// byKey asks for a file by its key.
func byKey(f func(q *http.Request, path string) (any, error)) func(*http.Request) (any, error) {
	return func(q *http.Request) (any, error) {
		path, err := api.PathOf(q.URL.Query().Get("key"))
		if err != nil {
			return nil, err
		}
		return f(q, path)
	}
}
