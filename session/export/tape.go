package export

import (
	"errors"
	"io"
	"iter"
	"time"

	"stepbox/session/api"
	"stepbox/session/redact"
	"stepbox/store"
)

// take is something that happened in the terminal, or beside it.
type take struct {
	at         time.Duration // since the session began, never less than that of the one before
	kind       byte          // o: output, r: resize, m: a mark
	data       []byte        // output that is safe to play, or the mark's words
	cols, rows int
	n          int // counts the takes, so that the parts of one are known
}

const (
	output = 'o'
	resize = 'r'
	marked = 'm'
)

// tape calls f with what happened in the terminal, in order, and with marks, if asked
// for: of actions and denials. Where the record is damaged a mark says so, and what the
// terminal showed when it can be read again is drawn as a whole.
func (r *run) tape(marks bool, f func(take) error) error {
	var held *take // whose parts come one by one
	flush := func() error {
		if held == nil {
			return nil
		}
		t := *held
		held = nil
		return f(t)
	}
	stream := redact.Stream[take]{R: r.red, Where: "the terminal's output", Emit: func(p redact.Piece[take]) error {
		if held != nil && held.n == p.Tag.n {
			held.data = append(held.data, p.Data...)
			return nil
		}
		if err := flush(); err != nil {
			return err
		}
		t := p.Tag
		if t.kind == output {
			t.data = p.Data
		}
		held = &t
		return nil
	}}
	n, at, clean := 0, time.Duration(0), filter{}
	add := func(t take) error {
		n++
		at = max(at, t.at)
		t.n, t.at = n, at
		if t.kind != output {
			return stream.Add(redact.Piece[take]{Tag: t})
		}
		return clean.write(t.data, func(data []byte, text bool) error {
			return stream.Add(redact.Piece[take]{Data: data, Text: text, Tag: take{at: t.at, kind: output, n: n}})
		})
	}
	next, stop := iter.Pull2(r.marks(marks))
	defer stop()
	mark, merr, more := next()
	before := func(at time.Duration) error {
		for more && merr == nil && mark.at <= at {
			if err := add(mark); err != nil {
				return err
			}
			mark, merr, more = next()
		}
		return merr
	}
	rec, err := r.Store.Recording(r.ctx, r.s.ID)
	if err != nil {
		return err
	}
	late := time.Duration(0) // the terminal began after the session
	if began := rec.Began(); !began.IsZero() {
		late = began.Sub(r.s.StartedAt)
	}
	lost := false
	for frame, err := range rec.From(-1) { // all of it
		if err := r.ctx.Err(); err != nil {
			return err
		}
		// The frame's data is the reader's; a piece keeps it.
		takes := []take{{at: frame.At + late, kind: output, data: frame.Data}}
		sized := take{at: frame.At + late, kind: resize, cols: clamp(frame.Cols), rows: clamp(frame.Rows)}
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			lost, clean = true, filter{}
			takes = []take{{at: at, kind: marked, data: []byte(damaged)}}
		case err != nil:
			return err
		case frame.Kind == store.FrameKey && !lost:
			continue // it says what the frames before it made
		case frame.Kind == store.FrameKey:
			lost, takes = false, []take{sized, {at: sized.at, kind: output, data: append([]byte("\x1bc"), frame.Data...)}}
		case frame.Kind == store.FrameResize:
			takes = []take{sized}
		}
		if err := before(takes[0].at); err != nil {
			return err
		}
		for _, t := range takes {
			if err := add(t); err != nil {
				return err
			}
		}
	}
	if err := before(1<<63 - 1); err != nil {
		return err
	}
	if err := stream.Close(); err != nil {
		return err
	}
	return flush()
}

// damaged are the words where the record of the terminal can't be read.
const damaged = "what was printed here is missing: its record is damaged"

// clamp bounds a terminal's size.
func clamp(n int) int { return min(max(n, 1), 1000) }

// marks yields a mark for each action, when it began, and for each that was denied.
func (r *run) marks(any bool) iter.Seq2[take, error] {
	return func(yield func(take, error) bool) {
		if !any {
			return
		}
		newest := 0
		for e, err := range r.History.Recorded(r.ctx, r.s.ID, 0, string(store.KindAction)) {
			if err != nil {
				yield(take{}, err)
				return
			}
			a := e.Action
			if a == nil {
				continue
			}
			words := ""
			switch {
			case a.Housekeeping:
			case a.State == api.ActionDenied && e.Kind == "action.denied":
				words = "denied: " + a.Title
			case a.N > newest:
				words = a.Title
			}
			newest = max(newest, a.N)
			if words == "" {
				continue
			}
			t := take{at: max(0, e.At.Sub(r.s.StartedAt)), kind: marked, data: []byte(r.text(words, where(store.KindAction)))}
			if !yield(t, nil) {
				return
			}
		}
	}
}
