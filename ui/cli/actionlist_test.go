package cli

import (
	"strings"
	"testing"
	"text/tabwriter"
	"unicode/utf8"

	"stepbox/session/api"
)

// TestActionListFits: rows are no wider than the terminal, and runs of housekeeping are
// folded; what is held stands for itself.
func TestActionListFits(t *testing.T) {
	actions := []api.Action{
		{N: 1, State: api.ActionEnded, Exit: &api.Exit{}, Title: "true", Housekeeping: true},
		{N: 2, State: api.ActionEnded, Exit: &api.Exit{}, Title: "true", Housekeeping: true},
		{N: 3, State: api.ActionEnded, Exit: &api.Exit{Code: 1}, Title: strings.Repeat("make all ", 40), Files: 3, Added: 10, Review: api.ReviewOpen},
		{N: 4, State: api.ActionHeld, Title: "git push", Housekeeping: true},
		{N: 5, State: api.ActionEnded, Title: "true", Housekeeping: true},
	}
	for _, cols := range []int{80, 120, 200} {
		var b strings.Builder
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		printActions(w, actionList{cols: cols}, actions, nil)
		w.Flush()
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > cols {
				t.Errorf("a row has %d characters on %d columns: %s", n, cols, line)
			}
		}
		for _, want := range []string{"2 of housekeeping", "1 of housekeeping", "HELD", "3 files +10 -0, unreviewed"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("no %q in\n%s", want, b.String())
			}
		}
	}
}
