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
	"cmp"
	"context"
	"io"
	"iter"
	"net/http"

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
	Applies(ctx context.Context, id string) ([]api.Apply, error)
	Rollbacks(ctx context.Context, id string) ([]api.Rollback, error)
	Changes(ctx context.Context, id string, in api.Scope, p api.Page) (api.Changes, error)
	Diff(ctx context.Context, id, key string, in api.Scope) (api.FileDiff, error)
	Diffs(ctx context.Context, id string, in api.Scope) iter.Seq2[api.FileDiff, error]
	Patch(ctx context.Context, id string, r api.PatchRequest, w io.Writer) error
	// Events and Recorded give those of some kinds of resources alone, if any are named.
	Events(ctx context.Context, id string, from uint64, kinds ...string) iter.Seq2[api.Event, error]
	Recorded(ctx context.Context, id string, from uint64, kinds ...string) iter.Seq2[api.Event, error]
	Tail(ctx context.Context, id string, last int) (events []api.Event, next uint64, err error)
	Screen(ctx context.Context, id string) (api.Frame, error)
	Output(ctx context.Context, id string) iter.Seq2[api.Frame, error] // of the agent, from its first byte on
}

// Applier writes sessions' changes to their project folders: of the live session
// that a supervisor has, or of those that nobody has any more.
type Applier interface {
	ApplyPlan(ctx context.Context, id string, r api.ApplyRequest) (api.ApplyPlan, error)
	// Apply and Undo tell how they go until they return. When ctx ends, they end
	// with the project folder as it was.
	Apply(ctx context.Context, id string, r api.ApplyRequest, tell func(api.Progress)) (api.Apply, error)
	UndoPlan(ctx context.Context, id string, apply int64) (api.ApplyPlan, error)
	Undo(ctx context.Context, id string, apply int64, r api.UndoRequest, tell func(api.Progress)) (api.Apply, error)
}

// Controller is what can be asked of a live session besides.
type Controller interface {
	Decide(ctx context.Context, d api.Decision) (api.Question, error)
	Keep(ctx context.Context, n int) (api.Action, error)
	KillAction(ctx context.Context, n int) (api.Action, error)
	RollbackPlan(ctx context.Context, r api.RollbackRequest) (api.RollbackPlan, error)
	Rollback(ctx context.Context, r api.RollbackRequest) (api.Rollback, error)
	Publish(ctx context.Context, p api.Publishing) (api.Port, error)
	Unpublish(ctx context.Context, p api.Publishing) (api.Session, error)
	SetMode(ctx context.Context, m api.Mode) (api.Session, error)
	AddRule(ctx context.Context, r api.Rule) (api.Ruled, error)
	RemoveRule(ctx context.Context, r api.Rule) (api.Session, error)
	Proposals(ctx context.Context, question int64) ([]api.Proposal, error)
	Pause(ctx context.Context) (api.Session, error)
	Continue(ctx context.Context) (api.Session, error)
	Kill(ctx context.Context) (api.Session, error)
	Hear(ctx context.Context, n api.News) (api.Session, error)
	Terminal() *terminal.Terminal
	Alive(ctx context.Context) error
}

