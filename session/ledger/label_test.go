package ledger

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/store/storetest"
)

// A label that can't be read any more may have been a pin: the next one keeps the session
// pinned, unless it says otherwise.
func TestDamagedLabelStaysPinned(t *testing.T) {
	st := storetest.New(t)
	const id = "aaaaaaaa"
	storetest.Begin(t, st, id, json.RawMessage(`{"id":"aaaaaaaa","state":"ended"}`))
	h := &History{Store: st, Live: func(string) bool { return false }}
	for _, c := range []struct {
		label  api.Label
		pinned bool
	}{{api.Label{Note: new("x")}, true}, {api.Label{Pinned: new(false)}, false}} {
		must.OK(t, st.Label(t.Context(), id, func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`{"tags":7}`), nil }))
		if s, err := h.Label(t.Context(), id, c.label); err != nil || s.Pinned != c.pinned {
			t.Errorf("after %+v it is pinned: %v, %v", c.label, s.Pinned, err)
		}
	}
}

// A row that can't be read keeps no others from being listed, and it is said how it is mended.
func TestDamagedRow(t *testing.T) {
	st := storetest.New(t)
	for id, doc := range map[string]string{"aaaaaaaa": `{"name":7}`, "bbbbbbbb": `{"name":"b"}`} {
		storetest.Begin(t, st, id, json.RawMessage(doc))
	}
	h := &History{Store: st, Live: func(string) bool { return false }}
	if all, err := h.Sessions(t.Context()); len(all) != 1 || all[0].Name != "b" || err == nil || !strings.Contains(err.Error(), "stepbox verify --all --repair") {
		t.Errorf("they are %v, %v", all, err)
	}
}

// Names and ids that only the database was told are made fit to be shown, and a row tells of
// no other session.
func TestForgedRow(t *testing.T) {
	st := storetest.New(t)
	const id = "aaaaaaaa"
	storetest.Begin(t, st, id, json.RawMessage(`{"id":"bbbbbbbb","name":"a\u001b[8m","state":"ended"}`))
	h := &History{Store: st, Live: func(string) bool { return false }}
	check := func(name, tag string) {
		t.Helper()
		one, err := h.Session(t.Context(), id)
		all, aerr := h.Sessions(t.Context())
		if err := errors.Join(err, aerr); err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		for _, s := range []api.Session{one, all[0]} {
			if s.ID != id || s.Name != name || len(s.Tags) > 0 && s.Tags[0] != tag {
				t.Errorf("%s is called %q, %q", s.ID, s.Name, s.Tags)
			}
		}
		if got := Called(t.Context(), st, id, one.Name); got != name {
			t.Errorf("it is called %q", got)
		}
	}
	check(`a\x1b[8m`, "")
	if err := st.Label(t.Context(), id, func(json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{"name":"b\n\u202e","tags":["\u001b[1m"]}`), nil
	}); err != nil {
		t.Fatal(err)
	}
	check(`b\n\u202e`, `\x1b[1m`)
}
