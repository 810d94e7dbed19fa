package server

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"strconv"

	"stepbox/session/api"
)

// events streams newline-delimited JSON, each event as soon as it is there.
func (s *server) events(w http.ResponseWriter, q *http.Request) {
	first, from, err := s.begin(q)
	if err != nil {
		fail(w, err)
		return
	}
	(&begun{ResponseWriter: w, kind: lines}).begin()
	flush := http.NewResponseController(w)
	_ = flush.Flush()
	events := s.r.Events
	if q.URL.Query().Get("follow") == "false" {
		events = s.r.Recorded
	}
	stream(q.Context(), w, flush, func(ctx context.Context) iter.Seq2[api.Event, error] {
		return then(first, events(ctx, q.PathValue("id"), from, q.URL.Query()["kind"]...))
	})
}

// begin reads where a stream begins, and what comes before it.
func (s *server) begin(q *http.Request) (first []api.Event, from uint64, err error) {
	if t := q.URL.Query().Get("from"); t != "" {
		if from, err = strconv.ParseUint(t, 10, 64); err != nil {
			return nil, 0, api.Problemf(api.CodeInvalid, "from is a sequence number")
		}
	}
	if _, err := s.r.Session(q.Context(), q.PathValue("id")); err != nil {
		return nil, 0, err
	}
	last, err := optional(q, "last")
	if err != nil || last == 0 {
		return nil, from, err
	}
	return s.now(q.Context(), q.PathValue("id"), last)
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

// stream sends events as they come: at once when no more are waiting,
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

// diffs streams newline-delimited JSON, one changed file a line.
func (s *server) diffs(w http.ResponseWriter, q *http.Request) {
	in, err := scope(q)
	if err != nil {
		fail(w, err)
		return
	}
	sendDiffs(w, s.r.Diffs(q.Context(), q.PathValue("id"), in))
}

func sendDiffs(w http.ResponseWriter, all iter.Seq2[api.FileDiff, error]) {
	out := &begun{ResponseWriter: w, kind: lines}
	enc := json.NewEncoder(out)
	for d, err := range all {
		if err == nil {
			err = enc.Encode(d)
		}
		if err != nil {
			out.end(err)
			return
		}
	}
	out.end(nil)
}

// patch streams a patch.
func (s *server) patch(w http.ResponseWriter, q *http.Request) {
	r, err := bodyOf[api.PatchRequest](q)
	if err != nil {
		fail(w, err)
		return
	}
	out := &begun{ResponseWriter: w, kind: "text/x-diff"}
	out.end(s.r.Patch(q.Context(), q.PathValue("id"), r, out))
}

// lines is newline-delimited JSON.
const lines = "application/x-ndjson"

// begun is an answer that streams, and knows whether anything of it was sent.
type begun struct {
	http.ResponseWriter
	kind string // its content's type
	is   bool
}

func (b *begun) begin() {
	if !b.is {
		b.is = true
		b.Header().Set("Content-Type", b.kind)
		b.WriteHeader(http.StatusOK)
	}
}

// Write sends p.
func (b *begun) Write(p []byte) (int, error) {
	b.begin()
	return b.ResponseWriter.Write(p)
}

// end ends the answer. What goes wrong before its first byte is answered like any
// request; later the connection is cut, so that half of it is never taken for all.
func (b *begun) end(err error) {
	switch {
	case err == nil:
		b.begin()
	case b.is:
		panic(http.ErrAbortHandler)
	default:
		fail(b.ResponseWriter, err)
	}
}
