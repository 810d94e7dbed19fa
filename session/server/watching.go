package server

import (
	"net/http"
	"path"
	"slices"

	"stepbox/session/api"
)

// looking are the requests with a body that change nothing: plans, patches and
// questions that are too long for a path.
var looking = []string{"rollback-plan", "apply-plan", "undo-plan", "patch", "find", "export", "export-plan", "show", "check", "explain", "test", "try"}

// Watching lets only those requests through that change nothing, for who is only
// to watch; what they send to a terminal, its size too, counts for nothing.
func Watching(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method != http.MethodGet && !(q.Method == http.MethodPost && slices.Contains(looking, path.Base(q.URL.Path))) {
			fail(w, api.Problemf(api.CodeWatching, "you are watching only: stepbox attach, without --read-only, decides"))
			return
		}
		if path.Base(q.URL.Path) == "terminal" {
			of := q.URL.Query()
			of.Set("watching", "true")
			q = q.Clone(q.Context())
			q.URL.RawQuery = of.Encode()
		}
		h.ServeHTTP(w, q)
	})
}
