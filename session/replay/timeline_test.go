package replay

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/store"
)

// record appends resources as events and returns the last one's number.
func record(t testing.TB, st *store.Store, id, event string, kind store.Kind, key int64, resource any) uint64 {
	t.Helper()
	doc, err := json.Marshal(resource)
	var events []store.Event
	if err == nil {
		events, err = st.Append(t.Context(), id, store.Fact{Kind: kind, Event: event, Key: key, Doc: doc})
	}
	must.OK(t, err)
	return events[0].Seq
}

// A timeline tells what a person should find again, each where it began.
func TestTimeline(t *testing.T) {
	st := open(t)
	s := session(t, st, "one", 80, 24)
	action := func(a api.Action) uint64 {
		return record(t, st, s.ID, "action", store.KindAction, int64(a.N), a)
	}
	var want []api.Mark
	mark := func(seq uint64, kind api.MarkKind, key int64, action int, text string) {
		want = append(want, api.Mark{Seq: seq, Kind: kind, Key: key, Action: action, Text: text})
	}
	mark(action(api.Action{N: 1, Kind: api.KindCommand, State: api.ActionHeld, Title: "rm -rf /"}), api.MarkAction, 1, 1, "rm -rf /")
	mark(record(t, st, s.ID, "question.opened", store.KindQuestion, 7, api.Question{ID: 7, Action: 1, Title: "rm -rf /"}), api.MarkQuestion, 7, 1, "rm -rf /")
	mark(record(t, st, s.ID, "decision", store.KindDecision, 7, api.Decision{Question: 7, Action: 1, Answer: api.AnswerDeny}), api.MarkDenied, 1, 1, "rm -rf /")
	action(api.Action{N: 1, Kind: api.KindCommand, State: api.ActionDenied, By: "tui", Title: "rm -rf /"})
	action(api.Action{N: 2, Kind: api.KindCommand, Housekeeping: true, Title: "git status"})
	mark(action(api.Action{N: 3, Kind: api.KindEdit, Title: "main.go"}), api.MarkEdit, 3, 3, "main.go")
	refused := action(api.Action{N: 4, Kind: api.KindCommand, State: api.ActionDenied, By: "rule", Title: strings.Repeat("é", 500)})
	mark(refused, api.MarkAction, 4, 4, api.Trim(strings.Repeat("é", 500), TextMost))
	mark(refused, api.MarkDenied, 4, 4, api.Trim(strings.Repeat("é", 500), TextMost))
	attempt := record(t, st, s.ID, "attempt.opened", store.KindAttempt, 1, api.Attempt{ID: 1, Action: 3, Name: "example.org", Port: 443, Verdict: api.Deny})
	mark(attempt, api.MarkAttempt, 1, 3, "example.org:443")
	mark(attempt, api.MarkDenied, 1, 3, "example.org:443")
	mark(record(t, st, s.ID, "rollback.started", store.KindRollback, 1, api.Rollback{ID: 1, RollbackTarget: api.Before(3)}), api.MarkRollback, 1, 0, "a rollback to before #3")
	mark(record(t, st, s.ID, "apply.started", store.KindApply, 1, api.Apply{ID: 1, Files: 2}), api.MarkApply, 1, 0, "2 files")
	s.Resumed, s.Command = 1, "claude"
	mark(record(t, st, s.ID, "session.started", store.KindSession, 0, s), api.MarkResume, 1, 0, "claude")
	ran := action(api.Action{N: 5, Kind: api.KindCommand, State: api.ActionEnded, Title: "make", StartedAt: s.StartedAt, EndedAt: s.StartedAt.Add(time.Hour)})
	mark(ran, api.MarkAction, 5, 5, "make")
	last := record(t, st, s.ID, "session.ended", store.KindSession, 0, s)

	p := newPrinter(t, st, s.ID, 80, 24)
	p.print([]byte("hello"))
	p.close()

	got, err := Timeline(t.Context(), st, s, 0, 0)
	must.OK(t, err)
	until := time.Duration(-1)
	for i := range got.Marks {
		m := &got.Marks[i]
		if m.Offset < until || m.Offset > got.Length {
			t.Errorf("mark %d is at %v, after one at %v, of %v", i, m.Offset, until, got.Length)
		}
		if m.Key == 5 && (m.Offset+m.Took).Round(time.Minute) != time.Hour {
			t.Errorf("action 5 took %v from %v on", m.Took, m.Offset)
		}
		until, m.Offset, m.Took = m.Offset, 0, 0
	}
	if !slices.Equal(got.Marks, want) || got.Last < last || got.More != 0 || got.Damage != "" {
		t.Errorf("the timeline is\n%+v, want\n%+v", got, want)
	}
}

