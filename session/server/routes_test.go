package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"stepbox/session/api"
)

// ask sends one request to a server of a fake session.
func ask(f *fakeSession, request, body string) *httptest.ResponseRecorder {
	method, path, _ := strings.Cut(request, " ")
	w := httptest.NewRecorder()
	New(f, f, f.control).ServeHTTP(w, httptest.NewRequest(method, "http://stepbox"+path, strings.NewReader(body)))
	return w
}

func live() *fakeSession {
	return &fakeSession{info: api.Session{ID: "one", Name: "n", State: api.SessionRunning}}
}

// Every path asks the session for what it says, and answers with what comes.
func TestRoutes(t *testing.T) {
	for _, c := range []struct{ request, body, asks, answer string }{
		{"GET /v1", "", "", fmt.Sprintf(`{"api":%d,"stepbox":%q}`, api.Version, api.Build())},
		{"GET /v1/sessions", "", "Sessions", `[{"id":"one","name":"n",`},
		{"GET /v1/sessions/one", "", "Session", `{"id":"one","name":"n",`},
		{"GET /v1/sessions/one/actions", "", "Actions", `[{"n":1,`},
		{"GET /v1/sessions/one/actions/2", "", "Actions", `{"n":2,`},
		{"GET /v1/sessions/one/actions/0/execs", "", "Execs 0", `[{"id":7,`},
		{"GET /v1/sessions/one/questions", "", "Questions", `[{"id":3,`},
		{"GET /v1/sessions/one/attempts", "", "Attempts", `[{"id":4,`},
		{"GET /v1/sessions/one/changes", "", `Changes 0 after "" at most 0`, `"scope":"s"`},
		{"GET /v1/sessions/one/changes?action=2&after=k&limit=5", "", `Changes 2 after "k" at most 5`, `"scope":"s"`},
		{"GET /v1/sessions/one/diff?key=k&action=2", "", `Diff "k" 2`, `"note":"d"`},
		{"GET /v1/sessions/one/diffs?action=2", "", "Diffs 2", `"note":"d"`},
		{"POST /v1/sessions/one/patch", `{"action":2}`, "Patch 2 []", "diff\n"},
		{"POST /v1/sessions/one/patch", `{"actions":[1,2],"globs":["*"]}`, "Patch 0 [1 2]", "diff\n"},
		{"GET /v1/sessions/one/events?from=5", "", "Session, Events 5", `{"seq":5,`},
		{"GET /v1/sessions/one/events?from=5&follow=false", "", "Session, Recorded 5", `{"seq":5,`},
		{"GET /v1/sessions/one/events?last=3", "", "Session, Tail 3, Questions, Events 9", `"kind":"session.now"`},
		{"GET /v1/sessions/one/alive", "", "Alive", `{}`},
		{"POST /v1/sessions/one/decisions", `{"question":3,"hash":"h","answer":"deny"}`, "Decide 3 h deny", `{"id":3,`},
		{"POST /v1/sessions/one/actions/2/keep", "", "Keep 2", `{"n":2,`},
		{"POST /v1/sessions/one/actions/2/kill", "", "KillAction 2", `{"n":2,`},
		{"POST /v1/sessions/one/rollback", `{"to_before":2,"hash":"h"}`, "Rollback 2 h", `"to_before":2`},
		{"GET /v1/sessions/one/applies", "", "Applies", `[{"id":5,`},
		{"GET /v1/sessions/one/rollbacks", "", "Rollbacks", `[{"id":6,`},
		{"POST /v1/sessions/one/apply-plan", `{"globs":["src/**"]}`, "ApplyPlan [src/**]", `{"hash":"h",`},
		{"POST /v1/sessions/one/applies", `{"hash":"h"}`, "Apply h", `"part":1,"whole":2}` + "\n" + `{"done":{"id":5,`},
		{"POST /v1/sessions/one/applies/5/undo-plan", "", "UndoPlan 5", `{"hash":"u",`},
		{"POST /v1/sessions/one/applies/5/undo", `{"hash":"u"}`, "Undo 5 u", `{"done":{"id":5,`},
		{"POST /v1/sessions/one/ports", `{"port":3000,"at":3001,"by":"cli"}`, "Publish 3000 by cli", `{"port":3000,"at":3001`},
		{"DELETE /v1/sessions/one/ports", `{"port":3000}`, "Unpublish 3000", `{"id":"one"`},
		{"POST /v1/sessions/one/mode", `{"mode":"step"}`, "SetMode step", `{"id":"one"`},
		{"GET /v1/sessions/one/questions/3/proposals", "", "Proposals 3", `[{"pattern":"go *"`},
		{"POST /v1/sessions/one/rules", `{"verdict":"allow","host":"example.org","by":"cli"}`, "AddRule allow example.org by cli", `{"id":"one"`},
		{"DELETE /v1/sessions/one/rules", `{"verdict":"deny","host":"example.org"}`, "RemoveRule deny example.org", `{"id":"one"`},
		{"POST /v1/sessions/one/pause", "", "Pause", `{"id":"one"`},
		{"POST /v1/sessions/one/continue", "", "Continue", `{"id":"one"`},
		{"POST /v1/sessions/one/kill", "", "Kill", `{"id":"one"`},
		{"POST /v1/sessions/one/news", `{"kind":"started","from":{"id":"two","name":"t","folder":"/p"}}`, "Hear started two", `{"id":"one"`},
	} {
		t.Run(c.request, func(t *testing.T) {
			f := live()
			w := ask(f, c.request, c.body)
			if asked := strings.Join(f.asked, ", "); w.Code != http.StatusOK || asked != c.asks || !strings.Contains(w.Body.String(), c.answer) {
				t.Errorf("%d %s\nit asked %q, want %q and %s", w.Code, w.Body, asked, c.asks, c.answer)
			}
			if _, path, _ := strings.Cut(c.request, " "); strings.Contains(path, "/one/") {
				// What fails below is answered as such, in printable words, on every path.
				f := live()
				f.err = errFake
				w := ask(f, c.request, c.body)
				var p api.Problem
				if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != http.StatusInternalServerError || p.Code != api.CodeInternal || p.Message != `it failed\x1b[2J` {
					t.Errorf("a failure is answered %d %s", w.Code, w.Body)
				}
			}
		})
	}
}

