package state

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stepbox/session/api"
)

func TestApply(t *testing.T) {
	var s State
	live := api.Session{ID: "x", State: api.SessionRunning}
	v := int64(7)
	for _, e := range []api.Event{
		{Seq: 1, Session: &live},
		{Seq: 2, Action: &api.Action{N: 2, Title: "b"}},
		{Seq: 3, Action: &api.Action{N: 1, Title: "a"}},
		{Seq: 4, Action: &api.Action{N: 2, Title: "b2", Review: api.ReviewOpen}},
		{Seq: 5, Question: &api.Question{ID: 9, Action: 2}},
		{Seq: 6, Question: &api.Question{ID: 3, Action: 1}},
		{Seq: 7, Attempt: &api.Attempt{ID: 2}},
		{Seq: 8, Attempt: &api.Attempt{ID: 1}},
		{Seq: 8, Attempt: &api.Attempt{ID: 77}}, // seen before
		{Usage: &api.Usage{Pids: 3}},
		{Changes: &v},
		{Seq: 9, Note: &api.Note{ID: 1, Text: "x"}},
		{Seq: 10, Exec: &api.Exec{ID: 1}},
		{Seq: 11},
	} {
		s.Apply(e)
	}
	if len(s.Actions) != 2 || s.Actions[0].N != 1 || s.Actions[1].Title != "b2" {
		t.Errorf("actions are %+v", s.Actions)
	}
	if len(s.Questions) != 2 || s.Questions[0].ID != 3 {
		t.Errorf("questions are %+v", s.Questions)
	}
	if len(s.Attempts) != 2 || s.Attempts[0].ID != 1 {
		t.Errorf("attempts are %+v", s.Attempts)
	}
	if s.Usage == nil || s.Usage.Pids != 3 || s.Changes != 7 || s.Seq != 11 || s.Unreviewed() != 1 {
		t.Errorf("state is %+v", s)
	}
	if q, ok := s.QuestionOf(2); !ok || q.ID != 9 {
		t.Errorf("the question of 2 is %+v", q)
	}

	// Answered here ahead of the event, then again by it, then opened by a late one.
	s.Answered(api.Question{ID: 9, Closed: "allow"})
	s.Apply(api.Event{Seq: 12, Question: &api.Question{ID: 9, Closed: "allow", ClosedBy: "cli"}})
	s.Apply(api.Event{Seq: 13, Question: &api.Question{ID: 9, Action: 2}})
	if _, ok := s.Question(9); ok || s.Closed(9) != "it was answered elsewhere: allow by cli" {
		t.Errorf("an answered question came back, or %q", s.Closed(9))
	}

	ended := live
	ended.State = api.SessionEnded
	s.Apply(api.Event{Seq: 14, Session: &ended})
	if len(s.Questions) != 0 || s.Usage != nil {
		t.Error("an ended session still asks")
	}
}

func TestAnsweredIgnoresOpenOnes(t *testing.T) {
	var s State
	s.Apply(api.Event{Question: &api.Question{ID: 1}})
	s.Answered(api.Question{ID: 1})
	if len(s.Questions) != 1 {
		t.Error("a question went away without an answer")
	}
}

// However events are cut into batches and sent twice, the state is the same.
func TestRejoiningChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var events []api.Event
		for i := range rapid.IntRange(1, 40).Draw(t, "n") {
			e := api.Event{Seq: uint64(i + 1)}
			id := rapid.IntRange(1, 5).Draw(t, "id")
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				e.Action = &api.Action{N: id, Execs: i}
			case 1:
				e.Question = &api.Question{ID: int64(id), Closed: rapid.SampledFrom([]string{"", "deny"}).Draw(t, "closed")}
			case 2:
				e.Attempt = &api.Attempt{ID: int64(id), Sent: int64(i)}
			case 3:
				e.Note = &api.Note{ID: int64(id)}
			}
			events = append(events, e)
		}
		var once, again State
		for i, e := range events {
			once.Apply(e)
			again.Apply(e)
			from := rapid.IntRange(0, i).Draw(t, "from")
			for _, e := range events[from : i+1] {
				again.Apply(e)
			}
		}
		once.Version, again.Version = 0, 0
		a, _ := json.Marshal(once)
		b, _ := json.Marshal(again)
		if string(a) != string(b) {
			t.Fatalf("%s\n%s", a, b)
		}
	})
}

