package export

import (
	"encoding/json"
	"fmt"
	"time"

	"stepbox/store"
)

// linesVersion is that of the schema, which docs/export.md tells.
const linesVersion = 1

// The lines of an export as JSON Lines.
type (
	linesHeader struct {
		Stepbox string `json:"stepbox"` // "events"
		Version int    `json:"version"`
		Session string `json:"session"`
		Hash    string `json:"hash"` // of the events
	}
	eventLine struct {
		Seq      uint64          `json:"seq"`
		Time     time.Time       `json:"time"`
		Kind     store.Kind      `json:"kind"`
		Event    string          `json:"event"`
		Key      int64           `json:"key"`
		Resource json.RawMessage `json:"resource"`
		Redacted bool            `json:"redacted,omitempty"` // so that its hash can't be worked out
		Prev     string          `json:"prev"`
		Hash     string          `json:"hash"`
	}
	outputLine struct {
		Offset int64   `json:"offset_ms"`
		Output *string `json:"output,omitempty"`
		Cols   int     `json:"cols,omitempty"`
		Rows   int     `json:"rows,omitempty"`
		Note   string  `json:"note,omitempty"`
	}
	linesEnd struct {
		Stepbox string `json:"stepbox"` // "end"
		Events  uint64 `json:"events"`
		Head    string `json:"head"` // the hash of the last
	}
)

// jsonl writes each event on a line, exactly as it is recorded but for secrets, so
// that the chain of hashes can be checked from the file alone, and the terminal's
// output behind them if that was asked for.
func (r *run) jsonl() error {
	if err := r.json(linesHeader{"events", linesVersion, r.s.ID, "blake3-256"}); err != nil {
		return err
	}
	const page = 256
	end := linesEnd{Stepbox: "end"}
	for {
		events, err := r.Store.Events(r.ctx, r.s.ID, end.Events+1, page)
		if err != nil {
			return fmt.Errorf("cannot read the record: %w", err)
		}
		for _, e := range events {
			doc, same := r.red.JSON(e.Doc, where(e.Kind))
			l := eventLine{e.Seq, e.At, e.Kind, e.Event, e.Key, doc, !same, e.Prev.String(), e.Hash.String()}
			if err := r.json(l); err != nil {
				return err
			}
			end.Events, end.Head = e.Seq, e.Hash.String()
		}
		if len(events) < page {
			break
		}
	}
	if r.req.Output {
		err := r.tape(false, func(t take) error {
			l := outputLine{Offset: t.at.Milliseconds(), Cols: t.cols, Rows: t.rows}
			switch text := string(t.data); t.kind {
			case output:
				l.Output = &text
			case marked:
				l.Note = text
			}
			return r.json(l)
		})
		if err != nil {
			return err
		}
	}
	return r.json(end)
}
