package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"

	"stepbox/runner/socket"
	"stepbox/session/api"
	"stepbox/session/backtest"
	"stepbox/session/bisect"
	"stepbox/session/blame"
	"stepbox/session/explain"
	"stepbox/session/export"
	"stepbox/session/find"
	"stepbox/session/seal"
)

// Supervisor is where a live session is served.
type Supervisor struct {
	Socket  string // "": the session isn't live
	Stepbox string // the supervisor's own version; "" when it is from before that was noted
}

// Keeper keeps the record of all sessions in bounds.
type Keeper interface {
	Space(ctx context.Context, id string) (api.Space, error)
	Remove(ctx context.Context, id string) error
	// Collect tells of each session that goes, and how it goes.
	Collect(ctx context.Context, r api.CollectRequest, tell func(api.Collecting)) (api.Collected, error)
}

// Homes are the home folders that sessions have of their own.
type Homes interface {
	Changes(ctx context.Context, id string) (api.HomeChanges, error)
	Keep(ctx context.Context, id string, r api.KeepHome) (api.HomeChanges, error)
}

// Services are what a hub answers from.
type Services struct {
	Reader   Reader
	Applier  Applier // of sessions that nobody has any more
	Keeper   Keeper
	Homes    Homes
	Replayer Replayer
	Exporter *export.Exporter
	Travel   Traveller
	Finder   *find.Finder
	Verifier seal.Verifier
	Key      seal.Key
	Blamer   *blame.Blamer
	Bisector *bisect.Bisector
	Policies *explain.Service
	Backtest *backtest.Backtester
}

// NewHub serves sessions from their record and passes what concerns a live one
// and isn't in there on to its supervisor. What is odd goes to the log.
func NewHub(s Services, find func(id string) Supervisor, l *slog.Logger) http.Handler {
	return newHub(s, find, l, patient{asks: askTime, wait: answerTime})
}

func newHub(s Services, find func(id string) Supervisor, l *slog.Logger, transport patient) http.Handler {
	k := s.Keeper
	recorded := New(s.Reader, s.Applier, func(string) Controller { return nil })
	transport.RoundTripper = &http.Transport{
		DisableKeepAlives: true, // a supervisor that has ended leaves nothing behind here
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			id, _, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			return Dial(ctx, find(id).Socket)
		},
	}
	mux := http.NewServeMux()
	mux.Handle("/", recorded)
	one := func(w http.ResponseWriter, q *http.Request) {
		id := q.PathValue("id")
		live := find(id)
		if live.Socket == "" {
			recorded.ServeHTTP(w, q)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, maxRequest)) // which may have to be read twice
		if err != nil {
			fail(w, api.Problemf(api.CodeInvalid, "cannot read the request: %s", api.Escape(err.Error())))
			return
		}
		q.Body = io.NopCloser(bytes.NewReader(body))
		proxy := &httputil.ReverseProxy{
			Transport:     transport,
			FlushInterval: -1, // events are sent as they happen
			ErrorLog:      ErrorLog(l),
			Rewrite: func(p *httputil.ProxyRequest) {
				p.SetURL(&url.URL{Scheme: "http", Host: id})
			},
			ModifyResponse: func(resp *http.Response) error { return known(resp, id, live.Stepbox) },
			ErrorHandler: func(w http.ResponseWriter, q *http.Request, err error) {
				if p := (*api.Problem)(nil); errors.As(err, &p) {
					fail(w, p)
					return
				}
				if errors.Is(err, errStuck) {
					fail(w, &api.Problem{Code: api.CodeBusy, Message: fmt.Sprintf("the supervisor of session %s doesn't answer; if it is stuck, killing it (%s) ends the session and keeps its record", id, owner(live.Socket))})
					return
				}
				// It ended between the look and the request: its record answers.
				q.Body = io.NopCloser(bytes.NewReader(body))
				recorded.ServeHTTP(w, q)
			},
		}
		proxy.ServeHTTP(w, q)
	}
	mux.HandleFunc("/v1/sessions/{id}/{rest...}", one)
	// Nothing is told before it is in the record, so this is as new there, and
	// a supervisor that is stuck or stopped doesn't keep anyone from it.
	for _, what := range []string{"", "/actions", "/actions/{n}", "/actions/{n}/execs", "/attempts", "/applies"} {
		mux.Handle("GET /v1/sessions/{id}"+what, recorded)
	}
	mux.HandleFunc("GET /v1/sessions/{id}/space", answer(of(k.Space)))
	mux.HandleFunc("GET /v1/sessions/{id}/home", answer(func(q *http.Request) (any, error) { return s.Homes.Changes(q.Context(), q.PathValue("id")) }))
	mux.HandleFunc("POST /v1/sessions/{id}/home/keep", answer(asked(func(ctx context.Context, id string, r api.KeepHome) (api.HomeChanges, error) {
		return s.Homes.Keep(ctx, id, r)
	})))
	mux.HandleFunc("DELETE /v1/sessions/{id}", answer(func(q *http.Request) (any, error) {
		return struct{}{}, k.Remove(q.Context(), q.PathValue("id"))
	}))
	mux.HandleFunc("POST /v1/collect", told(func(q *http.Request, r api.CollectRequest, tell func(api.Collecting)) (api.Collected, error) {
		return k.Collect(q.Context(), r, tell)
	}, func(done *api.Collected, p *api.Problem) *api.Collecting {
		return &api.Collecting{Done: done, Problem: p}
	}))
	exports(mux, s.Exporter, one)
	past(mux, s)
	policies(mux, s.Policies)
	kept(mux, s.Policies)
	backtests(mux, s.Backtest)
	// What was is in the record, of live sessions too.
	for _, what := range []string{"/changes", "/diff", "/diffs"} {
		mux.HandleFunc("GET /v1/sessions/{id}"+what, func(w http.ResponseWriter, q *http.Request) {
			if of := q.URL.Query(); of.Has("from") || of.Has("to") {
				recorded.ServeHTTP(w, q)
				return
			}
			one(w, q)
		})
	}
	replays := replays{s.Replayer}
	mux.HandleFunc("GET /v1/sessions/{id}/timeline", answer(replays.timeline))
	mux.HandleFunc("GET /v1/sessions/{id}/moment", answer(replays.moment))
	mux.HandleFunc("GET /v1/sessions/{id}/first", answer(byKey(func(q *http.Request, path string) (any, error) {
		return s.Replayer.FirstChange(q.Context(), q.PathValue("id"), path)
	})))
	mux.HandleFunc("GET /v1/sessions/{id}/terminal", func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Query().Has("at") {
			replays.terminal(w, q)
			return
		}
		one(w, q)
	})
	mux.HandleFunc("GET /v1/sessions/{id}/events", func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Query().Has("at") {
			replays.events(w, q)
			return
		}
		if q.URL.Query().Get("follow") == "false" {
			recorded.ServeHTTP(w, q)
			return
		}
		one(w, q)
	})
	return mux
}

