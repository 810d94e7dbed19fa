package server

import (
	"encoding/json"
	"net/http"

	"stepbox/session/api"
)

// told answers a request with a body by newline-delimited JSON while long work goes on;
// last makes its last line, of what came of it or of what went wrong; nil: there is none.
// What is wrong before any of it was told is answered like any request. A client that goes
// away ends the request's context, and with it the work.
func told[B, R, P any](work func(q *http.Request, body B, tell func(P)) (R, error), last func(*R, *api.Problem) *P) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		out, flush := &begun{ResponseWriter: w, kind: lines}, http.NewResponseController(w)
		tell := func(v P) {
			if json.NewEncoder(out).Encode(v) == nil {
				_ = flush.Flush() // who has gone ends the request's context
			}
		}
		end := func(v *P) {
			if v != nil {
				tell(*v)
			}
		}
		body, err := bodyOf[B](q)
		var done R
		if err == nil {
			done, err = work(named(q), body, tell)
		}
		switch {
		case err == nil:
			end(last(&done, nil))
		case out.is:
			end(last(nil, problem(err)))
		default:
			fail(w, err)
		}
	}
}
