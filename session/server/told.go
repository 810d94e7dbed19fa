package server

import (
	"encoding/json"
	"net/http"

	"stepbox/session/api"
)

// told streams newline-delimited JSON while long work goes on. What is wrong before any of
// it was told is answered like any request; what comes later is the last line. A client
// that goes away ends the request's context, and with it the work.
func told[T any](w http.ResponseWriter, work func(tell func(T)) error, wrong func(*api.Problem) T) {
	out, flush := &begun{ResponseWriter: w, kind: lines}, http.NewResponseController(w)
	tell := func(v T) {
		if json.NewEncoder(out).Encode(v) == nil {
			_ = flush.Flush() // as above
		}
	}
	switch err := work(tell); {
	case err == nil:
	case out.is:
		tell(wrong(problem(err)))
	default:
		fail(w, err)
	}
}

// collecting answers a request to collect.
func collecting(k Keeper) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		body, err := bodyOf[api.CollectRequest](q)
		if err != nil {
			fail(w, err)
			return
		}
		told(w, func(tell func(api.Collecting)) error {
			done, err := k.Collect(q.Context(), body, tell)
			if err == nil {
				tell(api.Collecting{Done: &done})
			}
			return err
		}, func(p *api.Problem) api.Collecting { return api.Collecting{Problem: p} })
	}
}
