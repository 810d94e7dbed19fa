package api

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// FrameTime is when the frames after it were printed, in a terminal that is
// replayed: its data is the time since the session began in milliseconds, in
// eight bytes, big-endian.
const FrameTime FrameKind = 'T'

// TimeFrame makes a FrameTime.
func TimeFrame(offset time.Duration) Frame {
	return Frame{Kind: FrameTime, Data: binary.BigEndian.AppendUint64(nil, uint64(max(0, offset.Milliseconds())))}
}

// Offset reads a FrameTime.
func (f Frame) Offset() (time.Duration, error) {
	if f.Kind != FrameTime || len(f.Data) != 8 {
		return 0, fmt.Errorf("cannot read a time of %d bytes in a terminal's stream", len(f.Data))
	}
	return time.Duration(binary.BigEndian.Uint64(f.Data)&(1<<43-1)) * time.Millisecond, nil
}

// MarkKind is what a mark on a timeline is of.
type MarkKind string

const (
	MarkAction   MarkKind = "action"   // a command began
	MarkEdit     MarkKind = "edit"     // the agent changed files by itself
	MarkQuestion MarkKind = "question" // something was held
	MarkDenied   MarkKind = "denied"   // by a rule or a person
	MarkRollback MarkKind = "rollback" // files went back
	MarkAttempt  MarkKind = "attempt"  // to reach a host
	MarkApply    MarkKind = "apply"    // changes were written to the project
	MarkResume   MarkKind = "resume"   // it went on after its end
)

// Mark is something on a session's timeline.
type Mark struct {
	Offset time.Duration `json:"offset"` // since the session began, in nanoseconds
	Seq    uint64        `json:"seq"`    // the event
	Kind   MarkKind      `json:"kind"`
	Key    int64         `json:"key"`              // the resource's number: of the action, the attempt, the roll back
	Action int           `json:"action"`           // it belongs to; 0: none
	Text   string        `json:"text,omitempty"`   // escaped: the command, the host
	Waited time.Duration `json:"waited,omitempty"` // of an action: how long it was held before it ran, in nanoseconds
	Took   time.Duration `json:"took,omitempty"`   // the same: how long it ran then, as far as it has
	Runs   bool          `json:"runs,omitempty"`   // the same: it does still, so that Took reaches to the course's end
}

// Stretch is a part of a session's course, in nanoseconds since it began.
type Stretch struct {
	From time.Duration `json:"from"`
	To   time.Duration `json:"to"`
}

// Timeline is a session's course, for who wants to move along it. Marks are in the
// order of their events.
type Timeline struct {
	Session Session       `json:"session"`
	Length  time.Duration `json:"length"` // up to the last event or the last byte printed; of a live session, up to now
	Last    uint64        `json:"last"`   // the last event
	Marks   []Mark        `json:"marks"`
	More    int           `json:"more,omitempty"` // of what is marked, so many aren't listed: every kind is cut down evenly
	Damage  string        `json:"damage,omitempty"`
	Printed []Stretch     `json:"printed,omitempty"` // when the terminal printed, with pauses of a minute at most; in one with few of the marks it may be left out

	// Since is the event from which on it continues another, see Continued; 0: it has all
	// marks. One without a kind stands for what is marked no more.
	Since uint64 `json:"since,omitempty"`
}

// Timeline fetches a session's timeline, with at most so many of what is marked of a
// kind; 0: as many as there may be. With some hundreds even a long session's is there
// at once. Since is the Last of one that is there already, asked for as this one, of which only
// what is new is wanted; where that won't do, and without one (0), the answer has all.
func (c *Client) Timeline(ctx context.Context, id string, most int, since uint64) (Timeline, error) {
	return fetch[Timeline](ctx, c, http.MethodGet, path(id, "timeline")+"?most="+strconv.Itoa(most)+"&since="+strconv.FormatUint(since, 10), nil)
}

