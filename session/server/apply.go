package server

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"

	"stepbox/session/api"
)

func (s *server) applyPlan(q *http.Request) (any, error) {
	r, err := bodyOf[api.ApplyRequest](q)
	if err != nil {
		return nil, err
	}
	return s.a.ApplyPlan(q.Context(), q.PathValue("id"), r)
}

func (s *server) apply(w http.ResponseWriter, q *http.Request) {
	r, err := bodyOf[api.ApplyRequest](q)
	r.By = cmp.Or(api.From(q), r.By)
	progress(w, err, func(tell func(api.Progress)) (api.Apply, error) {
		return s.a.Apply(q.Context(), q.PathValue("id"), r, tell)
	})
}

func (s *server) undoPlan(q *http.Request) (any, error) {
	n, err := applyNumber(q)
	if err != nil {
		return nil, err
	}
	return s.a.UndoPlan(q.Context(), q.PathValue("id"), n)
}

func (s *server) undo(w http.ResponseWriter, q *http.Request) {
	r, err := bodyOf[api.UndoRequest](q)
	r.By = cmp.Or(api.From(q), r.By)
	n, bad := applyNumber(q)
	if err == nil {
		err = bad
	}
	progress(w, err, func(tell func(api.Progress)) (api.Apply, error) {
		return s.a.Undo(q.Context(), q.PathValue("id"), n, r, tell)
	})
}

func applyNumber(q *http.Request) (int64, error) {
	n, err := strconv.ParseInt(q.PathValue("n"), 10, 64)
	if err != nil || n < 1 {
		return 0, api.Problemf(api.CodeInvalid, "%q is no apply's number", api.Escape(q.PathValue("n")))
	}
	return n, nil
}

// progress streams newline-delimited JSON while long work goes on. What is wrong
// before any of it was told is answered like any request; what comes later is the
// last line. Whether the client still reads doesn't matter: its going away ends
// the request's context, and with it the work.
func progress(w http.ResponseWriter, bad error, work func(tell func(api.Progress)) (api.Apply, error)) {
	if bad != nil {
		fail(w, bad)
		return
	}
	out, flush := &begun{ResponseWriter: w, kind: lines}, http.NewResponseController(w)
	tell := func(p api.Progress) {
		if json.NewEncoder(out).Encode(p) == nil {
			_ = flush.Flush() // as above
		}
	}
	done, err := work(tell)
	switch {
	case err == nil:
		tell(api.Progress{Done: &done})
	case out.is:
		tell(api.Progress{Problem: problem(err)})
	default:
		fail(w, err)
	}
}
