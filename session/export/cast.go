package export

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// castHeader is an asciicast's first line, of either version: v3 has Term, v2 has
// Width and Height (https://docs.asciinema.org/manual/asciicast/v3/ and v2/).
type castHeader struct {
	Version   int               `json:"version"`
	Width     int               `json:"width,omitempty"`
	Height    int               `json:"height,omitempty"`
	Term      *castTerm         `json:"term,omitempty"`
	Timestamp int64             `json:"timestamp,omitempty"` // UTC seconds
	Command   string            `json:"command,omitempty"`
	Title     string            `json:"title,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
}

type castTerm struct {
	Cols int    `json:"cols"`
	Rows int    `json:"rows"`
	Type string `json:"type,omitempty"`
}

// castType is what agents are told of their terminal.
const castType = "xterm-256color"

// cast writes the terminal as asciicast: output, sizes, a marker for each action and
// each denial, and in version 3 how it ended. Times are since the start in version 2,
// and since the event before in version 3.
func (r *run) cast(version int) error {
	begun := false
	last := time.Duration(0)
	event := func(at time.Duration, code, data string) error {
		t := at.Truncate(time.Millisecond)
		when := t
		if version == 3 {
			when = t - last
		}
		last = t
		return r.json([]any{json.RawMessage(strconv.FormatFloat(when.Seconds(), 'f', 3, 64)), code, data})
	}
	begin := func(cols, rows int) error {
		h := castHeader{Version: version, Timestamp: r.s.StartedAt.Unix(), Command: r.s.Command, Title: r.s.Name}
		if version == 3 {
			h.Term = &castTerm{cols, rows, castType}
		} else {
			h.Width, h.Height, h.Env = cols, rows, map[string]string{"TERM": castType}
		}
		return r.json(h)
	}
	err := r.tape(true, func(t take) error {
		switch t.kind {
		case resize:
			if !begun {
				begun = true
				return begin(t.cols, t.rows)
			}
			return event(t.at, "r", fmt.Sprintf("%dx%d", t.cols, t.rows))
		case marked:
			return event(t.at, "m", string(t.data))
		}
		return event(t.at, "o", string(t.data))
	})
	if err == nil && version == 3 && r.s.Exit != nil && r.s.Exit.Signal == "" {
		err = event(max(last, r.s.EndedAt.Sub(r.s.StartedAt)), "x", strconv.Itoa(r.s.Exit.Code))
	}
	return err
}