// A timeline tells when the terminal printed, from when the session began, while it goes on too.
func TestTimelineTellsWhatWasPrinted(t *testing.T) {
	st := open(t)
	s := session(t, st, "one", 80, 24)
	s.StartedAt, s.State = s.StartedAt.Add(-5*time.Minute), api.SessionRunning
	record(t, st, s.ID, "session.changed", store.KindSession, 0, s)
	p := newPrinter(t, st, s.ID, 80, 24)
	p.print([]byte("hello"))
	check := func(since uint64) {
		t.Helper()
		got, err := Timeline(t.Context(), st, s, 0, since)
		r, rerr := st.Recording(t.Context(), s.ID)
		if err != nil || rerr != nil {
			t.Fatal(err, rerr)
		}
		at := r.Length() + r.Lead(s.StartedAt)
		if want := []api.Stretch{{From: at, To: at}}; at < 5*time.Minute || !slices.Equal(got.Printed, want) {
			t.Errorf("after event %d: printed was %v, want %v", since, got.Printed, want)
		}
	}
	check(0)
	check(1)
	p.close()
	check(1)
	for n := range int64(3) {
		record(t, st, s.ID, "action", store.KindAction, n+1, api.Action{N: int(n + 1), Kind: api.KindEdit})
	}
	if few, err := Timeline(t.Context(), st, s, 1, 0); err != nil || few.More == 0 || few.Printed != nil {
		t.Errorf("with few of the marks: %+v, %v", few, err)
	}
}

// However much an agent does or asks for, a timeline stays small, and what was decided
// stays with what was asked.
func TestTimelineIsBounded(t *testing.T) {
	st := open(t)
	s := session(t, st, "one", 80, 24)
	var facts []store.Fact
	const actions, questions = 2*Most + 10, Most + 10
	for n := int64(1); n <= actions; n++ {
		facts = append(facts, store.Fact{Kind: store.KindAction, Event: "action", Key: n, Doc: json.RawMessage(`{"n":` + itoa(n) + `,"kind":"command"}`)})
		if n <= questions {
			facts = append(facts,
				store.Fact{Kind: store.KindQuestion, Event: "question.opened", Key: n, Doc: json.RawMessage(`{"id":` + itoa(n) + `,"title":"x"}`)},
				store.Fact{Kind: store.KindDecision, Event: "decision", Key: n, Doc: json.RawMessage(`{"answer":"deny"}`)})
		}
	}
	if _, err := st.Append(t.Context(), s.ID, facts...); err != nil {
		t.Fatal(err)
	}
	got, err := Timeline(t.Context(), st, s, 0, 0)
	must.OK(t, err)
	count := make(map[api.MarkKind]int)
	for _, m := range got.Marks {
		if count[m.Kind]++; m.Kind == api.MarkDenied && m.Text == "" {
			t.Error("a denial doesn't say what of")
		}
	}
	if n := count[api.MarkAction]; n > Most || n < Most/3 || n+count[api.MarkQuestion]+got.More != actions+questions {
		t.Errorf("%d actions of %d are told, and %d aren't", n, actions, got.More)
	}
	if n := count[api.MarkQuestion]; n > Most || n < Most/3 || count[api.MarkDenied] != n {
		t.Errorf("questions and decisions are %v", count)
	}
	if few, err := Timeline(t.Context(), st, s, 100, 0); err != nil || len(few.Marks) > 3*100 || len(few.Marks) < 100 || few.More < actions {
		t.Errorf("of few marks there are %d, and not %d: %v", len(few.Marks), few.More, err)
	}
}

func itoa(n int64) string { b, _ := json.Marshal(n); return string(b) }

