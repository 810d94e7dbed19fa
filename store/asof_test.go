package store

import (
	"fmt"
	"testing"
	"time"

	"errors"

	"pgregory.net/rapid"

	"stepbox/session/e2e/must"
)

// What AsOf says is what a reader of all events up to that one would know.
func TestAsOfProperty(t *testing.T) {
	s := open(t)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		id := fmt.Sprintf("s%d", n)
		if _, err := s.CreateSession(t.Context(), id, []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		var facts []Fact
		for i, key := range rapid.SliceOfN(rapid.Int64Range(1, 9), 1, 40).Draw(t, "keys") {
			facts = append(facts, Fact{Kind: KindAction, Key: key, Event: "action.told", Doc: fmt.Appendf(nil, `{"n":%d,"i":%d}`, key, i)})
		}
		if _, err := s.Append(t.Context(), id, facts...); err != nil {
			t.Fatal(err)
		}
		seq := uint64(rapid.IntRange(0, len(facts)+2).Draw(t, "seq"))
		limit := rapid.IntRange(1, 12).Draw(t, "limit")
		newest := map[int64]string{}
		for i := range facts {
			if uint64(i)+2 <= seq { // the first event is the session's
				newest[facts[i].Key] = string(facts[i].Doc)
			}
		}
		var want []string
		for key := int64(9); key > 0; key-- {
			if d, ok := newest[key]; ok && len(want) < limit {
				want = append([]string{d}, want...)
			}
		}
		docs, err := s.AsOf(t.Context(), id, KindAction, seq, limit)
		must.OK(t, err)
		if fmt.Sprintf("%s", docs) != fmt.Sprint(want) {
			t.Fatalf("as of %d, %d of them: %s, want %s", seq, limit, docs, want)
		}
	})
}

func TestEventBy(t *testing.T) {
	s := open(t)
	session(t, s, "aaaaaaaa")
	var all []Event
	for i := range 20 {
		es, err := s.Append(t.Context(), "aaaaaaaa", fact(int64(i+1), "held"))
		must.OK(t, err)
		all = append(all, es...)
	}
	for _, e := range all {
		for d, want := range map[time.Duration]uint64{0: e.Seq, -1: e.Seq - 1} {
			if got, err := s.EventBy(t.Context(), "aaaaaaaa", e.At.Add(d)); err != nil || got.Seq != want {
				t.Errorf("by %v after event %d: %d, %v; want %d", d, e.Seq, got.Seq, err, want)
			}
		}
	}
	if _, err := s.EventBy(t.Context(), "aaaaaaaa", all[0].At.Add(-time.Hour)); !errors.Is(err, ErrNotFound) {
		t.Errorf("before the start: %v", err)
	}
}
