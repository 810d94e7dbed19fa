package launch

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/server"
	"stepbox/store"
	"stepbox/store/storetest"
)

// A hub finds live sessions by their notes, wherever they listen, and tells of
// all from the record.
func TestHub(t *testing.T) {
	dir := host(t)
	st, err := store.Open(t.Context(), filepath.Join(dir, "data"))
	must.OK(t, err)
	for _, id := range []string{"old", "new"} {
		storetest.Begin(t, st, id, json.RawMessage(`{"id":"`+id+`","name":"n","state":"running"}`))
	}
	must.OK(t, st.Close())
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/sessions/new/pause", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"id":"new","state":"paused"}`)
	})
	socket := filepath.Join(dir, "sock")
	l, err := server.Listen(socket)
	must.OK(t, err)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(ctx, []net.Listener{l}, mux, slog.New(slog.DiscardHandler), time.Second)
	}()
	defer func() { stop(); <-served }()
	n := note{Name: "n", Root: filepath.Join(dir, "run", "stepbox"), Socket: socket, Stepbox: "v0.9"}
	mine, err := registryIn(filepath.Join(dir, "data")).announce("new", &n, true)
	must.OK(t, err)
	c, done, err := Hub(t.Context())
	must.OK(t, err)
	defer done()
	states := func() (out string) {
		all, err := c.Sessions(t.Context())
		must.OK(t, err)
		for _, s := range all {
			out += s.ID + " " + string(s.State) + ", "
		}
		return out
	}
	if got := states(); got != "new running, old interrupted, " {
		t.Errorf("the sessions are %s", got)
	}
	if s, err := c.Pause(t.Context(), "new"); err != nil || s.State != api.SessionPaused {
		t.Errorf("a live session answers %+v, %v", s, err)
	}
	for id, want := range map[string]string{"old": "it is interrupted", "new": "started by Stepbox v0.9", "none": "there is no session"} {
		_, err := c.Continue(t.Context(), id)
		if p := (*api.Problem)(nil); !errors.As(err, &p) || !strings.Contains(p.Message, want) {
			t.Errorf("%s: %v, want %q", id, err, want)
		}
	}
	must.OK(t, mine.withdraw())
	if got := states(); got != "new interrupted, old interrupted, " {
		t.Errorf("then the sessions are %s", got)
	}
}

// A record that can't be written is still looked at.
func TestHubReadsWhatItCannotWrite(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root can write it: see the run as another user")
	}
	dir := host(t)
	if _, _, err := second(Hub(t.Context())); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	for _, d := range []string{data, filepath.Join(data, "sessions")} {
		must.OK(t, os.Chmod(d, 0o500))
		defer func() { _ = os.Chmod(d, 0o700) }()
	}
	c, done, err := Hub(t.Context())
	must.OK(t, err)
	defer done()
	if all, err := c.Sessions(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}

// second lets a hub go at once.
func second(c *api.Client, done func(), err error) (*api.Client, func(), error) {
	if err == nil {
		done()
	}
	return c, done, err
}
