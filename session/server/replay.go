package server

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"strconv"
	"time"

	"stepbox/session/api"
)

// Replayer answers how a session was, from its record.
type Replayer interface {
	Timeline(ctx context.Context, id string, most int, since uint64) (api.Timeline, error)
	At(ctx context.Context, id string, m api.Moment) (api.At, error)
	FirstChange(ctx context.Context, id, path string) (api.At, error)
	TailAt(ctx context.Context, id string, seq uint64, last int) ([]json.RawMessage, error) // of api.Event
	TerminalAt(ctx context.Context, id string, offset time.Duration) iter.Seq2[api.Frame, error]
}

type replays struct{ Replayer }

func (r replays) timeline(q *http.Request) (any, error) {
	most, err := optional(q, "most")
	since, serr := optional(q, "since")
	if err := cmp.Or(err, serr); err != nil {
		return nil, err
	}
	return r.Timeline(q.Context(), q.PathValue("id"), most, uint64(since))
}

func (r replays) moment(q *http.Request) (any, error) {
	return r.At(q.Context(), q.PathValue("id"), api.Moment(q.URL.Query().Get("at")))
}

// events says how a session stood just after an event.
func (r replays) events(w http.ResponseWriter, q *http.Request) {
	seq, err := strconv.ParseUint(q.URL.Query().Get("at"), 10, 63)
	if err != nil {
		fail(w, api.Problemf(api.CodeInvalid, "at is a sequence number"))
		return
	}
	last, err := optional(q, "last")
	if err != nil {
		fail(w, err)
		return
	}
	events, err := r.TailAt(q.Context(), q.PathValue("id"), seq, last)
	out := &begun{ResponseWriter: w, kind: lines}
	for i := 0; err == nil && i < len(events); i++ {
		_, err = out.Write(append(events[i], '\n'))
	}
	out.end(err)
}

// terminal sends a terminal from a time on.
func (r replays) terminal(w http.ResponseWriter, q *http.Request) {
	ms, err := strconv.ParseInt(q.URL.Query().Get("at"), 10, 64)
	if err != nil || ms < 0 || ms > time.Duration(1<<63-1).Milliseconds() {
		fail(w, api.Problemf(api.CodeInvalid, "at is a number of milliseconds"))
		return
	}
	ctx, cancel := context.WithCancel(q.Context())
	defer cancel()
	next, stop := iter.Pull2(r.TerminalAt(ctx, q.PathValue("id"), time.Duration(ms)*time.Millisecond))
	defer stop()
	f, err, ok := next() // which finds the place
	if err != nil {
		fail(w, err)
		return
	}
	conn, in := hijack(w, q)
	if conn == nil {
		return
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		_, _ = io.Copy(io.Discard, in) // until the viewer has left
		cancel()
	}()
	out := bufio.NewWriterSize(conn, 64<<10)
	for ; ok && err == nil && api.WriteFrame(out, f) == nil; f, err, ok = next() {
		if f.Kind == api.FrameKeyframe && out.Flush() != nil { // it is waited for
			break
		}
	}
	_ = out.Flush() // the viewer is gone: nobody to tell
	conn.Close()    // ends the reader
	<-left
}
