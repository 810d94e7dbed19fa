package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
)

// A session weighs what only it has by then: what two share goes with the second. The sum
// is what is left.
func TestWeigh(t *testing.T) {
	s := open(t)
	body := func(size int, b byte) Hash {
		h, _, err := s.PutBody(t.Context(), bytes.NewReader(bytes.Repeat([]byte{b}, size)))
		must.OK(t, err)
		return h
	}
	const small, large = 1000, 100_000
	shared, own, leaf := body(large, 'a'), body(small, 'b'), body(2*large, 'c')
	body(5*large, 'd') // nobody's
	for id, roots := range map[string][]Hash{"one": {shared, own}, "two": {shared}} {
		session(t, s, id)
		for n, h := range roots {
			appendFacts(t, s, id, Fact{Kind: KindCheckpoint, Key: int64(n), Event: "checkpoint", Doc: json.RawMessage(fmt.Sprintf(`{"root":%q}`, h))})
		}
	}
	for _, k := range described() { // of a thousand sessions each is read once
		query, args := k.ofSession("one", nil)
		var plan string
		if err := s.reads.QueryRow(`EXPLAIN QUERY PLAN `+query, args...).Scan(new(int), new(int), new(int), &plan); err != nil || !strings.HasPrefix(plan, "SEARCH") {
			t.Errorf("the %s of a session are found by %q, %v", k.table, plan, err)
		}
	}
	var told []int
	w, err := s.Weigh(t.Context(), func() []References {
		return []References{func(_ context.Context, id string, k Kind, _ json.RawMessage) ([]Hash, error) {
			if id == "two" && k == KindCheckpoint {
				return []Hash{leaf, leaf}, nil
			}
			return nil, nil
		}}
	}, func(n, of int) { told = append(told, n, of) })
	must.OK(t, err)
	if want := []int{0, 2, 1, 2}; !slices.Equal(told, want) {
		t.Errorf("it told %v", told)
	}
	near := func(what string, got, want int64) {
		t.Helper()
		if got < want || got > want+2000 { // and its events
			t.Errorf("%s: %d bytes, want %d and some", what, got, want)
		}
	}
	near("all", w.Total(), 3*large+small)
	near("the first", w.Take("one"), small)
	near("what is left", w.Total(), 3*large)
	near("the second", w.Take("two"), 3*large)
	if w.Total() != 0 || w.Take("two") != 0 || w.Take("nobody") != 0 {
		t.Errorf("%d bytes are left of nothing", w.Total())
	}
}
