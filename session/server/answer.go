package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	"stepbox/runner/fault"
	"stepbox/session/api"
)

// maxRequest bounds a request's body, in bytes: a selection may name tens of
// thousands of files.
const maxRequest = 16 << 20

// of asks for what a session has.
func of[T any](f func(ctx context.Context, id string) (T, error)) func(*http.Request) (any, error) {
	return func(q *http.Request) (any, error) { return f(q.Context(), q.PathValue("id")) }
}

// bare is a request that has nothing to say but its path.
func bare[T any](f func(Controller, context.Context) (T, error)) func(Controller, *http.Request) (any, error) {
	return func(c Controller, q *http.Request) (any, error) { return f(c, q.Context()) }
}

// numbered is a request on one action.
func numbered[T any](f func(Controller, context.Context, int) (T, error)) func(Controller, *http.Request) (any, error) {
	return func(c Controller, q *http.Request) (any, error) {
		n, err := number(q.PathValue("n"))
		if err != nil {
			return nil, err
		}
		return f(c, q.Context(), n)
	}
}

// withBody answers requests to a live session that have a body.
func withBody[B, T any](f func(Controller, context.Context, B) (T, error)) func(Controller, *http.Request) (any, error) {
	return func(c Controller, q *http.Request) (any, error) {
		return asked(func(ctx context.Context, _ string, body B) (T, error) { return f(c, ctx, body) })(q)
	}
}

// asked answers requests that have a body; the id is "" where they concern no session.
func asked[B, T any](f func(ctx context.Context, id string, body B) (T, error)) func(*http.Request) (any, error) {
	return func(q *http.Request) (any, error) {
		body, err := bodyOf[B](q)
		if err != nil {
			return nil, err
		}
		return f(q.Context(), q.PathValue("id"), body)
	}
}

// bodyOf reads a request's body to its end: only then is it noticed that a client
// closes the connection. One with a field that isn't known is refused: what it asks
// for there wouldn't happen.
func bodyOf[B any](q *http.Request) (body B, err error) {
	b, err := io.ReadAll(http.MaxBytesReader(nil, q.Body, maxRequest))
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		err = d.Decode(&body)
	}
	if err != nil {
		err = api.Problemf(api.CodeInvalid, "cannot read the request: %s", api.Escape(err.Error()))
	}
	return body, err
}

func number(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0, api.Problemf(api.CodeInvalid, "%q is no action number", api.Escape(s))
	}
	return n, nil
}

func optional(q *http.Request, name string) (int, error) {
	if s := q.URL.Query().Get(name); s != "" {
		return number(s)
	}
	return 0, nil
}

// scope is what a request for changes compares.
func scope(q *http.Request) (api.Scope, error) {
	action, err := optional(q, "action")
	if err != nil {
		return api.Scope{}, err
	}
	since, err := optional(q, "since")
	if err == nil && action != 0 && since != 0 {
		err = api.Problemf(api.CodeInvalid, "action and since can't both be given")
	}
	in := api.Scope{Action: action, Since: int64(since), From: api.Moment(q.URL.Query().Get("from")), To: api.Moment(q.URL.Query().Get("to"))}
	if err == nil && (in.From != "" || in.To != "") && (action != 0 || since != 0) {
		err = api.Problemf(api.CodeInvalid, "moments can't be given with action or since")
	}
	return in, err
}

// named is a request whose context tells whom it is from.
func named(q *http.Request) *http.Request {
	return q.WithContext(api.WithPerson(q.Context(), api.From(q)))
}

// answer turns a function into a handler.
func answer(f func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		v, err := survive(f, named(q))
		if err != nil {
			fail(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) // the client is gone: nobody to tell
	}
}

// survive calls what answers a request. Should that panic, who asked hears of it, and nothing ends.
func survive(f func(*http.Request) (any, error), q *http.Request) (v any, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = errors.New("stepbox failed at this request, " + fault.Of(cause))
		}
	}()
	return f(q)
}

var statuses = map[string]int{
	api.CodeNotFound: http.StatusNotFound,
	api.CodeInvalid:  http.StatusBadRequest,
	api.CodeUsage:    http.StatusBadRequest,
	api.CodeDecided:  http.StatusConflict,
	api.CodeStale:    http.StatusConflict,
	api.CodeGone:     http.StatusConflict,
	api.CodeNotLive:  http.StatusConflict,
	api.CodeBusy:     http.StatusConflict,
	api.CodeUnknown:  http.StatusNotImplemented,
	api.CodeWatching: http.StatusForbidden,
}

// problem is the one place where errors become what a client is told.
func problem(err error) *api.Problem {
	var p *api.Problem
	if !errors.As(err, &p) {
		p = &api.Problem{Code: api.CodeInternal, Message: api.Escape(err.Error())}
	}
	return p
}

func fail(w http.ResponseWriter, err error) {
	p := problem(err)
	status, ok := statuses[p.Code]
	if !ok {
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(p)
}
