package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Who only watches reads all there is and changes nothing: what isn't known to
// change nothing isn't let through.
func TestWatching(t *testing.T) {
	var got string
	h := Watching(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { got = q.Method + " " + q.URL.String() }))
	for request, want := range map[string]string{
		"GET /v1/sessions":                             "GET /v1/sessions",
		"GET /v1/sessions/one/changes?action=2":        "GET /v1/sessions/one/changes?action=2",
		"GET /v1/sessions/one/terminal":                "GET /v1/sessions/one/terminal?watching=true",
		"GET /v1/sessions/one/terminal?watching=false": "GET /v1/sessions/one/terminal?watching=true",
		"POST /v1/sessions/one/rollback-plan":          "POST /v1/sessions/one/rollback-plan",
		"POST /v1/sessions/one/applies/3/undo-plan":    "POST /v1/sessions/one/applies/3/undo-plan",
		"POST /v1/sessions/one/patch":                  "POST /v1/sessions/one/patch",
		"POST /v1/sessions/one/rollback":               "",
		"POST /v1/sessions/one/decisions":              "",
		"POST /v1/sessions/one/actions/2/keep":         "",
		"POST /v1/sessions/one/applies":                "",
		"POST /v1/sessions/one/kill":                   "",
		"POST /v1/sessions/one/whatever-comes":         "",
		"PATCH /v1/sessions/one":                       "",
		"DELETE /v1/sessions/one":                      "",
	} {
		got = ""
		method, path, _ := strings.Cut(request, " ")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, "http://stepbox"+path, nil))
		if u, _ := strings.CutPrefix(got, method+" http://stepbox"); got != "" {
			got = method + " " + u
		}
		if got != want || want == "" && (w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), `"watching"`)) {
			t.Errorf("%s: let through as %q, want %q; %d %s", request, got, want, w.Code, w.Body)
		}
	}
}