// Continued is a timeline with what a later one has, which was asked for since its Last:
// the same as if all of that had been read.
func (t Timeline) Continued(by Timeline) Timeline {
	if by.Since == 0 {
		return by
	}
	told := make(map[uint64]bool)
	for _, m := range by.Marks {
		told[m.Seq] = true
	}
	marks := make([]Mark, 0, len(t.Marks)+len(by.Marks))
	for _, m := range t.Marks {
		if m.Runs {
			m.Took = max(0, by.Length-m.Offset-m.Waited)
		}
		if !told[m.Seq] {
			marks = append(marks, m)
		}
	}
	marks = append(marks, slices.DeleteFunc(by.Marks, func(m Mark) bool { return m.Kind == "" })...)
	slices.SortStableFunc(marks, func(a, b Mark) int { return cmp.Compare(a.Seq, b.Seq) })
	by.Since, by.Marks = 0, marks
	return by
}

// At finds a moment.
func (c *Client) At(ctx context.Context, id string, m Moment) (At, error) {
	return fetch[At](ctx, c, http.MethodGet, path(id, "moment")+"?at="+url.QueryEscape(string(m)), nil)
}

// EventsAt yields how a session stood just after an event, as EventsFromNow yields
// how it stands at present: its newest resources then, at most last of each kind,
// without questions that were closed by then. What followed is Recorded from seq+1.
func (c *Client) EventsAt(ctx context.Context, id string, seq uint64, last int) iter.Seq2[Event, error] {
	return c.events(ctx, path(id, "events")+"?follow=false&at="+strconv.FormatUint(seq, 10)+"&last="+strconv.Itoa(last))
}

// TerminalAt joins the record of a session's terminal: first a FrameTime and the
// keyframe of the screen as it was that long after the session began, then what
// was printed since, each piece after a FrameTime when that has moved on, as fast
// as it is read, and FrameEnd. What can't be read is a FrameDamage, and then comes
// the keyframe with which it goes on, if it does. Of a live session it ends with what
// is recorded by then. Input isn't taken.
func (c *Client) TerminalAt(ctx context.Context, id string, offset time.Duration) (*TerminalConn, error) {
	return c.terminal(ctx, id, "?at="+strconv.FormatInt(offset.Milliseconds(), 10))
}

// Played is what happened next in a session: an event, or else a frame of its terminal.
type Played struct {
	At    time.Duration // since the session began
	Event *Event
	Frame Frame
}

// Printed yields what follows on a connection of TerminalAt, with its times, up to the
// end. That of one that breaks off is an error.
func Printed(conn interface{ Read() (Frame, error) }, from time.Duration) iter.Seq2[Played, error] {
	return func(yield func(Played, error) bool) {
		for p := (Played{At: from}); ; {
			var err error
			p.Frame, err = conn.Read()
			switch {
			case err == nil && p.Frame.Kind == FrameEnd:
				return
			case err == nil && p.Frame.Kind == FrameTime:
				if t, err := p.Frame.Offset(); err == nil {
					p.At = max(p.At, t)
				}
				continue
			case errors.Is(err, io.EOF):
				err = io.ErrUnexpectedEOF
			}
			if err != nil {
				err = fmt.Errorf("the record of the terminal can't be read on: %w", err)
			}
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}

// InOrder yields the events of a session that began then and what was printed as they
// came, events before what was printed in the same moment. An error is the last.
func InOrder(events iter.Seq2[Event, error], began time.Time, printed iter.Seq2[Played, error]) iter.Seq2[Played, error] {
	return func(yield func(Played, error) bool) {
		next, stop := iter.Pull2(events)
		defer stop()
		e, failed, more := next()
		until := func(at time.Duration) bool {
			for ; more; e, failed, more = next() {
				e, off := e, e.At.Sub(began) // a copy: it goes to who reads later than the next one is here
				if failed == nil && off > at {
					return true
				}
				if !yield(Played{At: off, Event: &e}, failed) || failed != nil {
					return false
				}
			}
			return true
		}
		for p, err := range printed {
			at := p.At
			if err != nil { // the events are worth having without it
				at = math.MaxInt64
			}
			if !until(at) || !yield(p, err) || err != nil {
				return
			}
		}
		until(math.MaxInt64)
	}
}
