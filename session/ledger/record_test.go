package ledger

import (
	"bytes"
	"encoding/json"
	"testing"

	"stepbox/session/api"
)

// What is hidden is so in all that is stored, and a program's arguments then count as cut
// off: by other rules nobody judges them later.
func TestHide(t *testing.T) {
	l := &Ledger{Hide: func(doc []byte) ([]byte, bool) {
		out := bytes.ReplaceAll(doc, []byte("hunter2"), []byte(api.Hidden))
		return out, bytes.Equal(out, doc)
	}}
	exec := func(word string) *api.Exec {
		return &api.Exec{ID: 1, Argv: []string{"x", word}, Basis: &api.Basis{Exact: []string{"x", word}}}
	}
	for _, c := range []struct {
		name  string
		event api.Event
		want  any
	}{
		{"a note", api.Event{Note: &api.Note{ID: 1, Text: "hunter2"}}, api.Note{ID: 1, Text: "•••"}},
		{"arguments", api.Event{Exec: exec("hunter2")}, api.Exec{ID: 1, Argv: []string{"x", "•••"}, Basis: &api.Basis{Cut: true}}},
		{"arguments without secrets", api.Event{Exec: exec("y")}, *exec("y")},
	} {
		f, err := l.fact(c.event)
		want, _ := json.Marshal(c.want)
		if err != nil || string(f.Doc) != string(want) {
			t.Errorf("%s: %s, %v, want %s", c.name, f.Doc, err, want)
		}
		if x := c.event.Exec; x != nil && x.Basis.Cut {
			t.Errorf("%s: what the session has was changed", c.name)
		}
	}
}

// What nobody waits for is committed together with what comes next; what somebody
// waits for takes along what is there and waits for nothing.
func TestGather(t *testing.T) {
	soon, now := entry{unhurried: true}, entry{}
	for name, c := range map[string]struct {
		first  entry
		queued []entry
		want   int
		left   int
	}{
		"alone, and waited for":          {now, nil, 1, 0},
		"alone, and not waited for":      {soon, nil, 1, 0},
		"until somebody waits":           {soon, []entry{soon, now}, 3, 0},
		"with all that is there by then": {now, []entry{soon, soon}, 3, 0},
		"no more than a batch":           {soon, make([]entry, 70), 64, 7},
	} {
		l := &Ledger{queue: make(chan entry, 100)}
		for _, e := range c.queued {
			l.queue <- e
		}
		if got := l.gather(c.first); len(got) != c.want || len(l.queue) != c.left {
			t.Errorf("%s: %d are committed together and %d left, want %d and %d", name, len(got), len(l.queue), c.want, c.left)
		}
	}
}
