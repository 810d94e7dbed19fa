package server

import (
	"cmp"
	"net/http"
	"strconv"

	"stepbox/session/api"
)

func (s *server) apply(q *http.Request, r api.ApplyRequest, tell func(api.Progress)) (api.Apply, error) {
	r.By = cmp.Or(api.From(q), r.By)
	return s.a.Apply(q.Context(), q.PathValue("id"), r, tell)
}

func (s *server) undoPlan(q *http.Request) (any, error) {
	n, err := applyNumber(q)
	if err != nil {
		return nil, err
	}
	return s.a.UndoPlan(q.Context(), q.PathValue("id"), n)
}

func (s *server) undo(q *http.Request, r api.UndoRequest, tell func(api.Progress)) (api.Apply, error) {
	r.By = cmp.Or(api.From(q), r.By)
	n, err := applyNumber(q)
	if err != nil {
		return api.Apply{}, err
	}
	return s.a.Undo(q.Context(), q.PathValue("id"), n, r, tell)
}

func applyNumber(q *http.Request) (int64, error) {
	n, err := strconv.ParseInt(q.PathValue("n"), 10, 64)
	if err != nil || n < 1 {
		return 0, api.Problemf(api.CodeInvalid, "%q is no apply's number", api.Escape(q.PathValue("n")))
	}
	return n, nil
}

// progress is the last that is told of an apply.
func progress(done *api.Apply, p *api.Problem) *api.Progress {
	return &api.Progress{Done: done, Problem: p}
}