// New makes a handler. Control returns the controller of a live session, or nil.
func New(r Reader, a Applier, control func(id string) Controller) http.Handler {
	s := &server{r: r, a: a, control: control}
	mux := http.NewServeMux()
	get := func(path string, f func(*http.Request) (any, error)) {
		mux.HandleFunc("GET /v1"+path, answer(f))
	}
	post := func(path string, f func(Controller, *http.Request) (any, error)) {
		mux.HandleFunc("POST /v1/sessions/{id}"+path, answer(s.live(f)))
	}
	get("", func(*http.Request) (any, error) { return api.About{API: api.Version, Stepbox: api.Build()}, nil })
	get("/sessions", func(q *http.Request) (any, error) { return r.Sessions(q.Context()) })
	get("/sessions/{id}", of(r.Session))
	get("/sessions/{id}/actions", of(r.Actions))
	get("/sessions/{id}/actions/{n}", s.action)
	get("/sessions/{id}/actions/{n}/execs", func(q *http.Request) (any, error) {
		n, err := number(q.PathValue("n"))
		if err != nil {
			return nil, err
		}
		return r.Execs(q.Context(), q.PathValue("id"), n)
	})
	get("/sessions/{id}/questions", of(r.Questions))
	get("/sessions/{id}/attempts", of(r.Attempts))
	get("/sessions/{id}/applies", of(r.Applies))
	get("/sessions/{id}/rollbacks", of(r.Rollbacks))
	get("/sessions/{id}/changes", func(q *http.Request) (any, error) {
		in, err := scope(q)
		if err != nil {
			return nil, err
		}
		limit, err := optional(q, "limit")
		if err != nil {
			return nil, err
		}
		return r.Changes(q.Context(), q.PathValue("id"), in, api.Page{
			After: q.URL.Query().Get("after"), Limit: limit, Grouped: q.URL.Query().Get("grouped") == "true",
		})
	})
	get("/sessions/{id}/diff", func(q *http.Request) (any, error) {
		in, err := scope(q)
		if err != nil {
			return nil, err
		}
		return r.Diff(q.Context(), q.PathValue("id"), q.URL.Query().Get("key"), in)
	})
	get("/sessions/{id}/alive", s.live(func(c Controller, q *http.Request) (any, error) { return struct{}{}, c.Alive(q.Context()) }))
	mux.HandleFunc("GET /v1/sessions/{id}/diffs", s.diffs)
	mux.HandleFunc("POST /v1/sessions/{id}/patch", s.patch)
	mux.HandleFunc("GET /v1/sessions/{id}/events", s.events)
	mux.HandleFunc("GET /v1/sessions/{id}/terminal", s.terminal)

	apply := func(path string, h http.HandlerFunc) { mux.HandleFunc("POST /v1/sessions/{id}"+path, h) }
	apply("/apply-plan", answer(asked(func(ctx context.Context, id string, r api.ApplyRequest) (api.ApplyPlan, error) {
		return s.a.ApplyPlan(ctx, id, r)
	})))
	apply("/applies", told(s.apply, progress))
	apply("/applies/{n}/undo-plan", answer(s.undoPlan))
	apply("/applies/{n}/undo", told(s.undo, progress))

	post("/decisions", withBody(func(c Controller, ctx context.Context, d api.Decision) (api.Question, error) {
		d.By = cmp.Or(api.Person(ctx), d.By)
		return c.Decide(ctx, d)
	}))
	post("/actions/{n}/keep", numbered(Controller.Keep))
	post("/actions/{n}/kill", numbered(Controller.KillAction))
	post("/rollback-plan", withBody(Controller.RollbackPlan))
	post("/rollback", withBody(func(c Controller, ctx context.Context, r api.RollbackRequest) (api.Rollback, error) {
		r.By = cmp.Or(api.Person(ctx), r.By)
		return c.Rollback(ctx, r)
	}))
	post("/mode", withBody(func(c Controller, ctx context.Context, b api.ModeRequest) (api.Session, error) {
		return c.SetMode(ctx, b.Mode)
	}))
	post("/ports", withBody(func(c Controller, ctx context.Context, p api.Publishing) (api.Port, error) {
		p.By = cmp.Or(api.Person(ctx), p.By)
		return c.Publish(ctx, p)
	}))
	mux.HandleFunc("DELETE /v1/sessions/{id}/ports", answer(s.live(withBody(Controller.Unpublish))))
	mux.HandleFunc("DELETE /v1/sessions/{id}/rules", answer(s.live(withBody(Controller.RemoveRule))))
	get("/sessions/{id}/questions/{n}/proposals", s.live(func(c Controller, q *http.Request) (any, error) {
		n, err := number(q.PathValue("n"))
		if err != nil {
			return nil, err
		}
		return c.Proposals(q.Context(), int64(n))
	}))
	post("/rules", withBody(func(c Controller, ctx context.Context, r api.Rule) (api.Ruled, error) {
		r.By = cmp.Or(api.Person(ctx), r.By)
		return c.AddRule(ctx, r)
	}))
	post("/pause", bare(Controller.Pause))
	post("/continue", bare(Controller.Continue))
	post("/kill", bare(Controller.Kill))
	post("/news", withBody(Controller.Hear))
	return mux
}

type server struct {
	r       Reader
	a       Applier
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
	return nil, api.Problemf(api.CodeNotFound, "there is no #%d", n)
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
		state := "it is " + string(info.State) + "; stepbox resume " + info.ID + " goes on with it"
		switch {
		case info.Live():
			state = "its supervisor doesn't answer, so it is just starting or ending" // the record will say
		}
		return nil, api.Problemf(api.CodeNotLive, "session %s isn't running: %s", info.Name, state)
	}
}
