// Package replay gives a session's course from its record, for who moves along it:
// the terminal as it was at any time with what was printed since, and a timeline of
// what happened. Of a live session it gives what is recorded by then.
//
// Its functions may be called from any goroutine and hold little memory whatever the
// session's size: of the terminal one file of about 1 MiB, of the timeline its marks.
// What the agent printed is hostile, and bounded by package screen.
package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"stepbox/session/api"
	"stepbox/session/screen"
	"stepbox/store"
)

// End is after all that any session printed.
const End = 100 * 365 * 24 * time.Hour

// Terminal yields a session's terminal from a time on, which is since the session
// began: an api.FrameTime and the keyframe of the screen as it was then, what was
// printed since, each piece after an api.FrameTime when that has moved on, and
// api.FrameEnd. An api.FrameMarks after the keyframe, and between the pieces, says where
// commands began, of those that did since the keyframe that the record has before. A part
// of the record that can't be read is an api.FrameDamage, and then comes the keyframe with
// which it goes on, if there is one. A frame's data is valid until the next one.
func Terminal(ctx context.Context, st *store.Store, id string, offset time.Duration) iter.Seq2[api.Frame, error] {
	return func(yield func(api.Frame, error) bool) {
		began, err := started(ctx, st, id)
		var r *store.Recording
		if err == nil {
			r, err = st.Recording(ctx, id)
		}
		if err != nil {
			yield(api.Frame{}, err)
			return
		}
		removed := func() bool {
			_, err := st.Doc(ctx, id, store.KindSession, 0)
			return errors.Is(err, store.ErrNotFound)
		}
		p := player{id: id, removed: removed, screen: screen.New(began.Cols, began.Rows), cols: began.Cols, rows: began.Rows, at: offset.Truncate(time.Millisecond), yield: yield}
		lead := r.Lead(began.StartedAt)
		p.begins = func(after uint64) []mark { return begins(ctx, st, began, after) }
		p.by = func(at time.Duration) uint64 {
			e, err := st.EventBy(ctx, id, began.StartedAt.Add(at))
			if err != nil {
				return 0 // there was none
			}
			return e.Seq
		}
		for f, err := range r.From(p.at - lead) {
			if err == nil {
				err = ctx.Err()
			}
			if !p.take(f, f.At+lead, err) {
				return
			}
		}
		_ = p.begin() && p.pass(api.Frame{Kind: api.FrameEnd}) // or the reader has enough
	}
}

// mark is where a command began.
type mark struct {
	action int
	seq    uint64
	at     time.Duration
	line   int // as the screen numbers it
}

// mostMarks is how many are read at once, and more than a scrollback has lines for.
const mostMarks = 2000

// begins are the next commands that began after an event, in their order. Where they can't be
// read there are none: the rest is worth showing.
func begins(ctx context.Context, st *store.Store, s api.Session, after uint64) (out []mark) {
	for c, err := range st.Begun(ctx, s.ID, store.KindAction, after) {
		if err != nil || len(out) == mostMarks {
			break
		}
		var a struct{ Kind api.ActionKind }
		if json.Unmarshal(c.Doc, &a) == nil && a.Kind == api.KindCommand {
			out = append(out, mark{action: int(c.Key), seq: c.Seq, at: c.At.Sub(s.StartedAt)})
		}
	}
	return out
}

// started is a session as it was first recorded: its terminal's first size is in no
// record from before there were keyframes.
func started(ctx context.Context, st *store.Store, id string) (s api.Session, err error) {
	docs, err := st.AsOf(ctx, id, store.KindSession, 1, 1)
	if err == nil && len(docs) == 0 {
		err = api.NoSession(id)
	}
	if err == nil {
		err = json.Unmarshal(docs[0], &s)
	}
	s.Cols, s.Rows = max(s.Cols, 2), max(s.Rows, 1)
	return s, err
}

// player makes a recording's frames up to a time into one screen and passes on the
// rest.
type player struct {
	id         string
	removed    func() bool // meanwhile
	screen     *screen.Screen
	cols, rows int
	at         time.Duration                 // of the session, the last that was passed on
	begun      bool                          // the screen was passed on
	damage     bool                          // something before that couldn't be read
	by         func(at time.Duration) uint64 // the last event by then
	begins     func(after uint64) []mark
	next       []mark // commands that begin later, as far as they were read; nil before the first frame
	marks      []mark // where others did, at most mostMarks
	yield      func(api.Frame, error) bool
}

