// Package export writes a recorded session in forms that other programs read.
//
// All of it comes from the record, also of a session that is live, as a stream whose
// memory doesn't grow with the session. Secrets are replaced on the way (package
// redact), and what a terminal that plays an export would obey beyond drawing is left
// out (see filter).
package export

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/redact"
	"stepbox/store"
)

// Exporter reads from the record. It is safe for concurrent use.
type Exporter struct {
	Store   *store.Store
	History *files.History
	Environ []string // of the person: values of variables that are secret by their names are redacted

	// Sign signs as Ed25519 does, and names the key; nil: there is no key.
	Sign func(ctx context.Context, message []byte) (sig []byte, key string, err error)

	// Whole says what is wrong with a session's record, for what vouches for it; nil: nobody looks.
	Whole func(ctx context.Context, id string) error
}

// run is one export under way.
type run struct {
	*Exporter
	ctx context.Context
	s   api.Session
	req api.ExportRequest
	red *redact.Redactor
	out *bufio.Writer

	patch    func(io.Writer) error
	planning bool // what is written goes nowhere
}

var formats = map[string]struct {
	write func(*run) error
	names bool // the session
}{
	api.ExportCast:   {func(r *run) error { return r.cast(3) }, true},
	api.ExportCast2:  {func(r *run) error { return r.cast(2) }, true},
	api.ExportPatch:  {(*run).patched, false},
	api.ExportJSONL:  {(*run).jsonl, false},
	api.ExportHTML:   {(*run).html, true},
	api.ExportInToto: {(*run).intoto, true},
}

// Export writes a session. Patch writes its changes as a patch, which a live
// session's supervisor has newer than the record. An error means that what was
// written isn't whole.
func (e *Exporter) Export(ctx context.Context, id string, req api.ExportRequest, patch func(io.Writer) error, w io.Writer) error {
	red := redact.Off()
	if !req.NoRedact {
		red = redact.New(e.Environ)
	}
	return e.export(ctx, id, req, red, patch, w, false)
}

// Plan says what Export would redact.
func (e *Exporter) Plan(ctx context.Context, id string, req api.ExportRequest, patch func(io.Writer) error) (api.ExportPlan, error) {
	red := redact.New(e.Environ)
	err := e.export(ctx, id, req, red, patch, io.Discard, true)
	return api.ExportPlan{Secrets: red.Found()}, err
}

func (e *Exporter) export(ctx context.Context, id string, req api.ExportRequest, red *redact.Redactor, patch func(io.Writer) error, w io.Writer, planning bool) error {
	format, ok := formats[req.Format]
	if !ok {
		return api.Problemf(api.CodeUsage, "%q is no format; there are: %s", api.Escape(api.Trim(req.Format, 80)), strings.Join(api.ExportFormats, ", "))
	}
	s, err := e.History.Session(ctx, id)
	if err != nil {
		return err
	}
	if format.names {
		if s, err = clean(red, s); err != nil {
			return err
		}
	}
	r := &run{Exporter: e, ctx: ctx, s: s, req: req, red: red, out: bufio.NewWriterSize(w, 64<<10), patch: patch, planning: planning}
	if err := format.write(r); err != nil {
		return err
	}
	return r.out.Flush()
}

// json writes a value on a line of its own.
func (r *run) json(v any) error {
	enc := json.NewEncoder(r.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// redacted is how many secrets were replaced so far.
func (r *run) redacted() (n int) {
	for _, s := range r.red.Found() {
		n += s.Count
	}
	return n
}

// clean replaces the secrets in all texts of a session.
func clean(red *redact.Redactor, s api.Session) (out api.Session, err error) {
	doc, err := json.Marshal(s)
	if err == nil {
		doc, _ = red.JSON(doc, "the session")
		err = json.Unmarshal(doc, &out)
	}
	return out, err
}

// where says in words where the resources of a kind are.
func where(kind store.Kind) string { return "the record's " + string(kind) + "s" }

// text replaces the secrets of a text that isn't in the record so.
func (r *run) text(s, where string) string { return r.red.Text(s, where) }

// each calls f with all resources of a kind, by number, without secrets in any of
// their texts, and holds some at a time.
func each[T any](r *run, kind store.Kind, number func(T) int64, f func(T) error) error {
	const page = 256
	for after := int64(-1); ; {
		docs, err := r.Store.Docs(r.ctx, r.s.ID, kind, after, page)
		if err != nil {
			return fmt.Errorf("cannot read the record: %w", err)
		}
		for _, d := range docs {
			var v T
			d, _ = r.red.JSON(d, where(kind))
			if err := json.Unmarshal(d, &v); err != nil {
				return fmt.Errorf("cannot decode a %s of session %s: %w", kind, r.s.ID, err)
			}
			after = number(v)
			if err := f(v); err != nil {
				return err
			}
		}
		if len(docs) < page {
			return nil
		}
	}
}

// last is the newest event of the session.
func (r *run) last() (store.Event, error) {
	n, err := r.Store.LastEvent(r.ctx, r.s.ID)
	if err != nil {
		return store.Event{}, err
	}
	es, err := r.Store.Events(r.ctx, r.s.ID, n, 1)
	if err == nil && len(es) == 0 {
		err = fmt.Errorf("cannot read the record of session %s: it has no event", r.s.ID)
	}
	if err != nil {
		return store.Event{}, err
	}
	return es[0], nil
}
