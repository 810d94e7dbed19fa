// Package server serves the API of package api over a unix socket: a
// supervisor its own session, the stepbox command all recorded sessions, whose
// requests for a live one it passes on to its supervisor.
//
// Who may connect: processes with the caller's uid that are in the server's own
// user namespace. The agent has that uid too, but never that namespace.
//
// Handlers are safe for concurrent use; a request's context ends with its
// connection.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"strconv"

	"stepbox/session/api"
	"stepbox/session/terminal"
)

// Reader is what can be asked of any session.
type Reader interface {
	Sessions(ctx context.Context) ([]api.Session, error)
	Session(ctx context.Context, id string) (api.Session, error)
	Actions(ctx context.Context, id string) ([]api.Action, error)
	Execs(ctx context.Context, id string, n int) ([]api.Exec, error)
	Questions(ctx context.Context, id string) ([]api.Question, error)
	Attempts(ctx context.Context, id string) ([]api.Attempt, error)
	Changes(ctx context.Context, id string, action int, p api.Page) (api.Changes, error)
	Diff(ctx context.Context, id, key string, action int) (api.FileDiff, error)
	Diffs(ctx context.Context, id string, action int) iter.Seq2[api.FileDiff, error]
	Events(ctx context.Context, id string, from uint64) iter.Seq2[api.Event, error]
	Recorded(ctx context.Context, id string, from uint64) iter.Seq2[api.Event, error]
	Tail(ctx context.Context, id string, last int) (events []api.Event, next uint64, err error)
	Screen(ctx context.Context, id string) (api.Frame, error)
	Output(ctx context.Context, id string) iter.Seq2[api.Frame, error] // of the agent, from its first byte on
}

// Controller is what can be asked of a live session besides.
type Controller interface {
	Decide(ctx context.Context, d api.Decision) (api.Question, error)
	Keep(ctx context.Context, n int) (api.Action, error)
	KillAction(ctx context.Context, n int) (api.Action, error)
	RollbackPlan(ctx context.Context, toBefore int) (api.RollbackPlan, error)
	Rollback(ctx context.Context, r api.RollbackRequest) (api.Rollback, error)
	SetMode(ctx context.Context, m api.Mode) (api.Session, error)
	Pause(ctx context.Context) (api.Session, error)
	Continue(ctx context.Context) (api.Session, error)
	Kill(ctx context.Context) (api.Session, error)
	Terminal() *terminal.Terminal
	Alive(ctx context.Context) error
}

// maxRequest bounds a request's body, in bytes.
const maxRequest = 64 << 10

