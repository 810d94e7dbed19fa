package ui

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"stepbox/session/api"
	"stepbox/ui/link"
)

// record is what a fake server has of a session's past, beside its events.
type record struct {
	course  api.Timeline
	courses *atomic.Int64 // how often it was read
	printed []piece
	marks   []api.Begun // where actions began on the screen that a reading begins with
	found   []api.Hit
	notes   []string      // what a search says it couldn't search
	behind  int           // how often a search finds nothing yet
	gone    bool          // it was removed
	reads   chan struct{} // unless nil, one is taken for each reading of the terminal
}

// piece is what was printed at a time.
type piece struct {
	off  time.Duration
	cols int // a resize, if not 0
	rows int
	data string
	lost string // it can't be read, until the next that isn't lost
}

// SetRecord changes what is recorded.
func (c *fakeClient) SetRecord(f func(*record)) {
	defer c.lock()()
	f(&c.record)
}

// SetUpTo sets what had changed by a moment.
func (c *fakeClient) SetUpTo(m api.Moment, x api.Changes) {
	defer c.lock()()
	c.changes[api.Scope{To: m}] = x
}

func (c *fakeClient) recorded(id string) (record, []api.Event, error) {
	s, err := c.find(id)
	defer c.lock()()
	r := c.record
	if r.gone {
		err = &api.Problem{Code: api.CodeNotFound, Message: "there is no session " + id}
	}
	r.course.Session = s
	events := slices.DeleteFunc(slices.Clone(c.events), func(e api.Event) bool { return e.Seq == 0 })
	return r, events, err
}

func (c *fakeClient) Timeline(_ context.Context, id string, most int, since uint64) (api.Timeline, error) {
	r, _, err := c.recorded(id)
	if r.courses != nil {
		r.courses.Add(1)
	}
	if since > 0 {
		r.course.Marks = slices.DeleteFunc(slices.Clone(r.course.Marks), func(m api.Mark) bool { return m.Seq <= since })
		r.course.Since = since
		return r.course, err
	}
	if n := len(r.course.Marks); most > 0 && n > most {
		r.course.Marks, r.course.More = nil, n
	}
	return r.course, err
}

func (c *fakeClient) At(_ context.Context, id string, m api.Moment) (api.At, error) {
	c.called("at " + string(m))
	r, events, err := c.recorded(id)
	if err != nil {
		return api.At{}, err
	}
	p, err := m.Parse()
	start := r.course.Session.StartedAt
	out := api.At{Time: start}
	for _, e := range events {
		if p.Start || p.Event != 0 && e.Seq > p.Event || p.After != nil && e.At.Sub(start) > *p.After {
			break
		}
		out.Seq, out.Time = e.Seq, e.At
	}
	if out.Offset = out.Time.Sub(start); p.After != nil {
		out.Offset, out.Time = *p.After, start.Add(*p.After)
	}
	return out, err
}

func (c *fakeClient) EventsAt(_ context.Context, id string, seq uint64) iter.Seq2[api.Event, error] {
	_, events, err := c.recorded(id)
	return func(yield func(api.Event, error) bool) {
		if err != nil {
			yield(api.Event{}, err)
			return
		}
		for _, e := range events {
			if e.Seq > seq {
				return
			}
			if e.Seq = 0; !yield(e, nil) {
				return
			}
		}
	}
}

func (c *fakeClient) Recorded(_ context.Context, id string, from uint64) iter.Seq2[api.Event, error] {
	_, events, err := c.recorded(id)
	return func(yield func(api.Event, error) bool) {
		if err != nil {
			yield(api.Event{}, err)
			return
		}
		for _, e := range events {
			if e.Seq >= from && !yield(e, nil) {
				return
			}
		}
	}
}

func (c *fakeClient) TerminalAt(ctx context.Context, id string, offset time.Duration) (link.Stream, error) {
	r, _, err := c.recorded(id)
	if err != nil {
		return nil, err
	}
	if r.reads != nil {
		select {
		case <-r.reads:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	var before strings.Builder
	key := api.Frame{Kind: api.FrameKeyframe, Cols: 70, Rows: 22}
	var after []api.Frame
	for _, p := range r.printed {
		switch {
		case p.lost != "" && p.off > offset:
			after = append(after, api.TimeFrame(p.off), api.Frame{Kind: api.FrameDamage, Data: []byte(p.lost)})
			continue
		case p.lost != "":
			after = []api.Frame{{Kind: api.FrameDamage, Data: []byte(p.lost)}}
			continue
		case p.off <= offset:
			after = nil
		}
		switch {
		case p.off <= offset && p.cols > 0:
			key.Cols, key.Rows = p.cols, p.rows
		case p.off <= offset:
			before.WriteString(p.data)
		case p.cols > 0:
			after = append(after, api.TimeFrame(p.off), api.Frame{Kind: api.FrameResize, Cols: p.cols, Rows: p.rows})
		default:
			after = append(after, api.TimeFrame(p.off), api.Frame{Kind: api.FrameOutput, Data: []byte(p.data)})
		}
	}
	key.Data = []byte(before.String())
	t := &fakeStream{out: make(chan api.Frame, len(after)+5), done: make(chan struct{}), sent: make(chan struct{}, 1)}
	first := []api.Frame{api.TimeFrame(offset), key}
	if len(after) > 0 && after[0].Kind == api.FrameDamage {
		first, after = append(first, after[0]), after[1:]
	}
	if len(r.marks) > 0 {
		first = append(first, api.MarksFrame(r.marks))
	}
	for _, f := range slices.Concat(first, after, []api.Frame{{Kind: api.FrameEnd}}) {
		t.out <- f
	}
	close(t.out)
	return t, nil
}
