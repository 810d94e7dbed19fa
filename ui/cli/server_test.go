package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/ui/cli"
)

// answers is a server that has one answer for each request, "GET /v1/sessions"
// and so on. What isn't there is answered as by a server that hasn't the path.
type answers struct {
	*testing.T
	of     map[string]any // a *api.Problem is an answer too; a []json.RawMessage is sent line by line where a stream is asked for
	client *api.Client

	mu    sync.Mutex
	asked []string // guarded by mu; requests, with their bodies
}

func serve(t *testing.T, of map[string]any) *answers {
	t.Helper()
	a := &answers{T: t, of: of}
	srv := httptest.NewServer(a)
	a.client = api.NewClientFunc(func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", srv.Listener.Addr().String())
	})
	t.Cleanup(func() { a.client.Close(); srv.Close() })
	return a
}

func (a *answers) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		a.Error(err)
	}
	what := q.Method + " " + q.RequestURI
	a.mu.Lock()
	a.asked = append(a.asked, strings.TrimSpace(what+" "+string(body)))
	a.mu.Unlock()
	v, ok := a.of[what]
	if what == "POST /v1/find" { // the stepbox command's own hub always has it
		v, ok = foundIn(a.T, a.of["GET /v1/sessions"]), true
	}
	if !ok {
		http.NotFound(w, q)
		return
	}
	if p, ok := v.(*api.Problem); ok {
		w.WriteHeader(http.StatusConflict)
		v = p
	}
	enc := json.NewEncoder(w)
	if lines, ok := v.([]json.RawMessage); ok {
		for _, l := range lines {
			_ = enc.Encode(l) // the client may be gone
		}
		return
	}
	_ = enc.Encode(v)
}

// run runs a command line and gives what it printed and its exit code.
func (a *answers) run(args ...string) (out string, code int) {
	a.Helper()
	var b bytes.Buffer
	root := &cobra.Command{Use: "stepbox"}
	cli.Plain(root)
	connect := func(context.Context) (*api.Client, func(), error) { return a.client, func() {}, nil }
	root.AddCommand(cli.Commands(connect, connect)...)
	root.SetArgs(args)
	root.SetOut(&b)
	root.SetErr(&b)
	err := root.ExecuteContext(a.Context())
	if err != nil {
		cli.PrintError(&b, err)
	}
	return b.String(), cli.Code(err)
}

// requests gives what was asked for since the last call, lists left out.
func (a *answers) requests() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []string
	for _, r := range a.asked {
		if r != "GET /v1/sessions" {
			out = append(out, r)
		}
	}
	a.asked = nil
	return out
}

// recorded are the answers of a server as it sent them, over one session in step mode.
func recorded(t *testing.T) map[string]any {
	t.Helper()
	b, err := os.ReadFile("testdata/answers.json")
	must.OK(t, err)
	var all map[string]any
	must.OK(t, json.Unmarshal(b, &all))
	of := make(map[string]any)
	for what, v := range all {
		if strings.Contains(what, "/diffs") || strings.Contains(what, "/events") {
			var lines []json.RawMessage
			for _, l := range v.([]any) {
				b, err := json.Marshal(l)
				must.OK(t, err)
				lines = append(lines, b)
			}
			of[what] = lines
			continue
		}
		of[what] = v
	}
	return of
}

// foundIn is an answer that finds all sessions.
func foundIn(t *testing.T, sessions any) any {
	b, err := json.Marshal(sessions)
	var all []json.RawMessage
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil {
		t.Error(err)
	}
	found := []any{}
	for _, s := range all {
		found = append(found, map[string]any{"session": s})
	}
	return map[string]any{"found": found, "total": len(all)}
}