// What can't be asked is refused before the session hears of it.
func TestRefusedRequests(t *testing.T) {
	deep := strings.Repeat(" ", maxRequest)
	for _, c := range []struct {
		request, body string
		status        int
		code, words   string
	}{
		{"GET /v1/sessions/one/actions/x", "", 400, api.CodeInvalid, `"x" is no action number`},
		{"GET /v1/sessions/one/actions/-1", "", 400, api.CodeInvalid, "no action number"},
		{"GET /v1/sessions/one/actions/%1b%5B2J", "", 400, api.CodeInvalid, `x1b[2J`},
		{"GET /v1/sessions/one/actions/99999999999999999999", "", 400, api.CodeInvalid, "no action number"},
		{"GET /v1/sessions/one/actions/x/execs", "", 400, api.CodeInvalid, "no action number"},
		{"GET /v1/sessions/one/changes?action=x", "", 400, api.CodeInvalid, "no action number"},
		{"GET /v1/sessions/one/changes?limit=-5", "", 400, api.CodeInvalid, "no action number"},
		{"GET /v1/sessions/one/diff?action=x", "", 400, api.CodeInvalid, "no action number"},
		{"GET /v1/sessions/one/diffs?action=x", "", 400, api.CodeInvalid, "no action number"},
		{"GET /v1/sessions/one/events?from=-1", "", 400, api.CodeInvalid, "sequence number"},
		{"POST /v1/sessions/one/actions/x/keep", "", 400, api.CodeInvalid, "no action number"},
		{"POST /v1/sessions/one/decisions", "", 400, api.CodeInvalid, "cannot read the request"},
		{"POST /v1/sessions/one/decisions", `{"question":`, 400, api.CodeInvalid, "cannot read the request"},
		{"POST /v1/sessions/one/decisions", `{"question":"3"}`, 400, api.CodeInvalid, "cannot read the request"},
		{"POST /v1/sessions/one/decisions", `{"question":3,"only_if":"it rains"}`, 400, api.CodeInvalid, "only_if"},
		{"POST /v1/sessions/one/rollback", deep + `{"to_before":1}`, 400, api.CodeInvalid, "too large"},
		{"GET /v1/sessions/one/terminal", "", 400, api.CodeInvalid, "Upgrade: stepbox-terminal"},
	} {
		f := live()
		f.term = newTerminal(t).Terminal
		w := ask(f, c.request, c.body)
		var p api.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != c.status || p.Code != c.code || !strings.Contains(p.Message, c.words) {
			t.Errorf("%s %.40s: %d %s, want %d %s with %q", c.request, c.body, w.Code, w.Body, c.status, c.code, c.words)
		}
		if len(f.asked) > 0 {
			t.Errorf("%s: the session was asked %v", c.request, f.asked)
		}
	}
	for request, status := range map[string]int{
		"GET /v1/nothing": 404, "GET /": 404, "GET /v2/sessions": 404,
		"POST /v1/sessions": 405, "DELETE /v1/sessions/one": 405, "GET /v1/sessions/one/kill": 405,
	} {
		if w := ask(live(), request, ""); w.Code != status {
			t.Errorf("%s is answered %d, want %d", request, w.Code, status)
		}
	}
}

