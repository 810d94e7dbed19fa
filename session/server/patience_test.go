package server

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// supervisor listens as one does, with whatever handler.
func supervisor(t *testing.T, h http.Handler) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "sock")
	l, err := Listen(socket)
	must.OK(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, []net.Listener{l}, h, slog.New(slog.DiscardHandler), time.Second) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return socket
}

// hub is a client of all sessions, of which one lives. A sign of life may take
// so long.
func hub(t *testing.T, r Reader, live Supervisor, wait time.Duration) *api.Client {
	t.Helper()
	return serve(t, Services{Reader: r, Keeper: fakeKeeper{}}, live, wait)
}

// serve is a client of a hub.
func serve(t *testing.T, s Services, live Supervisor, wait time.Duration) *api.Client {
	t.Helper()
	pipe := NewPipe()
	srv := &http.Server{Handler: newHub(s, func(string) Supervisor { return live }, slog.New(slog.DiscardHandler), patient{asks: 10 * time.Millisecond, wait: wait})}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(pipe) }() // ends with Close
	c := api.NewClientFunc(pipe.Dial)
	t.Cleanup(func() {
		c.Close()
		srv.Close()
		pipe.Close()
		<-done
	})
	return c
}

func TestSlowAnswerIsWaitedForWhileTheSupervisorLives(t *testing.T) {
	signs := make(chan struct{}, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/sessions/one/alive", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "{}")
		signs <- struct{}{}
	})
	mux.HandleFunc("POST /v1/sessions/one/kill", func(w http.ResponseWriter, _ *http.Request) {
		for range 3 { // it is asked for a sign of life again and again
			<-signs
		}
		_, _ = io.WriteString(w, `{"id":"one","state":"ended"}`)
	})
	c := hub(t, recordOnly{}, Supervisor{Socket: supervisor(t, mux)}, time.Minute)
	s, err := c.Kill(t.Context(), "one")
	if err != nil || s.State != api.SessionEnded {
		t.Errorf("a slow answer came as %v, %v", s.State, err)
	}
	for len(signs) > 0 {
		<-signs
	}
}

// recordOnly is a record of one session.
type recordOnly struct{ Reader }

func (recordOnly) Session(context.Context, string) (api.Session, error) {
	return api.Session{ID: "one", Name: "recorded"}, nil
}

func (recordOnly) Actions(context.Context, string) ([]api.Action, error) {
	return []api.Action{{N: 1}}, nil
}

func (recordOnly) Recorded(context.Context, string, uint64, ...string) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) { yield(api.Event{Kind: "note", Note: &api.Note{ID: 1}}, nil) }
}

// What is in the record is told whatever its supervisor does.
func TestStuckSupervisorIsSaidToBe(t *testing.T) {
	c := hub(t, recordOnly{}, Supervisor{Socket: supervisor(t, http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		<-q.Context().Done() // its client has given up
	}))}, 10*time.Millisecond)
	if s, err := c.Session(t.Context(), "one"); err != nil || s.Name != "recorded" {
		t.Errorf("the session is %+v, %v", s, err)
	}
	if l, err := c.Actions(t.Context(), "one"); err != nil || len(l) != 1 {
		t.Errorf("its actions are %+v, %v", l, err)
	}
	events := 0
	for e, err := range c.Recorded(t.Context(), "one", 0) {
		if events++; err != nil || e.Kind != "note" {
			t.Errorf("an event is %+v, %v", e, err)
		}
	}
	if events != 1 {
		t.Errorf("%d events were told", events)
	}
	_, err := c.Kill(t.Context(), "one")
	var p *api.Problem
	if !errors.As(err, &p) || p.Code != api.CodeBusy || !strings.Contains(p.Message, "doesn't answer") || !strings.Contains(p.Message, "kill -9") {
		t.Errorf("a stuck supervisor is told as %v", err)
	}
}

func TestLongSocketPathIsRefused(t *testing.T) {
	p := filepath.Join(t.TempDir(), strings.Repeat("x", 100))
	if err := CheckPath(p); err == nil || !strings.Contains(err.Error(), "XDG_RUNTIME_DIR") {
		t.Errorf("%v", err)
	}
}

// A socket that only Stepbox itself looks for may have any path.
func TestListenAtALongPath(t *testing.T) {
	p := filepath.Join(t.TempDir(), strings.Repeat("x", 200), "sock")
	must.OK(t, os.Mkdir(filepath.Dir(p), 0o700))
	l, err := Listen(p)
	must.OK(t, err)
	defer l.Close()
	c, err := Dial(t.Context(), p)
	must.OK(t, err)
	defer c.Close()
	in, err := l.Accept()
	must.OK(t, err)
	in.Close()
	if info, err := os.Lstat(p); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("it is %v, %v", info, err)
	}
}

// The server's end gives a terminal's client what it still takes, and doesn't
// wait for one that takes nothing.
func TestEndGivesClientsTheRest(t *testing.T) {
	here, there := net.Pipe()
	c := newConns()
	conn := take(c.with(context.Background()), there)
	sent := make(chan error, 1)
	go func() {
		defer conn.Close()
		_, err := conn.Write(make([]byte, 200<<10))
		sent <- err
	}()
	ended := make(chan struct{})
	go func() { defer close(ended); c.end() }()
	got, err := io.ReadAll(here)
	if err != nil || len(got) != 200<<10 {
		t.Errorf("the client got %d bytes, %v", len(got), err)
	}
	<-ended
	if err := <-sent; err != nil {
		t.Error(err)
	}

	_, there = net.Pipe() // nobody reads
	c = newConns()
	conn = take(c.with(context.Background()), there)
	go func() {
		defer conn.Close()
		_, err := conn.Write([]byte("x"))
		sent <- err
	}()
	c.end()
	if err := <-sent; err == nil {
		t.Error("what nobody took was sent")
	}
}
