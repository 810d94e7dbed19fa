package server

import (
	"context"
	"iter"
	"net/http"

	"stepbox/session/api"
)

// Forester rebuilds projects as sessions saw them.
type Forester interface {
	Checkout(ctx context.Context, id string, r api.CheckoutRequest) (api.Checkout, error)
	Compare(ctx context.Context, id string, at api.Moment, other string, then api.Moment) iter.Seq2[api.FileDiff, error]
}

// treeRoutes are those of whole projects as they were.
func treeRoutes(mux *http.ServeMux, f Forester) {
	mux.HandleFunc("POST /v1/sessions/{id}/checkout", answer(func(q *http.Request) (any, error) {
		r, err := bodyOf[api.CheckoutRequest](q)
		if err != nil {
			return nil, err
		}
		return f.Checkout(q.Context(), q.PathValue("id"), r)
	}))
	mux.HandleFunc("GET /v1/sessions/{id}/compare", func(w http.ResponseWriter, q *http.Request) {
		v := q.URL.Query()
		sendDiffs(w, f.Compare(q.Context(), q.PathValue("id"), api.Moment(v.Get("at")), v.Get("with"), api.Moment(v.Get("then"))))
	})
}
