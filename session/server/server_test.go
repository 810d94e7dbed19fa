package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"stepbox/session/api"
)

// inState is a record of one session.
type inState struct {
	Reader
	state api.SessionState
}

func (r inState) Session(context.Context, string) (api.Session, error) {
	return api.Session{Name: "one", State: r.state}, nil
}

// A session whose supervisor is about to go isn't said to run and not to run.
func TestNobodyAnswersForASession(t *testing.T) {
	for state, want := range map[api.SessionState]string{
		api.SessionEnded: "it is ended", api.SessionInterrupted: "it is interrupted", api.SessionRunning: "starting or ending", api.SessionPaused: "starting or ending",
	} {
		h := New(inState{state: state}, func(string) Controller { return nil })
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://stepbox/v1/sessions/x/pause", strings.NewReader("{}")))
		if text := w.Body.String(); w.Code == http.StatusOK || !strings.Contains(text, want) || strings.Contains(text, "it is "+string(api.SessionRunning)) {
			t.Errorf("%s: %d %s, want words with %q", state, w.Code, text, want)
		}
	}
}