// What a session refuses has a status of its own; who isn't there is not found.
func TestProblems(t *testing.T) {
	for code, status := range map[string]int{
		api.CodeNotFound: 404, api.CodeInvalid: 400, api.CodeDecided: 409, api.CodeStale: 409, api.CodeGone: 409,
		api.CodeNotLive: 409, api.CodeBusy: 409, api.CodeUnknown: 501, api.CodeInternal: 500, "of a later version": 500,
	} {
		f := live()
		f.err = fmt.Errorf("on the way: %w", &api.Problem{Code: code, Message: "words"})
		w := ask(f, "POST /v1/sessions/one/pause", "")
		var p api.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != status || p.Code != code || p.Message != "words" {
			t.Errorf("%s is answered %d %s, want %d", code, w.Code, w.Body, status)
		}
	}
	for _, request := range []string{
		"GET /v1/sessions/two", "GET /v1/sessions/two/actions", "GET /v1/sessions/two/events", "GET /v1/sessions/two/diffs",
		"GET /v1/sessions/two/terminal", "GET /v1/sessions/two/terminal?from=start", "GET /v1/sessions/one/actions/3",
		"POST /v1/sessions/two/kill", "GET /v1/sessions/two/alive",
	} {
		if w := ask(live(), request, ""); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), api.CodeNotFound) {
			t.Errorf("%s: %d %s", request, w.Code, w.Body)
		}
	}
}

// A session that nobody answers for isn't said to run and not to run.
func TestNobodyAnswersForASession(t *testing.T) {
	for state, want := range map[api.SessionState]string{
		api.SessionEnded: "it is ended; stepbox resume", api.SessionInterrupted: "it is interrupted; stepbox resume", api.SessionRunning: "starting or ending", api.SessionPaused: "starting or ending",
	} {
		f := &fakeSession{info: api.Session{Name: "one", State: state}}
		w := httptest.NewRecorder()
		New(f, f, func(string) Controller { return nil }).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://stepbox/v1/sessions/one/pause", strings.NewReader("{}")))
		if text := w.Body.String(); w.Code != http.StatusConflict || !strings.Contains(text, want) || strings.Contains(text, "it is "+string(api.SessionRunning)) {
			t.Errorf("%s: %d %s, want words with %q", state, w.Code, text, want)
		}
	}
}

// What panics while it answers ends nothing, and who asked can report it.
func TestAPanicIsAnswered(t *testing.T) {
	w := httptest.NewRecorder()
	answer(func(*http.Request) (any, error) { return nil, []error{}[len(t.Name())] })(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if body := w.Body.String(); w.Code != http.StatusInternalServerError || !strings.Contains(body, "stepbox failed at this request, please report this: ") || !strings.Contains(body, "out of range") || !strings.Contains(body, " at routes_test.go:") {
		t.Errorf("the answer is %d %s", w.Code, body)
	}
}
