package server

import (
	"cmp"
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

// progress tells how an apply goes, unless what was asked for is wrong.
func progress(w http.ResponseWriter, bad error, work func(tell func(api.Progress)) (api.Apply, error)) {
	told(w, func(tell func(api.Progress)) error {
		if bad != nil {
			return bad
		}
		done, err := work(tell)
		if err == nil {
			tell(api.Progress{Done: &done})
		}
		return err
	}, func(p *api.Problem) api.Progress { return api.Progress{Problem: p} })
}