func TestBounds(t *testing.T) {
	var s State
	for i := range maxAttempts + 10 {
		s.Apply(api.Event{Attempt: &api.Attempt{ID: int64(i + 1)}})
	}
	if len(s.Attempts) > maxAttempts || s.Attempts[len(s.Attempts)-1].ID != maxAttempts+10 {
		t.Errorf("%d attempts are kept", len(s.Attempts))
	}
	s.Actions = make([]api.Action, maxActions)
	for i := range s.Actions {
		s.Actions[i].N = i + 10
	}
	s.Apply(api.Event{Action: &api.Action{N: maxActions + 50}})
	s.Apply(api.Event{Action: &api.Action{N: 1}})
	if len(s.Actions) != maxActions || s.Actions[maxActions-1].N != maxActions+50 ||
		!slices.IsSortedFunc(s.Actions, func(a, b api.Action) int { return a.N - b.N }) {
		t.Error("actions aren't bounded and in order")
	}
}

func FuzzApply(f *testing.F) {
	f.Add([]byte(`{"seq":1,"action":{"n":-1,"title":"\u202e"}}`))
	f.Add([]byte(`{"question":{"id":1,"closed":"x"}}{"question":{"id":1}}`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		var s State
		var events []api.Event
		if json.Unmarshal(data, &events) != nil {
			var e api.Event
			if json.Unmarshal(data, &e) != nil {
				return
			}
			events = []api.Event{e}
		}
		for _, e := range events {
			s.Apply(e)
			s.Unreviewed()
		}
	})
}

func TestGuard(t *testing.T) {
	t0 := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return t0.Add(time.Duration(ms) * time.Millisecond) }
	a, b := Target{Question: 1, Hash: "a", Place: "strip"}, Target{Question: 1, Hash: "b", Place: "strip"}
	var g Guard
	if g.Takes(a, Quiet, at(0)) || g.Takes(Target{}, Quiet, at(0)) {
		t.Error("ready before anything was shown")
	}
	g.Shown(a, at(1000))
	g.Shown(a, at(1100)) // again, which is no news
	for _, tt := range []struct {
		ms   int
		want bool
	}{{1000, false}, {1399, false}, {1400, true}} {
		if got := g.Takes(a, Quiet, at(tt.ms)); got != tt.want {
			t.Errorf("ready at %d: %v", tt.ms, got)
		}
	}
	g.Key(at(1500))
	if g.Takes(a, Quiet, at(1899)) || !g.Takes(a, Quiet, at(1900)) {
		t.Error("a key must be followed by quiet")
	}
	if g.Takes(b, Quiet, at(5000)) {
		t.Error("ready for what isn't shown")
	}
	if !g.Takes(a, InView, at(1400)) || g.Takes(a, InView, at(1399)) || g.Takes(b, InView, at(5000)) {
		t.Error("settled is about what is shown, not about keys")
	}
	g.Shown(b, at(5000))
	if g.Takes(b, Quiet, at(5399)) || g.Takes(a, Quiet, at(6000)) {
		t.Error("another text starts anew")
	}
	g.Restart(at(6000))
	if g.Takes(b, Quiet, at(6399)) || !g.Takes(b, Quiet, at(6400)) {
		t.Error("restarting starts anew")
	}
	elsewhere := b
	elsewhere.Place = "dialog"
	if g.Takes(elsewhere, Quiet, at(9000)) {
		t.Error("a key for one place isn't one for another")
	}
}

// What can be brought again is what was taken out, be it by undoing what had brought it.
func TestRedoable(t *testing.T) {
	var s State
	for _, r := range []api.Rollback{
		{ID: 1, Actions: []int{4}, Redone: true},
		{ID: 2, RollbackTarget: api.RollbackTarget{Redo: 1}, Redone: true, Actions: []int{4}},
		{ID: 3, RollbackTarget: api.RollbackTarget{Redo: 2}, Away: true, Actions: []int{4}},
	} {
		s.Rollbacks = append(s.Rollbacks, r)
		got, ok := s.Redoable(4)
		if want := r.ID == 3; ok != want || ok && got.ID != r.ID {
			t.Errorf("after rollback %d it is %d, %v", r.ID, got.ID, ok)
		}
	}
}

// Earlier actions go before those that are there, each once and no more than are kept.
func TestEarlier(t *testing.T) {
	numbered := func(from, to int) (out []api.Action) {
		for n := from; n <= to; n++ {
			out = append(out, api.Action{N: n})
		}
		return out
	}
	for _, c := range []struct{ from, to, all, first, count int }{{5, 9, 12, 1, 9}, {5, 9, 3, 1, 8}, {1, 2, 2, 1, 2}, {maxActions + 1, maxActions + 10, maxActions + 10, 11, maxActions}} {
		s := State{Actions: numbered(c.from, c.to), Version: 7}
		s.Earlier(numbered(1, c.all))
		if len(s.Actions) != c.count || s.Actions[0].N != c.first || s.Actions[c.count-1].N != c.to || s.Version == 7 {
			t.Errorf("%+v: %d of them from %d to %d", c, len(s.Actions), s.Actions[0].N, s.Actions[len(s.Actions)-1].N)
		}
	}
}