// New makes a handler. Control returns the controller of a live session, or nil.
func New(r Reader, control func(id string) Controller) http.Handler {
	s := &server{r: r, control: control}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1", answer(func(*http.Request) (any, error) { return api.About{API: api.Version, Stepbox: api.Build()}, nil }))
	get := func(path string, f func(*http.Request) (any, error)) {
		mux.HandleFunc("GET /v1/sessions"+path, answer(f))
	}
	post := func(path string, f func(Controller, *http.Request) (any, error)) {
		mux.HandleFunc("POST /v1/sessions/{id}"+path, answer(s.live(f)))
	}
	get("", func(q *http.Request) (any, error) { return r.Sessions(q.Context()) })
	get("/{id}", func(q *http.Request) (any, error) { return r.Session(q.Context(), q.PathValue("id")) })
	get("/{id}/actions", func(q *http.Request) (any, error) { return r.Actions(q.Context(), q.PathValue("id")) })
	get("/{id}/actions/{n}", s.action)
	get("/{id}/actions/{n}/execs", func(q *http.Request) (any, error) {
		n, err := number(q.PathValue("n"))
		if err != nil {
			return nil, err
		}
		return r.Execs(q.Context(), q.PathValue("id"), n)
	})
	get("/{id}/questions", func(q *http.Request) (any, error) { return r.Questions(q.Context(), q.PathValue("id")) })
	get("/{id}/attempts", func(q *http.Request) (any, error) { return r.Attempts(q.Context(), q.PathValue("id")) })
	get("/{id}/changes", func(q *http.Request) (any, error) {
		n, err := optional(q, "action")
		if err != nil {
			return nil, err
		}
		limit, err := optional(q, "limit")
		if err != nil {
			return nil, err
		}
		return r.Changes(q.Context(), q.PathValue("id"), n, api.Page{After: q.URL.Query().Get("after"), Limit: limit})
	})
	get("/{id}/diff", func(q *http.Request) (any, error) {
		n, err := optional(q, "action")
		if err != nil {
			return nil, err
		}
		return r.Diff(q.Context(), q.PathValue("id"), q.URL.Query().Get("key"), n)
	})
	get("/{id}/alive", s.live(func(c Controller, q *http.Request) (any, error) { return struct{}{}, c.Alive(q.Context()) }))
	get("/{id}/rollback", s.live(func(c Controller, q *http.Request) (any, error) {
		n, err := number(q.URL.Query().Get("to_before"))
		if err != nil {
			return nil, err
		}
		return c.RollbackPlan(q.Context(), n)
	}))
	mux.HandleFunc("GET /v1/sessions/{id}/diffs", s.diffs)
	mux.HandleFunc("GET /v1/sessions/{id}/events", s.events)
	mux.HandleFunc("GET /v1/sessions/{id}/terminal", s.terminal)

	post("/decisions", func(c Controller, q *http.Request) (any, error) {
		var d api.Decision
		if err := read(q, &d); err != nil {
			return nil, err
		}
		return c.Decide(q.Context(), d)
	})
	post("/actions/{n}/keep", numbered(Controller.Keep))
	post("/actions/{n}/kill", numbered(Controller.KillAction))
	post("/rollback", func(c Controller, q *http.Request) (any, error) {
		var b api.RollbackRequest
		if err := read(q, &b); err != nil {
			return nil, err
		}
		return c.Rollback(q.Context(), b)
	})
	post("/mode", func(c Controller, q *http.Request) (any, error) {
		var b api.ModeRequest
		if err := read(q, &b); err != nil {
			return nil, err
		}
		return c.SetMode(q.Context(), b.Mode)
	})
	post("/pause", func(c Controller, q *http.Request) (any, error) { return c.Pause(q.Context()) })
	post("/continue", func(c Controller, q *http.Request) (any, error) { return c.Continue(q.Context()) })
	post("/kill", func(c Controller, q *http.Request) (any, error) { return c.Kill(q.Context()) })
	return mux
}

type server struct {
	r       Reader
	control func(id string) Controller
}

func (s *server) action(q *http.Request) (any, error) {
	n, err := number(q.PathValue("n"))
	if err != nil {
		return nil, err
	}
	all, err := s.r.Actions(q.Context(), q.PathValue("id"))
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		if a.N == n {
			return a, nil
		}
	}
	return nil, &api.Problem{Code: api.CodeNotFound, Message: "there is no action " + strconv.Itoa(n)}
}

// live wraps what only a live session can do.
func (s *server) live(f func(Controller, *http.Request) (any, error)) func(*http.Request) (any, error) {
	return func(q *http.Request) (any, error) {
		id := q.PathValue("id")
		if c := s.control(id); c != nil {
			return f(c, q)
		}
		info, err := s.r.Session(q.Context(), id)
		if err != nil {
			return nil, err
		}
		state := "it is " + string(info.State)
		if info.State != api.SessionEnded && info.State != api.SessionInterrupted {
			state = "its supervisor doesn't answer, so it is just starting or ending" // the record will say
		}
		return nil, &api.Problem{Code: api.CodeNotLive, Message: "session " + info.Name + " isn't running: " + state}
	}
}

func numbered[T any](f func(Controller, context.Context, int) (T, error)) func(Controller, *http.Request) (any, error) {
	return func(c Controller, q *http.Request) (any, error) {
		n, err := number(q.PathValue("n"))
		if err != nil {
			return nil, err
		}
		return f(c, q.Context(), n)
	}
}

