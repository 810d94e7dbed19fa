package workbench

import (
	"context"
	"fmt"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/themes"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/link"
	"stepbox/ui/paint"
)

// tour shows a newcomer around, in two rows below all else: it points to what is on the
// screen, lies over nothing, and goes on by itself once what it names was done. Its own
// keys come after the leader, so none that decides is one of them.
type tour struct {
	*core
	at  int  // the step that is shown, from 1; 0: none
	due bool // it was never shown
}

// tourRows are those that it takes, and tourLeast how many the screen must have for it.
const (
	tourRows  = 2
	tourLeast = 22
)

// tourFile is the name under which it is kept that it was shown.
const tourFile = "tour"

// scene is by what the tour sees that what a step names was done.
type scene struct {
	leader bool // the leader was pressed
	focus  intent.Pane
	open   dialog.Dialog
}

// stop is a step: what it says, and whether that was done.
type stop struct {
	words func() string
	done  func(s scene) bool
}

// stops are the steps in their order.
var stops = []stop{
	{func() string {
		return "What you type is the agent's, but for " + keys.LeaderKey() + ": press it, and see what can follow."
	}, func(s scene) bool { return s.leader }},
	{func() string {
		return afterLeader(intent.Focus{Pane: intent.Actions}) + " goes to Actions, below: each command and edit of the agent is a row."
	}, func(s scene) bool { return s.focus == intent.Actions }},
	{func() string {
		return "There j and k select a row, and enter opens it: what ran, why, what it did."
	},
		func(s scene) bool { return s.open != nil }},
	{func() string {
		return "esc closes it. A row with ◆ is held: " + keys.First(intent.Approve{}, keys.Actions) + " approves it, " + keys.First(intent.Deny{}, keys.Actions) + " denies it, only here."
	}, func(s scene) bool { return s.open == nil }},
	{func() string {
		return keys.First(intent.Focus{Pane: intent.Changes}, keys.Panes) + " goes to Changes: your folder gets none of it before you say so."
	}, func(s scene) bool { return s.focus == intent.Changes }},
	{func() string {
		return keys.First(intent.Rollback{}, keys.Actions) + " rolls back, " + keys.First(intent.Keep{}, keys.Actions) + " keeps as reviewed, " + keys.First(intent.Apply{}, keys.Panes) + " applies to your folder, by a plan."
	}, func(s scene) bool { return s.focus != intent.Changes }},
	{func() string {
		return keys.First(intent.Focus{Pane: intent.Network}, keys.Panes) + " goes to Network: where its programs wanted to connect, and what waits."
	}, func(s scene) bool { return s.focus == intent.Network }},
	{func() string {
		return keys.First(intent.Help{}, keys.Panes) + " has every key, and pages by subject; " + palette() + " finds a command by name."
	}, func(s scene) bool {
		switch s.open.(type) {
		case *dialog.Help, *dialog.Palette:
			return true
		}
		return false
	}},
	{func() string {
		return "esc goes back, in the end to the Terminal. " + afterLeader(intent.Detach{}) + " leaves; the session goes on."
	}, func(s scene) bool { return s.focus == intent.Terminal && s.open == nil }},
}

// recall finds out whether the tour was shown before.
func (t *tour) recall() tea.Cmd {
	if t.cfg.NoTour {
		return nil
	}
	memory := t.cfg.Kept.Screen()
	return t.do(func(context.Context, link.Client, string) func() tea.Cmd {
		seen := memory.Read(tourFile) != ""
		return func() tea.Cmd {
			t.due = !seen
			return nil
		}
	})
}

// begin begins a tour that wasn't shown before, where nothing says why not, and remembers that.
func (t *tour) begin(why func(intent.Intent) string) tea.Cmd {
	if !t.due || !t.caught || why(intent.Tour{}) != "" {
		return nil
	}
	t.due, t.at = false, 1
	memory := t.cfg.Kept.Screen()
	return t.do(func(context.Context, link.Client, string) func() tea.Cmd {
		err := memory.Write(tourFile, "shown\n")
		return func() tea.Cmd {
			if err != nil {
				t.warn("cannot remember that the tour was shown: %s", err)
			}
			return nil
		}
	})
}

// guide begins the tour, goes on with it, or ends it.
func (t *tour) guide(i intent.Tour) {
	if i.End || t.at == len(stops) {
		t.at = 0
		t.answerKey(themes.Info, "the tour is over: "+afterLeader(intent.Tour{})+" shows it again")
		return
	}
	t.at++
}

// follow goes on where what the step names was done, and says how many rows of the screen
// the tour takes.
func (t *tour) follow(s scene, rows int) int {
	if t.Over() {
		t.at = 0
	}
	if t.at > 0 && stops[t.at-1].done(s) {
		t.guide(intent.Tour{})
	}
	if t.at == 0 || rows < tourLeast+tourRows {
		return 0
	}
	return tourRows
}

// draw draws the step in the rows that are its own.
func (t *tour) draw(r uv.Rectangle, f paint.Frame) {
	if r.Empty() || t.at == 0 {
		return
	}
	p := f.P
	f.Fill(r, themes.Inset)
	head := fmt.Sprintf("Tour %d/%d  ", t.at, len(stops))
	hints := []paint.Hint{{Key: afterLeader(intent.Tour{}), Words: "next"}, {Key: afterLeader(intent.Tour{End: true}), Words: "end the tour"}}
	x, end := r.Min.X+1, r.Max.X-1
	at := paint.Text(f.Screen, x, r.Min.Y, end, head, p.On(themes.Strong, themes.Inset))
	lines := paint.Wrap(f.Screen, stops[t.at-1].words(), end-at)
	f.Clip(at, r.Min.Y, end, lines[0], themes.Inset)
	start := end - f.HintsWidth(hints)
	if len(lines) > 1 {
		f.Clip(at, r.Min.Y+1, start-2, lines[1], themes.Inset)
	}
	f.Hints(start, r.Min.Y+1, end, themes.Inset, hints)
}