// take takes the next frame, which is from a time, or damage, and says whether more
// are wanted.
func (p *player) take(f store.Frame, at time.Duration, err error) bool {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		if p.damage = true; p.begun {
			return p.damaged()
		}
		return true
	case err != nil:
		p.yield(api.Frame{}, fmt.Errorf("cannot read the terminal's record: %w", err))
		return false
	case p.next == nil:
		p.next = append([]mark{}, p.begins(p.by(at))...)
		return p.take(f, at, nil)
	case !p.begun && at <= p.at:
		p.show(f, at)
		return true
	case !p.begin():
		return false
	}
	for m, ok := p.due(at); ok; m, ok = p.due(at) {
		if !p.pass(api.MarksFrame([]api.Begun{{Action: m.action}})) {
			return false
		}
	}
	if at > p.at {
		p.at = at
		if !p.pass(api.TimeFrame(at)) {
			return false
		}
	}
	return p.pass(wire(f))
}

// show makes a frame a part of the screen.
func (p *player) show(f store.Frame, at time.Duration) {
	p.reach(at)
	if f.Kind == store.FrameKey {
		p.marks = nil // their lines aren't known any more
		p.screen, p.cols, p.rows, p.damage = screen.New(f.Cols, f.Rows), f.Cols, f.Rows, false
	}
	p.screen.At(at)
	switch f.Kind {
	case store.FrameKey, store.FrameOutput:
		_, _ = p.screen.Write(f.Data) // never fails
	case store.FrameResize:
		p.cols, p.rows = f.Cols, f.Rows
		p.screen.Resize(f.Cols, f.Rows)
	}
}

// due takes the next command that began before a time, if there is one.
func (p *player) due(at time.Duration) (m mark, ok bool) {
	if len(p.next) == 0 || p.next[0].at >= at {
		return m, false
	}
	if m, p.next = p.next[0], p.next[1:]; len(p.next) == 0 {
		p.next = append(p.next, p.begins(m.seq)...)
	}
	return m, true
}

// reach marks the commands that began before a time.
func (p *player) reach(at time.Duration) {
	for m, ok := p.due(at); ok; m, ok = p.due(at) {
		m.line = p.screen.Line()
		p.marks = append(p.marks, m)
	}
	p.marks = p.marks[max(0, len(p.marks)-mostMarks):]
}

// marked are the marks whose lines are still there.
func (p *player) marked() bool {
	var out []api.Begun
	now := p.screen.Line()
	for _, m := range p.marks {
		if m.line <= now && p.screen.RowOf(m.line) >= 0 {
			out = append(out, api.Begun{Action: m.action, Back: now - m.line})
		}
	}
	return len(out) == 0 || p.pass(api.MarksFrame(out))
}

// begin passes the screen on, if it wasn't yet.
func (p *player) begin() bool {
	if p.begun {
		return true
	}
	p.begun = true
	p.reach(p.at + time.Millisecond) // times have been cut to these
	p.screen.At(p.at)
	p.screen.Settle()
	return p.pass(api.TimeFrame(p.at)) &&
		p.pass(api.Frame{Kind: api.FrameKeyframe, Cols: p.cols, Rows: p.rows, Data: p.screen.Keyframe()}) &&
		(!p.damage || p.damaged()) && p.marked()
}

func (p *player) damaged() bool {
	if p.removed() {
		return p.pass(api.Frame{Kind: api.FrameDamage, Data: []byte("what was printed from here on can't be shown: the session was removed")})
	}
	return p.pass(api.Frame{Kind: api.FrameDamage, Data: []byte("what was printed here can't be shown: its record is damaged; stepbox verify " + p.id + " says more")})
}

func (p *player) pass(f api.Frame) bool { return p.yield(f, nil) }

// wire is the form of a frame on the terminal's connection.
func wire(f store.Frame) api.Frame {
	kinds := map[store.FrameKind]api.FrameKind{store.FrameOutput: api.FrameOutput, store.FrameResize: api.FrameResize, store.FrameKey: api.FrameKeyframe}
	return api.Frame{Kind: kinds[f.Kind], Cols: f.Cols, Rows: f.Rows, Data: f.Data}
}
