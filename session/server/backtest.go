package server

import (
	"context"
	"net/http"

	"stepbox/session/api"
	"stepbox/session/backtest"
)

// backtests adds the routes on rules and what was recorded.
func backtests(mux *http.ServeMux, b *backtest.Backtester) {
	mux.HandleFunc("POST /v1/policy/try", walked(func(ctx context.Context, r api.PolicyTry, tell func(api.PastSeen)) (api.PolicyTried, error) {
		return b.Try(ctx, r, tell)
	}))
}

// walked answers with how far something is that goes through recorded sessions, last with
// what came of it.
func walked[R, T any](f func(context.Context, R, func(api.PastSeen)) (T, error)) http.HandlerFunc {
	return told(func(q *http.Request, r R, tell func(api.PastTold[T])) (T, error) {
		return f(q.Context(), r, func(p api.PastSeen) { tell(api.PastTold[T]{PastSeen: p}) })
	}, func(done *T, p *api.Problem) *api.PastTold[T] {
		return &api.PastTold[T]{Done: done, Problem: p}
	})
}
