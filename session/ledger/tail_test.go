package ledger

import (
	"encoding/json"
	"testing"
	"time"

	"stepbox/session/api"
	"stepbox/store"
)

// TestTailIsBounded: joining a long session reads what is new of it, and then
// goes on with the very next event.
func TestTailIsBounded(t *testing.T) {
	dir := t.TempDir() + "/data"
	st, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s := api.Session{ID: "tail", State: api.SessionEnded, StartedAt: time.Now()}
	row, err := json.Marshal(s)
	if err == nil {
		_, err = st.CreateSession(t.Context(), s.ID, row)
	}
	if err != nil {
		t.Fatal(err)
	}
	var facts []store.Fact
	for n := 1; n <= 100; n++ {
		for _, state := range []api.ActionState{api.ActionRunning, api.ActionEnded} {
			f, err := fact(api.Event{Kind: "action", Action: &api.Action{N: n, State: state}})
			if err != nil {
				t.Fatal(err)
			}
			facts = append(facts, f)
		}
	}
	recorded, err := st.Append(t.Context(), s.ID, facts...)
	if err != nil {
		t.Fatal(err)
	}
	h := &History{Store: st, Live: func(string) bool { return false }}
	events, next, err := h.Tail(t.Context(), s.ID, 10)
	if err != nil {
		t.Fatal(err)
	}
	if want := recorded[len(recorded)-1].Seq + 1; next != want {
		t.Errorf("it goes on at %d, not %d", next, want)
	}
	if len(events) != 11 || events[0].Session == nil {
		t.Fatalf("%d events", len(events))
	}
	for i, e := range events[1:] {
		if e.Seq != 0 || e.Action == nil || e.Action.N != 91+i || e.Action.State != api.ActionEnded {
			t.Errorf("event %d is %+v", i, e)
		}
	}
	if _, _, err := h.Tail(t.Context(), "nobody", 10); err == nil {
		t.Error("a session that isn't there has a tail")
	}
}
