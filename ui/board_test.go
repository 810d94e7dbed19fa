package ui

import (
	"testing"

	"stepbox/session/api"
	"stepbox/ui/link"
)

// A board gives each session's events in order, of what it uses the newest alone, and nothing
// more of one that isn't followed any more.
func TestBoard(t *testing.T) {
	t.Parallel()
	c := newFake(api.Session{ID: "first"}, api.Session{ID: "a"}, api.Session{ID: "b"})
	b := link.NewBoard(t.Context(), c)
	defer b.Close()
	b.Follow([]string{"a", "b"})
	got := map[string][]int{}
	usage := map[string]int{}
	take := func() {
		b.Take(func(id string, e api.Event) {
			if e.Usage != nil {
				usage[id] = e.Usage.Pids
			} else {
				got[id] = append(got[id], e.Action.N)
			}
		})
	}
	const all = 1000 // more than a board keeps
	for n := range all {
		c.PutOf("a", api.Event{Action: &api.Action{N: n}}, api.Event{Usage: &api.Usage{Pids: n}})
	}
	c.PutOf("b", api.Event{Action: &api.Action{N: 7}})
	for len(got["a"]) < all || len(got["b"]) < 1 {
		if !b.Wait() {
			t.Fatal("it was closed")
		}
		take()
	}
	for n, is := range got["a"] {
		if n != is {
			t.Fatalf("event %d is of action %d", n, is)
		}
	}
	b.Follow([]string{"b"})
	c.PutOf("a", api.Event{Action: &api.Action{N: all}})
	c.PutOf("b", api.Event{Action: &api.Action{N: 8}})
	for len(got["b"]) < 2 {
		b.Wait()
		take()
	}
	if len(got["a"]) != all {
		t.Error("it follows a session that it was told to leave")
	}
}
