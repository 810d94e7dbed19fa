package server

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"stepbox/session/api"
)

// What the supervisor of an older session can't do is said in words, with the
// way out; what it says itself stands.
func TestSupervisorOfAnotherVersion(t *testing.T) {
	mux := http.NewServeMux() // an older one's: it has these paths only
	mux.HandleFunc("POST /v1/sessions/one/kill", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"id":"one","state":"ended"}`)
	})
	mux.HandleFunc("POST /v1/sessions/one/decisions", func(w http.ResponseWriter, _ *http.Request) {
		fail(w, &api.Problem{Code: api.CodeNotFound, Message: "its own words"})
	})
	mux.HandleFunc("GET /v1/sessions/one/pause", func(http.ResponseWriter, *http.Request) {})
	for _, c := range []struct{ stepbox, want string }{
		{"", "started by an older Stepbox,"},
		{"v0.3.1", "started by Stepbox v0.3.1,"},
		{"\x1b[2J", `started by Stepbox \x1b[2J,`},
	} {
		client := hub(t, recordOnly{}, Supervisor{Socket: supervisor(t, mux), Stepbox: c.stepbox}, time.Minute)
		for what, err := range map[string]error{
			"no such path":   second(client.Keep(t.Context(), "one", 1)),
			"no such method": second(client.Pause(t.Context(), "one")),
		} {
			var p *api.Problem
			if !errors.As(err, &p) || p.Code != api.CodeUnknown || !strings.Contains(p.Message, c.want) || !strings.Contains(p.Message, "stepbox kill one") {
				t.Errorf("%s: %v", what, err)
			}
		}
		var p *api.Problem
		if _, err := client.Decide(t.Context(), "one", api.Decision{}); !errors.As(err, &p) || p.Code != api.CodeNotFound || p.Message != "its own words" {
			t.Errorf("what it answers itself became %v", err)
		}
		if s, err := client.Kill(t.Context(), "one"); err != nil || s.State != api.SessionEnded {
			t.Errorf("it can't be ended: %v", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// What concerns the record of all sessions is answered by who keeps it, also of a
// live session.
func TestHubKeepsTheRecord(t *testing.T) {
	client := hub(t, recordOnly{}, Supervisor{Socket: supervisor(t, http.NewServeMux())}, time.Minute)
	if sp, err := client.Space(t.Context(), "one"); err != nil || sp.Files != 3 {
		t.Errorf("its space is %+v, %v", sp, err)
	}
	var p *api.Problem
	if err := client.Remove(t.Context(), "one"); !errors.As(err, &p) || p.Code != api.CodeBusy {
		t.Errorf("Remove = %v", err)
	}
	for _, r := range []api.CollectRequest{{Dry: true}, {}, {Keep: new(1)}} {
		var got []api.Collecting
		for c, err := range client.Collect(t.Context(), r) {
			if err != nil {
				t.Errorf("Collect(%+v): %v", r, err)
			}
			got = append(got, c)
		}
		if len(got) != 2 || got[0].Dropped == nil || got[0].Dropped.ID != "old" {
			t.Errorf("Collect(%+v) = %+v", r, got)
		} else if p, done := got[1].Problem, got[1].Done; (p != nil) != (r.Keep != nil) || p != nil && p.Code != api.CodeBusy || done != nil && (done.Bodies != 7 || done.Dry != r.Dry) {
			t.Errorf("Collect(%+v) ends with %+v, %+v", r, done, p)
		}
	}
}
