package actions

import (
	"strings"
	"testing"
	"time"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/themes"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

// What an edit did isn't said again when its title says it.
func TestEditSaysOnce(t *testing.T) {
	for words, want := range map[string]string{"changes a.go": "", "empties a.go": "empties a.go", "changes b.go": "changes b.go"} {
		got := ""
		for _, w := range did(api.Action{Kind: api.KindEdit, Title: "edit a.go", Effects: &api.Effects{Words: []string{words}}}) {
			got += strings.TrimSpace(w.text)
		}
		if got != want {
			t.Errorf("%q is %q", words, got)
		}
	}
	if len(did(api.Action{Kind: api.KindCommand, Title: "edit a.go", Effects: &api.Effects{Words: []string{"changes a.go"}}})) == 0 {
		t.Error("a command's isn't said")
	}
}

// A denied action's row says why it was denied.
func TestDeniedRowHasTheReason(t *testing.T) {
	var s state.State
	s.Apply(api.Event{Action: &api.Action{N: 1, Kind: api.KindCommand, State: api.ActionDenied, Title: "rm old.txt", Reason: "Kim needs it"}})
	th, err := themes.Load("plain", "")
	must.OK(t, err)
	b := uv.NewScreenBuffer(80, 4)
	(&Pane{State: &s}).Draw(b.Bounds(), paint.Frame{Screen: b, P: paint.NewPalette(th, 0)})
	if got := b.String(); !strings.Contains(got, "denied") || !strings.Contains(got, "Kim needs it") {
		t.Errorf("the row is\n%s", got)
	}
}

// A question of the agent's own ran nothing, so that no time is shown.
func TestACallTakesNoTime(t *testing.T) {
	a := api.Action{N: 1, Kind: api.KindCall, Title: "may it use edit: calc.py", State: api.ActionEnded, StartedAt: now.Add(-time.Second), ReleasedAt: now, EndedAt: now}
	if got := took(a, now); got != "" {
		t.Errorf("took %q", got)
	}
	a.Kind = api.KindCommand
	if got := took(a, now); got == "" {
		t.Error("a command's time isn't shown")
	}
}