// known turns the answer of a supervisor that hasn't what is asked for into one
// that says what to do: it is of another version, and its own answers are JSON.
func known(resp *http.Response, id, stepbox string) error {
	none := resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusMethodNotAllowed
	if !none || resp.Header.Get("Content-Type") == "application/json" {
		return nil
	}
	by := "an older Stepbox"
	if stepbox != "" {
		by = "Stepbox " + api.Escape(api.Trim(stepbox, 80))
	}
	return api.Problemf(api.CodeUnknown, "session %s was started by %s, which can't do that; end it with stepbox kill %s, or use the Stepbox that it was started with", id, by, id)
}

// ErrorLog is where an http.Server or a proxy says what it can't tell a client;
// by default that would be this process's standard error, in a person's screen.
func ErrorLog(l *slog.Logger) *log.Logger { return slog.NewLogLogger(l.Handler(), slog.LevelWarn) }

// owner names the process that listens on a socket.
func owner(at string) string {
	c, err := Dial(context.Background(), at)
	if err != nil {
		return "it has ended meanwhile"
	}
	defer c.Close()
	cred, err := socket.Peer(c)
	if err != nil {
		return "its process isn't known"
	}
	return fmt.Sprintf("kill -9 %d", cred.Pid)
}

// Pipe is a listener in memory, for a hub that only its own process asks.
type Pipe struct {
	conns chan net.Conn
	done  context.Context
	close context.CancelFunc
}

// NewPipe makes a listener that is reached through its Dial.
func NewPipe() *Pipe {
	ctx, cancel := context.WithCancel(context.Background())
	return &Pipe{conns: make(chan net.Conn), done: ctx, close: cancel}
}

// Dial connects to the listener.
func (p *Pipe) Dial(ctx context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.done.Done():
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept waits for the next Dial.
func (p *Pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done.Done():
		return nil, net.ErrClosed
	}
}

// Close ends the listener.
func (p *Pipe) Close() error { p.close(); return nil }

// Addr names the listener.
func (p *Pipe) Addr() net.Addr { return &net.UnixAddr{Name: "in memory", Net: "unix"} }
