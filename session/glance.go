package session

import (
	"context"
	"strings"
	"time"
	"unicode"

	"stepbox/runner"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/redact"
)

// countEvery is how often at most it is counted, for lists, what the project doesn't have.
const countEvery = 5 * time.Second

// glancer is what says what the session uses and how far it is. It is called by one
// goroutine, outside the loop.
func (s *Session) glancer(box *runner.Sandbox) func() api.Usage {
	var now api.Usage
	var counted int64 // the checkpoint
	var applies int
	var at time.Time
	return func() api.Usage {
		u := box.Usage()
		now.CPU, now.Memory, now.Pids = u.CPU, u.Memory, u.Pids
		now.Sent, now.Received = s.network.Carried()
		if n := s.term.Printed(); n != now.Printed {
			now.Printed, now.Last = n, redact.Of(s.secrets, lastWords(s.term.Text()))
		}
		var cp *files.Checkpoint
		var info api.Session
		if time.Since(at) < countEvery || s.loop.Call(context.Background(), func() { cp, info = s.line.Last, s.info }) != nil || cp == nil || cp.ID == counted && info.Applies == applies {
			return now
		}
		at, counted, applies = time.Now(), cp.ID, info.Applies
		has := s.files.InProject
		if info.Applies == 0 && info.Parent == nil {
			has = nil
		}
		if n, err := s.files.Unapplied(context.Background(), cp.Manifest, has); err == nil { // else the next checkpoint's is
			now.Unapplied = n
		}
		return now
	}
}

// lastWords is the last row of a screen that has words, escaped.
func lastWords(rows []string) string {
	word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	for i := len(rows) - 1; i >= 0; i-- {
		if strings.ContainsFunc(rows[i], word) {
			row := strings.TrimFunc(rows[i], func(r rune) bool { return unicode.IsSpace(r) || r >= 0x2500 && r < 0x2580 }) // and frames
			return api.Trim(api.Escape(row), api.LastMost)
		}
	}
	return ""
}
