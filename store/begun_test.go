package store

import (
	"fmt"
	"slices"
	"testing"

	"stepbox/session/e2e/must"
)

// What began after an event comes in its order, as it is now, once, however often it was told of.
func TestBegun(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	after, err := s.Append(t.Context(), id, fact(1, "held"))
	must.OK(t, err)
	appendFacts(t, s, id, fact(3, "held"), fact(1, "ended"), fact(2, "held"), fact(3, "ended"))
	var got []string
	for c, err := range s.Begun(t.Context(), id, KindAction, after[0].Seq) {
		must.OK(t, err)
		got = append(got, fmt.Sprintf("%d at %d", c.Key, c.Seq-after[0].Seq))
		if c.Key == 3 && string(c.Doc) != string(fact(3, "ended").Doc) {
			t.Errorf("it is told as %s", c.Doc)
		}
	}
	if want := []string{"3 at 1", "2 at 3"}; !slices.Equal(got, want) {
		t.Errorf("began %q, want %q", got, want)
	}
}
