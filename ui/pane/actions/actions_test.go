package actions

import (
	"strings"
	"testing"
	"time"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/ui/internal/cellstest"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

var now = cellstest.Now

func frame(t testing.TB, dst uv.Screen) paint.Frame {
	f := cellstest.Frame(t, dst)
	f.Now, f.Number = now, "4"
	return f
}

func scene(t testing.TB) *Pane {
	var s state.State
	var all struct{ Actions []api.Action }
	cellstest.Scene(&all)
	for _, a := range all.Actions {
		s.Apply(api.Event{Action: &a})
	}
	return &Pane{State: &s}
}

func show(t testing.TB, p *Pane, w, h int) string {
	s := uv.NewScreenBuffer(w, h)
	p.Draw(uv.Rect(0, 0, w, h), frame(t, s))
	return s.String()
}

func TestEveryStateHasAMarkAndWords(t *testing.T) {
	seen := map[string]bool{}
	for _, tt := range []struct {
		a     api.Action
		glyph string
		words string
	}{
		{api.Action{State: api.ActionHeld}, "◆", "HELD"},
		{api.Action{State: api.ActionRunning}, "▸", "running"},
		{api.Action{State: api.ActionDenied}, "✗", "denied"},
		{api.Action{State: api.ActionAbandoned}, "∅", "gone"},
		{api.Action{State: api.ActionEnded, Exit: &api.Exit{Code: 1}}, "✗", "exit 1"},
		{api.Action{State: api.ActionEnded, Exit: &api.Exit{Signal: "SIGSEGV"}}, "✗", "SIGSEGV"},
		{api.Action{State: api.ActionEnded, Exit: &api.Exit{}, Review: api.ReviewOpen}, "✓", "exit 0 · unreviewed"},
		{api.Action{State: api.ActionEnded, Exit: &api.Exit{}, Review: api.ReviewKept}, "✓", "exit 0 · kept"},
		{api.Action{State: api.ActionEnded, Exit: &api.Exit{}, Review: api.ReviewRolledBack}, "↶", "rolled back"},
		{api.Action{State: api.ActionEnded, Exit: &api.Exit{}, LeftRunning: 2}, "✓", "exit 0 · left 2"},
		{api.Action{State: api.ActionEnded, Kind: api.KindEdit}, "✓", "edited"},
	} {
		glyph, _ := Glyph(tt.a)
		words := Status(tt.a)
		if glyph != tt.glyph || words != tt.words {
			t.Errorf("%+v is %q %q, want %q %q", tt.a, glyph, words, tt.glyph, tt.words)
		}
		if seen[words] {
			t.Errorf("%q means two things", words)
		}
		seen[words] = true
	}
}

// An edit waits for a word though it has happened, and a running action may have a
// program that is held: their rows say so.
func TestWhatIsHeldIsMarked(t *testing.T) {
	for _, a := range []api.Action{
		{N: 1, Kind: api.KindEdit, State: api.ActionEnded, Review: api.ReviewOpen, Title: "edit it"},
		{N: 1, Kind: api.KindCommand, State: api.ActionRunning, Title: "sh it"},
	} {
		p := &Pane{State: &state.State{}}
		p.State.Apply(api.Event{Action: &a})
		if s := show(t, p, 80, 4); strings.Contains(s, "◆") || strings.Contains(s, "HELD") {
			t.Errorf("%s isn't held:\n%s", a.Title, s)
		}
		p.State.Apply(api.Event{Question: &api.Question{ID: 1, Action: 1, HeldAt: now}})
		if s := show(t, p, 80, 4); !strings.Contains(s, "◆  #1  "+a.Title) || !strings.Contains(s, "HELD 00:00") {
			t.Errorf("%s is held:\n%s", a.Title, s)
		}
	}
}

// A long session is shown from some action on, and the first row says so.
func TestEarlierActionsAreMissed(t *testing.T) {
	p := &Pane{State: &state.State{}}
	for n, housekeeping := range []bool{true, false} {
		p.State.Apply(api.Event{Action: &api.Action{N: 8 + n, Housekeeping: housekeeping, State: api.ActionEnded, Title: "true"}})
	}
	if s := show(t, p, 80, 8); !strings.Contains(s, "7 earlier actions aren't on this screen") || !strings.Contains(s, "1 housekeeping step folded") {
		t.Errorf("it isn't said that some are missing:\n%s", s)
	}
	first := api.Action{N: 1, State: api.ActionEnded, Title: "first"}
	p = &Pane{State: &state.State{}}
	p.State.Apply(api.Event{Action: &first})
	if s := show(t, p, 80, 8); strings.Contains(s, "earlier") {
		t.Errorf("none are missing:\n%s", s)
	}
}

func TestHousekeepingFolds(t *testing.T) {
	p := scene(t)
	s := show(t, p, 120, 20)
	if !strings.Contains(s, "2 housekeeping steps folded") || strings.Contains(s, "git status") {
		t.Errorf("housekeeping isn't folded:\n%s", s)
	}
	p.Select(11)
	p.Fold()
	if s := show(t, p, 120, 20); !strings.Contains(s, "git status") || p.Selected() != 11 {
		t.Errorf("unfolding lost the selection (%d):\n%s", p.Selected(), s)
	}
	p.Fold()
	if p.Selected() != 11 {
		t.Errorf("folding lost the selection: %d", p.Selected())
	}
	hk := api.Action{N: 20, Housekeeping: true, State: api.ActionHeld, Title: "held all the same"}
	p.State.Apply(api.Event{Action: &hk})
	if s := show(t, p, 120, 20); !strings.Contains(s, "held all the same") {
		t.Error("something held is folded away")
	}
}

func TestFollowAndStay(t *testing.T) {
	p := scene(t)
	if p.Selected() != 13 {
		t.Errorf("following, %d is selected", p.Selected())
	}
	add := func(n int) {
		p.State.Apply(api.Event{Action: &api.Action{N: n, Title: "later", State: api.ActionRunning, StartedAt: now.Add(-time.Second)}})
	}
	add(14)
	if p.Selected() != 14 {
		t.Error("it doesn't follow")
	}
	show(t, p, 100, 6)
	p.List.Move(-2, p.Total())
	was := p.Selected()
	add(15)
	add(1) // rows above come late
	show(t, p, 100, 6)
	if p.Selected() != was {
		t.Errorf("the selection went from %d to %d", was, p.Selected())
	}
	p.List.Follow()
	if p.Selected() != 15 {
		t.Error("it doesn't follow again")
	}
}

func TestWhole(t *testing.T) {
	p := scene(t)
	a := api.Action{N: 16, State: api.ActionHeld, Title: strings.Repeat("x", 40)}
	s := uv.NewScreenBuffer(1, 1)
	if p.Whole(s, a) {
		t.Error("whole before it was drawn")
	}
	for w := 20; w < 200; w++ {
		p.State.Apply(api.Event{Action: &a})
		p.List.Follow()
		drawn := strings.Contains(show(t, p, w, 6), a.Title)
		if p.Whole(s, a) != drawn {
			t.Fatalf("at %d columns it is drawn whole: %v, and said to be: %v", w, drawn, !drawn)
		}
	}
}

// What an action did is whole where three fifths of the room are enough for it,
// however long the command is.
// What the agent said stands where neither the title nor what was done needs the room.
func TestWhatWasSaidFillsTheRow(t *testing.T) {
	p := scene(t)
	p.State.Apply(api.Event{Action: &api.Action{N: 90, State: api.ActionEnded, Title: "go test ./...", Claim: &api.Claimed{Text: "Sees whether the parser still works"}}})
	for w, want := range map[int]bool{200: true, 120: true, 60: false} {
		if got := show(t, p, w, 20); strings.Contains(got, "go test ./...  said: Sees whether") != want {
			t.Errorf("at %d columns:\n%s", w, got)
		}
	}
}

func TestWhatWasDoneGoesBeforeTheCommand(t *testing.T) {
	a := api.Action{N: 1, State: api.ActionEnded, Kind: api.KindEdit, Review: api.ReviewOpen, Title: strings.Repeat("x", 200)}
	a.Effects = &api.Effects{Grave: true, Words: []string{"changes .husky/pre-commit, a hook"}}
	p := &Pane{State: &state.State{}}
	p.State.Apply(api.Event{Action: &a})
	for w := 120; w < 200; w++ {
		if s := show(t, p, w, 4); !strings.Contains(s, "x…   !  changes .husky/pre-commit, a hook ") {
			t.Fatalf("at %d columns:\n%s", w, s)
		}
	}
}

func FuzzDraw(f *testing.F) {
	f.Add("ls\x1b[2J\u202e", "rule\x00", "held", 80, 10, 3)
	f.Add("漢字👨‍👩‍👧‍👦", "\xff", "ended", 30, 4, -9)
	f.Fuzz(func(t *testing.T, title, rule, st string, w, h, n int) {
		w, h = max(0, w%160), max(0, h%40)
		p := scene(t)
		a := api.Action{N: n, Title: title, Rule: rule, State: api.ActionState(st), Review: api.Review(rule), Exit: &api.Exit{Code: n, Signal: rule}, Added: n, Execs: n, EndedAt: now}
		p.State.Apply(api.Event{Action: &a})
		p.State.Apply(api.Event{Question: &api.Question{ID: 1, Action: n}})
		p.Notice = paint.Line{{Text: title}}
		s := uv.NewScreenBuffer(w+4, h+4)
		p.Draw(uv.Rect(2, 2, w, h), frame(t, s))
		cellstest.Check(t, s, uv.Rect(2, 2, w, h))
	})
}
