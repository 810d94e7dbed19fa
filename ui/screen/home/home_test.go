package home

import (
	"testing"

	"stepbox/session/api"
	"stepbox/ui/intent"
)

func session(id string, state api.SessionState, held int) api.Session {
	return api.Session{ID: id, State: state, Held: held}
}

// Wherever the selection is, it finds the next session that something waits in,
// and stays on its session when the list changes around it.
func TestSelection(t *testing.T) {
	var s Screen
	s.Handle(intent.HeldStep{By: 1}) // of an empty list
	list := []api.Session{
		session("a", api.SessionRunning, 0), session("b", api.SessionRunning, 1),
		session("c", api.SessionEnded, 0), session("d", api.SessionEnded, 0),
	}
	s.Set(list)
	at := func(want string) {
		t.Helper()
		if got, _ := s.Selected(); got.ID != want {
			t.Errorf("%q is selected, want %q", got.ID, want)
		}
	}
	at("a")
	s.Handle(intent.Bottom{})
	at("d")
	s.Handle(intent.HeldStep{By: 1})
	at("b")
	s.Handle(intent.HeldStep{By: 1})
	at("b")
	list[0].State = api.SessionEnded
	s.Set(append([]api.Session{session("new", api.SessionRunning, 0)}, list...))
	at("b")
	s.Set(list[2:])
	at("d")
}
