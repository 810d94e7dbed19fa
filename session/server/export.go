package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"stepbox/session/api"
	"stepbox/session/export"
)

// exports adds the routes. One answers what a live session's supervisor knows better
// than the record, which is the patch.
func exports(mux *http.ServeMux, e *export.Exporter, one http.HandlerFunc) {
	mux.HandleFunc("POST /v1/sessions/{id}/export-plan", answer(func(q *http.Request) (any, error) {
		r, err := bodyOf[api.ExportRequest](q)
		if err != nil {
			return nil, err
		}
		return e.Plan(q.Context(), q.PathValue("id"), r, patchOf(q, r, one))
	}))
	mux.HandleFunc("POST /v1/sessions/{id}/export", func(w http.ResponseWriter, q *http.Request) {
		r, err := bodyOf[api.ExportRequest](q)
		if err != nil {
			fail(w, err)
			return
		}
		out := &begun{ResponseWriter: w, kind: "application/octet-stream"}
		out.end(e.Export(q.Context(), q.PathValue("id"), r, patchOf(q, r, one), out))
	})
}

// patchOf asks for a session's patch as a client would.
func patchOf(q *http.Request, r api.ExportRequest, one http.HandlerFunc) func(io.Writer) error {
	return func(w io.Writer) (err error) {
		body, err := json.Marshal(r.PatchRequest)
		if err != nil {
			return err
		}
		ask := q.Clone(q.Context())
		ask.URL.Path = "/v1/sessions/" + q.PathValue("id") + "/patch"
		ask.Body, ask.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		got := &inner{w: w, header: make(http.Header), status: http.StatusOK}
		defer func() {
			if v := recover(); v == http.ErrAbortHandler { // it broke off
				err = errors.Join(io.ErrUnexpectedEOF, got.err)
			} else if v != nil {
				panic(v)
			}
		}()
		one(got, ask)
		if got.status == http.StatusOK {
			return got.err
		}
		p := &api.Problem{Code: api.CodeInternal, Message: http.StatusText(got.status)}
		_ = json.Unmarshal(got.problem, p) // else the status says it
		return p
	}
}

// inner takes the answer of a handler that is asked from within.
type inner struct {
	w       io.Writer
	header  http.Header
	status  int
	problem []byte // the body of one that isn't a success
	err     error  // of w
}

func (i *inner) Header() http.Header    { return i.header }
func (i *inner) WriteHeader(status int) { i.status = status }
func (i *inner) Flush()                 {}

func (i *inner) Write(p []byte) (int, error) {
	if i.status != http.StatusOK {
		if len(i.problem) < 1<<16 {
			i.problem = append(i.problem, p...)
		}
		return len(p), nil
	}
	n, err := i.w.Write(p)
	i.err = errors.Join(i.err, err)
	return n, err
}