// events streams newline-delimited JSON, each event as soon as it is there.
func (s *server) events(w http.ResponseWriter, q *http.Request) {
	var from uint64
	if t := q.URL.Query().Get("from"); t != "" {
		n, err := strconv.ParseUint(t, 10, 64)
		if err != nil {
			fail(w, &api.Problem{Code: api.CodeInvalid, Message: "from is a sequence number"})
			return
		}
		from = n
	}
	if _, err := s.r.Session(q.Context(), q.PathValue("id")); err != nil {
		fail(w, err)
		return
	}
	last, err := optional(q, "last")
	if err != nil {
		fail(w, err)
		return
	}
	var first []api.Event
	if last > 0 {
		if first, from, err = s.now(q.Context(), q.PathValue("id"), last); err != nil {
			fail(w, err)
			return
		}
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	_ = flush.Flush()
	events := s.r.Events
	if q.URL.Query().Get("follow") == "false" {
		events = s.r.Recorded
	}
	stream(q.Context(), w, flush, func(ctx context.Context) iter.Seq2[api.Event, error] {
		return then(first, events(ctx, q.PathValue("id"), from))
	})
}

// now is how a session stands, and the event from which on to go on. What is
// held is asked for last: what was opened or closed since is in those events.
func (s *server) now(ctx context.Context, id string, last int) (events []api.Event, next uint64, err error) {
	if events, next, err = s.r.Tail(ctx, id, last); err != nil {
		return nil, 0, err
	}
	held, err := s.r.Questions(ctx, id)
	for i := range held {
		events = append(events, api.Event{Kind: "question.now", Question: &held[i]})
	}
	return events, next, err
}

// then yields some events and what follows them.
func then(first []api.Event, more iter.Seq2[api.Event, error]) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		for _, e := range first {
			if !yield(e, nil) {
				return
			}
		}
		more(yield)
	}
}

// ahead is how many events are read ahead of what was sent.
const ahead = 256

// stream sends events as they come: at once when there are no more for now,
// else many at a time. A stream that ends early is joined again by the client.
func stream(ctx context.Context, w io.Writer, flush *http.ResponseController, events func(context.Context) iter.Seq2[api.Event, error]) {
	ctx, cancel := context.WithCancel(ctx)
	ready := make(chan api.Event, ahead) // full: the reader waits for the client
	go func() {
		defer close(ready)
		for e, err := range events(ctx) {
			if err != nil {
				return
			}
			select {
			case ready <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() {
		cancel()
		for range ready { // until the reader has ended
		}
	}()
	enc := json.NewEncoder(w)
	for e := range ready {
		if enc.Encode(e) != nil || len(ready) == 0 && flush.Flush() != nil {
			return
		}
	}
}

// diffs streams newline-delimited JSON, one changed file a line. What goes wrong
// before the first is answered like any request; later the connection is cut,
// so that half a list is never taken for all of it.
func (s *server) diffs(w http.ResponseWriter, q *http.Request) {
	n, err := optional(q, "action")
	if err != nil {
		fail(w, err)
		return
	}
	enc, begun := json.NewEncoder(w), false
	begin := func() {
		if !begun {
			begun = true
			w.Header().Set("Content-Type", "application/x-ndjson")
			w.WriteHeader(http.StatusOK)
		}
	}
	for d, err := range s.r.Diffs(q.Context(), q.PathValue("id"), n) {
		if err != nil && !begun {
			fail(w, err)
			return
		}
		begin()
		if err != nil || enc.Encode(d) != nil {
			panic(http.ErrAbortHandler)
		}
	}
	begin()
}

func number(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0, &api.Problem{Code: api.CodeInvalid, Message: strconv.Quote(api.Escape(s)) + " is no action number"}
	}
	return n, nil
}

func optional(q *http.Request, name string) (int, error) {
	if s := q.URL.Query().Get(name); s != "" {
		return number(s)
	}
	return 0, nil
}

func read(q *http.Request, v any) error {
	d := json.NewDecoder(http.MaxBytesReader(nil, q.Body, maxRequest))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return &api.Problem{Code: api.CodeInvalid, Message: "cannot read the request: " + err.Error()}
	}
	return nil
}

// answer turns a function into a handler.
func answer(f func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		v, err := f(q)
		if err != nil {
			fail(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) // the client is gone: nobody to tell
	}
}

var statuses = map[string]int{
	api.CodeNotFound: http.StatusNotFound,
	api.CodeInvalid:  http.StatusBadRequest,
	api.CodeDecided:  http.StatusConflict,
	api.CodeStale:    http.StatusConflict,
	api.CodeGone:     http.StatusConflict,
	api.CodeNotLive:  http.StatusConflict,
	api.CodeBusy:     http.StatusConflict,
	api.CodeUnknown:  http.StatusNotImplemented,
}

// fail is the one place where errors become answers.
func fail(w http.ResponseWriter, err error) {
	var p *api.Problem
	switch {
	case errors.As(err, &p):
	default:
		p = &api.Problem{Code: api.CodeInternal, Message: api.Escape(err.Error())}
	}
	status, ok := statuses[p.Code]
	if !ok {
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(p)
}
