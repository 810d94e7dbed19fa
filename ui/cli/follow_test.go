package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// following serves one ended session, whose events are these, and follows it.
func following(t *testing.T, s api.Session, events ...api.Event) *follower {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/sessions/one", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(s) })
	mux.HandleFunc("GET /v1/sessions/one/events", func(w http.ResponseWriter, _ *http.Request) {
		for i, e := range events {
			e.Seq = uint64(i + 1)
			_ = json.NewEncoder(w).Encode(e)
		}
	})
	srv := httptest.NewServer(mux)
	client := api.NewClientFunc(func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", srv.Listener.Addr().String())
	})
	t.Cleanup(func() { client.Close(); srv.Close() })
	f := &follower{client: client, id: "one"}
	must.OK(t, f.begin(t.Context()))
	return f
}

// said is what a follower says of all that.
func (f *follower) said(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	f.diag = &out
	must.OK(t, f.announce(t.Context()))
	return out.String()
}

// A session that goes on is followed from there, also where the host's clock was put back
// since it began.
func TestFollowsFromWhereItWentOn(t *testing.T) {
	began := time.Now()
	resumed := began.Add(-time.Hour)
	held := func(n int, at time.Time) api.Event {
		return api.Event{At: at, Kind: "question.opened", Question: &api.Question{ID: int64(n), Action: n, Title: "make", HeldAt: at}}
	}
	s := api.Session{ID: "one", State: api.SessionEnded, Resumed: 1, ResumedAt: began.Add(time.Hour)}
	f := following(t, s, held(1, began), api.Event{At: resumed, Kind: "session.resumed", Session: &s}, held(2, resumed))
	if got := f.said(t); got != "stepbox: held: make (stepbox approve one 2, or deny)\n" {
		t.Errorf("it said %q", got)
	}
	var lines bytes.Buffer
	f.events = &lines
	f.said(t)
	if got := strings.Count(lines.String(), "\n"); got != 2 {
		t.Errorf("%d events are told: %s", got, lines.String())
	}
}

// Who has no screen is told what a screen would show: what ended at a limit, and beyond
// which limit something is to go.
func TestFollowSaysWhatPersonsAreTold(t *testing.T) {
	f := following(t, api.Session{ID: "one", State: api.SessionEnded},
		api.Event{Kind: "note", Note: &api.Note{Text: "your policy is in force"}},
		api.Event{Kind: "note", Note: &api.Note{Text: "#1 is ended: it ran for 2s\x1b[2J", Warn: true}},
		api.Event{Kind: "question.opened", Question: &api.Question{ID: 1, Action: 2, Subject: api.SubjectLimit, Title: "make", Rule: "it ran for 9s, which is its limit"}})
	want := "stepbox: #1 is ended: it ran for 2s\\x1b[2J\n" +
		"stepbox: held: make: it ran for 9s, which is its limit (stepbox approve one 2, or deny)\n"
	if got := f.said(t); got != want {
		t.Errorf("it said %q", got)
	}
}

// A program that reads what happens and is gone is noticed before anything else happens.
func TestFollowNoticesThatNobodyReads(t *testing.T) {
	s := api.Session{ID: "one", State: api.SessionRunning}
	f := following(t, s) // its connections are refused or end at once, and are made again
	r, w, err := os.Pipe()
	must.OK(t, err)
	defer w.Close()
	_ = r.Close()
	var diag bytes.Buffer
	if err := follow(t.Context(), f.client, "one", strings.NewReader(""), io.Discard, &diag, w); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("it ended with %v", err)
	}
	if got := diag.String(); got != "stepbox: what happens can't be told any more: broken pipe\n" {
		t.Errorf("it said %q", got)
	}
}

// What waits to be reached is said with the command that answers just that.
func TestFollowSaysWhatAnswersAConnection(t *testing.T) {
	for want, c := range map[string]*api.Connection{
		"stepbox allow one a.example.org:443/udp, or deny":           {Host: "a.example.org", Rule: "a.example.org:443/udp"},
		"stepbox allow --once one a.example.org:443, or deny --once": {Host: "a.example.org", Rule: "a.example.org:443", Limit: "sent 1M"},
		"stepbox deny --once one '*', or allow one HOST":             {Many: []string{"a.example.org:443", "b.example.org:443"}},
	} {
		f := following(t, api.Session{ID: "one", State: api.SessionEnded},
			api.Event{Kind: "question.opened", Question: &api.Question{ID: 1, Subject: api.SubjectConnection, Title: "connect", Connection: c}})
		if got := f.said(t); got != "stepbox: held: connect ("+want+")\n" {
			t.Errorf("it said %q, want %q", got, want)
		}
	}
}