// What can't be read of a terminal is told, by the timeline and in its place; the
// replay goes on after it.
func TestReplayGoesOnAfterDamage(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(file string) error
		told bool // by the timeline
	}{
		"missing": {os.Remove, true},
		"cut":     {func(f string) error { return os.Truncate(f, 20) }, true},
		"changed": {func(f string) error {
			b, err := os.ReadFile(f)
			if err == nil {
				b[len(b)/2] ^= 1
				err = os.WriteFile(f, b, 0o600)
			}
			return err
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			st := open(t)
			s := session(t, st, "one", 20, 5)
			p := newPrinter(t, st, s.ID, 20, 5)
			var ends []time.Duration // of the files
			for _, word := range []string{"one\r\n", "two\r\n", "three\r\n", "four\r\n"} {
				p.print([]byte(word))
				p.again()
				<-time.After(2 * time.Millisecond) // the next file is of another time
				r, err := st.Recording(t.Context(), s.ID)
				must.OK(t, err)
				ends = append(ends, r.Length()+r.Lead(s.StartedAt))
			}
			p.close()
			must.OK(t, c.harm(filepath.Join(st.SessionDir(s.ID), "terminal", "000002.zst")))
			w := seek(t, st, s.ID, 0, toEnd)
			if !w.ended || len(w.damage) != 1 || string(look(w.screen)) != string(look(p.screen)) {
				t.Errorf("played from the start it ended %v, with damage %q, as %q", w.ended, w.damage, look(w.screen))
			}
			w = seek(t, st, s.ID, ends[2], toKeyframe)
			if got := string(look(w.screen)); !strings.Contains(got, "two") || !strings.Contains(got, "three") || strings.Contains(got, "four") {
				t.Errorf("after it the screen is %q", got)
			}
			w = seek(t, st, s.ID, ends[1], func(w *watcher, f api.Frame) bool { return f.Kind != api.FrameDamage })
			if got := string(look(w.screen)); len(w.damage) != 1 || !strings.Contains(got, "one") || strings.Contains(got, "three") {
				t.Errorf("within it the screen is %q, with damage %q", got, w.damage)
			}
			line, err := Timeline(t.Context(), st, s, 0, 0)
			if err != nil || (line.Damage != "") != c.told || c.told && !strings.Contains(line.Damage, "file 2") {
				t.Errorf("the timeline says %q, %v", line.Damage, err)
			}
		})
	}
}

// How long a session ran is told by what happened while it did, not by what was done with
// its record later.
func TestRan(t *testing.T) {
	st := open(t)
	s := session(t, st, "one", 80, 24)
	if at, err := st.Ran(t.Context(), s.ID, math.MaxUint64); err != nil || !at.IsZero() {
		t.Errorf("where nothing happened it ran until %v, %v", at, err)
	}
	seq := record(t, st, s.ID, "action", store.KindAction, 1, api.Action{N: 1})
	record(t, st, s.ID, "apply.done", store.KindApply, 1, api.Apply{ID: 1})
	resumed := record(t, st, s.ID, "session.started", store.KindSession, 0, s)
	record(t, st, s.ID, "action", store.KindAction, 2, api.Action{N: 2})
	events, err := st.Events(t.Context(), s.ID, seq, 1)
	must.OK(t, err)
	if at, err := st.Ran(t.Context(), s.ID, resumed); err != nil || !at.Equal(events[0].At) {
		t.Errorf("it ran until %v, %v, want %v", at, err, events[0].At)
	}
}

// What an action waited isn't told as running, nor is the time between an interruption and
// what followed it.
func TestTimelineTellsWhatRan(t *testing.T) {
	st := open(t)
	s := session(t, st, "one", 80, 24)
	s.State = api.SessionInterrupted
	began := s.StartedAt
	for _, a := range []api.Action{
		{N: 1, Kind: api.KindCommand, State: api.ActionEnded, ReleasedAt: began.Add(time.Hour), EndedAt: began.Add(61 * time.Minute)},
		{N: 2, Kind: api.KindCommand, State: api.ActionAbandoned, EndedAt: began.Add(time.Hour)},
		{N: 3, Kind: api.KindCommand, State: api.ActionEnded, EndedAt: began.Add(time.Hour)}, // as a resume tells
		{N: 4, Kind: api.KindCommand, State: api.ActionRunning},
	} {
		record(t, st, s.ID, "action", store.KindAction, int64(a.N), a)
		if a.N == 3 {
			went := s
			went.Resumed, s.Resumed = 1, 1
			record(t, st, s.ID, "session.started", store.KindSession, 0, went)
		}
	}
	got, err := Timeline(t.Context(), st, s, 0, 0)
	must.OK(t, err)
	for _, m := range got.Marks {
		if waited := m.Waited > 59*time.Minute; waited != (m.Key == 1 && m.Kind == api.MarkAction) || m.Took > 2*time.Minute {
			t.Errorf("%s %d waited %v and took %v", m.Kind, m.Key, m.Waited, m.Took)
		}
	}
}

