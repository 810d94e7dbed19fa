package server

import (
	"context"
	"io"
	"net/http"

	"stepbox/session/api"
)

// Traveller shows what files were.
type Traveller interface {
	// File opens a file of the project as a session saw it at a moment.
	File(ctx context.Context, id, path string, at api.Moment) (io.ReadCloser, error)
}

// travelRoutes are those of what files were.
func travelRoutes(mux *http.ServeMux, t Traveller) {
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
}
