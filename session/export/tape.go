package export

import (
	"bytes"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"stepbox/session/api"
	"stepbox/session/redact"
	"stepbox/session/replay"
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
// for: of actions and denials. The terminal's size comes first. Where the record is
// damaged a mark says so, and what the terminal showed when it can be read again is
// drawn as a whole.
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
	rec := recorder{add: stream.Add}
	if marks {
		var err error
		if rec.marks, err = r.marks(); err != nil {
			return err
		}
	}
	for frame, err := range replay.Terminal(r.ctx, r.Store, r.s.ID, -time.Millisecond) { // all of it
		if err == nil {
			err = rec.take(frame)
		}
		if err != nil {
			return err
		}
	}
	if err := rec.until(replay.End); err != nil {
		return err
	}
	if err := stream.Close(); err != nil {
		return err
	}
	return flush()
}

// marks are those of actions and denials, without secrets.
func (r *run) marks() ([]api.Mark, error) {
	t, err := replay.Timeline(r.ctx, r.Store, r.s, 0, 0)
	marks := slices.DeleteFunc(t.Marks, func(m api.Mark) bool {
		return m.Kind != api.MarkAction && m.Kind != api.MarkEdit && m.Kind != api.MarkDenied
	})
	for i := range marks {
		m := &marks[i]
		if len(m.Text) > replay.TextMost-utf8.UTFMax { // it was cut: what is left of a secret may not look like one
			m.Text = m.Text[:strings.LastIndexByte(m.Text, ' ')+1] + "…"
		}
		if m.Text = r.text(m.Text, where(store.KindAction)); m.Kind == api.MarkDenied {
			m.Text = "denied: " + m.Text
		}
	}
	return marks, err
}

// recorder makes takes of a terminal's frames and of marks.
type recorder struct {
	add        func(redact.Piece[take]) error
	marks      []api.Mark // that are to come
	at         time.Duration
	cols, rows int
	n          int
	lost       bool // what the terminal shows isn't known
	clean      filter
}

// until adds the marks up to a time.
func (c *recorder) until(at time.Duration) error {
	for ; len(c.marks) > 0 && c.marks[0].Offset <= at; c.marks = c.marks[1:] {
		c.at = max(c.at, c.marks[0].Offset)
		if err := c.one(take{kind: marked, data: []byte(c.marks[0].Text)}); err != nil {
			return err
		}
	}
	if at < replay.End {
		c.at = max(c.at, at)
	}
	return nil
}

// one adds something else than output.
func (c *recorder) one(t take) error {
	c.n++
	t.at, t.n = c.at, c.n
	return c.add(redact.Piece[take]{Tag: t})
}

// output adds what was printed.
func (c *recorder) output(p []byte) error {
	c.n++
	t := take{at: c.at, kind: output, n: c.n}
	return c.clean.write(p, func(data []byte, text bool) error {
		return c.add(redact.Piece[take]{Data: data, Text: text, Tag: t})
	})
}

func (c *recorder) take(frame api.Frame) (err error) {
	switch frame.Kind {
	case api.FrameTime:
		at, err := frame.Offset()
		if err != nil {
			return err
		}
		return c.until(at)
	case api.FrameOutput:
		return c.output(bytes.Clone(frame.Data)) // a piece keeps it
	case api.FrameDamage:
		c.lost, c.clean = true, filter{}
		return c.one(take{kind: marked, data: bytes.Clone(frame.Data)})
	case api.FrameKeyframe, api.FrameResize:
		if cols, rows := clamp(frame.Cols), clamp(frame.Rows); cols != c.cols || rows != c.rows {
			c.cols, c.rows = cols, rows
			err = c.one(take{kind: resize, cols: cols, rows: rows})
		}
		if frame.Kind == api.FrameKeyframe && c.lost && err == nil {
			c.lost = false
			err = c.output(append([]byte("\x1bc"), frame.Data...))
		}
	}
	return err
}

// clamp bounds a terminal's size.
func clamp(n int) int { return min(max(n, 1), 1000) }