// A timeline that is continued at any events is the same as one that is read whole.
func TestTimelineContinued(t *testing.T) {
	st, sessions := open(t), int64(0)
	rapid.Check(t, func(r *rapid.T) {
		sessions++
		s := session(t, st, "s"+itoa(sessions), 80, 24)
		s.State = api.SessionRunning
		most := rapid.SampledFrom([]int{0, 3}).Draw(r, "most")
		states := []api.ActionState{api.ActionHeld, api.ActionRunning, api.ActionDenied, api.ActionEnded, api.ActionAbandoned}
		var had api.Timeline
		var told [4]int64 // resources of a kind
		key := func(kind int) int64 {
			if told[kind] == 0 || rapid.Bool().Draw(r, "new") {
				told[kind]++
				return told[kind]
			}
			return rapid.Int64Range(1, told[kind]).Draw(r, "key")
		}
		for range rapid.IntRange(1, 60).Draw(r, "events") {
			switch rapid.IntRange(0, 5).Draw(r, "what") {
			case 0, 1:
				n := key(0)
				record(t, st, s.ID, "action", store.KindAction, n, api.Action{
					N: int(n), Kind: rapid.SampledFrom([]api.ActionKind{api.KindCommand, api.KindEdit}).Draw(r, "kind"), Title: rapid.StringMatching("[a-z]{3}").Draw(r, "title"),
					State: rapid.SampledFrom(states).Draw(r, "state"), By: "rule", Housekeeping: rapid.Bool().Draw(r, "housekeeping"),
					ReleasedAt: s.StartedAt.Add(time.Millisecond), EndedAt: time.Now().Add(time.Minute),
				})
			case 2:
				n := key(1)
				record(t, st, s.ID, "question", store.KindQuestion, n, api.Question{ID: n, Title: "question " + itoa(n)})
			case 3:
				if told[1] > 0 {
					n := rapid.Int64Range(1, told[1]).Draw(r, "question")
					record(t, st, s.ID, "decision", store.KindDecision, n, api.Decision{Question: n, Action: 1, Answer: rapid.SampledFrom([]api.Answer{api.AnswerDeny, api.AnswerApprove}).Draw(r, "answer")})
				}
			case 4:
				n := key(2)
				record(t, st, s.ID, "attempt", store.KindAttempt, n, api.Attempt{ID: n, Name: "example.org", Verdict: rapid.SampledFrom([]api.Verdict{api.Allow, api.Deny}).Draw(r, "verdict")})
			case 5:
				if rapid.IntRange(0, 5).Draw(r, "resume") == 0 {
					s.Resumed++
					record(t, st, s.ID, "session.started", store.KindSession, 0, s)
				}
			}
			if !rapid.Bool().Draw(r, "cut") {
				continue
			}
			more, err := Timeline(t.Context(), st, s, most, had.Last)
			must.OK(r, err)
			had = had.Continued(more)
			whole, err := Timeline(t.Context(), st, s, most, 0)
			must.OK(r, err)
			if got, want := settled(r, had), settled(r, whole); !slices.Equal(got, want) || had.Last != whole.Last || had.More != whole.More || had.Since != 0 {
				r.Fatalf("continued it is\n%+v, whole\n%+v", got, want)
			}
		}
	})
}

// settled are the marks of a timeline, without what differs by when it was read.
func settled(t *rapid.T, line api.Timeline) []api.Mark {
	marks := slices.Clone(line.Marks)
	for i := range marks {
		if m := &marks[i]; m.Runs {
			if m.Took != max(0, line.Length-m.Offset-m.Waited) {
				t.Fatalf("what runs took %v by %v: %+v", m.Took, line.Length, m)
			}
			m.Took = 0
		}
	}
	return marks
}

// A course that goes on is told by what is new alone, until it is told less evenly.
func TestTimelineTellsWhatIsNew(t *testing.T) {
	st := open(t)
	s := session(t, st, "one", 80, 24)
	s.State = api.SessionRunning
	action := func(n int64) uint64 {
		return record(t, st, s.ID, "action", store.KindAction, n, api.Action{N: int(n), Kind: api.KindCommand})
	}
	for n := range int64(7) {
		action(n + 1)
	}
	had, err := Timeline(t.Context(), st, s, 10, 0)
	if err != nil || len(had.Marks) != 7 {
		t.Fatalf("it has %d marks, %v", len(had.Marks), err)
	}
	action(3)
	seq := action(8)
	more, err := Timeline(t.Context(), st, s, 10, had.Last)
	if err != nil || more.Since != had.Last || len(more.Marks) != 2 || more.Marks[0].Key != 3 || more.Marks[1].Seq != seq {
		t.Errorf("new is %+v, %v", more, err)
	}
	for n := range int64(4) {
		action(n + 9)
	}
	if more, err = Timeline(t.Context(), st, s, 10, more.Last); err != nil || more.Since != 0 || len(more.Marks) != 6 {
		t.Errorf("of more than there is room for it has %+v, %v", more, err)
	}
}
