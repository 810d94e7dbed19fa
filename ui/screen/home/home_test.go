package home

import (
	"strings"
	"testing"
	"time"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/internal/cellstest"
)

func session(id string, state api.SessionState, held int) api.Session {
	return api.Session{ID: id, State: state, Held: held}
}

// The selection stays on its session when the list changes around it.
func TestSelection(t *testing.T) {
	s := New(t.Context(), Config{Now: time.Now})
	set := func(list []api.Session) {
		var live, past api.FoundPage
		for _, x := range list {
			if x.Live() {
				live.Found = append(live.Found, api.Found{Session: x})
			} else {
				past.Found = append(past.Found, api.Found{Session: x})
			}
		}
		s.take(api.Query{}, live, past)
	}
	list := []api.Session{
		session("a", api.SessionRunning, 0), session("b", api.SessionRunning, 1),
		session("c", api.SessionEnded, 0), session("d", api.SessionEnded, 0),
	}
	set(list)
	at := func(want string) {
		t.Helper()
		if got, _, _, _ := s.Selected(); got.ID != want {
			t.Errorf("%q is selected, want %q", got.ID, want)
		}
	}
	at("a")
	s.Move(intent.Bottom{})
	at("d")
	s.Move(intent.Move{By: -2})
	at("b")
	list[0].State = api.SessionEnded
	set(append([]api.Session{session("new", api.SessionRunning, 0)}, list...))
	at("b")
	set(list[2:])
	at("d")
}

// A count that has no room is told in thousands: its first digits alone are another.
func TestCountsThatAreLong(t *testing.T) {
	for text, want := range map[string]string{"999": " 999", "9999": "9999", "15800": " 15k", "315800": "315k"} {
		dst := uv.NewScreenBuffer(4, 1)
		column{width: 4, right: true}.draw(dst.Bounds(), cellstest.Frame(t, dst), text, themes.Text)
		if got := strings.TrimRight(dst.String(), "\r\n"); got != want {
			t.Errorf("%s is drawn as %q, want %q", text, got, want)
		}
	}
}
