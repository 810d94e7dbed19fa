package ledger

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/store"
	"stepbox/store/storetest"
)

// TestTailIsBounded: joining a long session reads what is new of it, and then
// goes on with the very next event.
func TestTailIsBounded(t *testing.T) {
	dir := t.TempDir() + "/data"
	st := storetest.Open(t, dir)
	s := api.Session{ID: "tail", State: api.SessionEnded, StartedAt: time.Now()}
	storetest.Begin(t, st, s.ID, s)
	var facts []store.Fact
	for n := 1; n <= 100; n++ {
		for _, state := range []api.ActionState{api.ActionRunning, api.ActionEnded} {
			f, err := fact(api.Event{Kind: "action", Action: &api.Action{N: n, State: state}})
			must.OK(t, err)
			facts = append(facts, f)
		}
	}
	recorded, err := st.Append(t.Context(), s.ID, facts...)
	must.OK(t, err)
	h := &History{Store: st, Live: func(string) bool { return false }}
	events, next, err := h.Tail(t.Context(), s.ID, 10)
	must.OK(t, err)
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

// How a session stood is told as it was then: what was held then is held, and what
// came later isn't there.
func TestTailAt(t *testing.T) {
	st := storetest.New(t)
	s := api.Session{ID: "tail", State: api.SessionRunning, StartedAt: time.Now()}
	storetest.Begin(t, st, s.ID, s)
	s.State = api.SessionEnded
	if err := Append(t.Context(), st, s.ID, nil,
		api.Event{Kind: "action.held", Action: &api.Action{N: 1, State: api.ActionHeld}},               // 2
		api.Event{Kind: "question.opened", Question: &api.Question{ID: 1}},                             // 3
		api.Event{Kind: "question.closed", Question: &api.Question{ID: 1, Closed: "allow"}},            // 4
		api.Event{Kind: "action.ended", Action: &api.Action{N: 1, State: api.ActionEnded}},             // 5
		api.Event{Kind: "attempt.opened", Attempt: &api.Attempt{ID: 1}},                                // 6
		api.Event{Kind: "rollback.started", Rollback: &api.Rollback{ID: 1, Open: true}},                // 7
		api.Event{Kind: "apply.started", Apply: &api.Apply{ID: 1}},                                     // 8
		api.Event{Kind: "note", Note: &api.Note{ID: 1}}, api.Event{Kind: "session.ended", Session: &s}, // 9, 10
	); err != nil {
		t.Fatal(err)
	}
	h := &History{Store: st, Live: func(string) bool { return true }}
	for seq, want := range map[uint64]string{
		1:  "session.now running",
		2:  "session.now running, action.now held",
		3:  "session.now running, action.now held, question.now",
		4:  "session.now running, action.now held",
		8:  "session.now running, attempt.now, action.now ended, rollback.now, apply.now",
		99: "session.now ended, note.now, attempt.now, action.now ended, rollback.now, apply.now",
	} {
		events, err := h.TailAt(t.Context(), s.ID, seq, 10)
		must.OK(t, err)
		var got []string
		for _, b := range events {
			var e api.Event
			if err := json.Unmarshal(b, &e); err != nil || e == (api.Event{Seq: e.Seq, At: e.At, Kind: e.Kind}) {
				t.Fatalf("%s: %v", b, err)
			}
			said := e.Kind
			switch {
			case e.Session != nil:
				said += " " + string(e.Session.State)
			case e.Action != nil:
				said += " " + string(e.Action.State)
			}
			got = append(got, said)
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("after event %d: %s\nwant %s", seq, got, want)
		}
	}
	if _, err := h.TailAt(t.Context(), "nobody", 1, 10); err == nil {
		t.Error("a session that isn't there has stood somehow")
	}
}
