package home

import (
	"slices"
	"strings"
	"testing"
	"time"

	"stepbox/session/api"
)

// The columns go by width alone: none lies over another, the name always has room, and what
// matters most is there first.
func TestColumns(t *testing.T) {
	for name, all := range map[string][]column{"live": liveColumns[:], "past": pastColumns[:]} {
		for width := 30; width <= 250; width++ {
			x := 3
			for i, c := range columns(all, width) {
				if c.x != x || i == 0 && c.width < 10 {
					t.Fatalf("%s, %d wide: %s begins at %d and is %d wide", name, width, c.head, c.x, c.width)
				}
				x += c.width + 1
			}
			if x > width {
				t.Fatalf("%s: %d columns of %d", name, x, width)
			}
		}
	}
	for _, c := range []struct {
		all   []column
		width int
		heads string
	}{
		{liveColumns[:], 78, "session state mode review to apply cpu mem ran"},
		{liveColumns[:], 73, "session state mode to apply cpu mem ran"},
		{liveColumns[:], 118, "session state project branch mode review to apply cpu mem net tokens ran"},
		{liveColumns[:], 198, "session state project branch mode review to apply cpu mem net tokens ran last line"},
		{pastColumns[:], 78, "session ended acts files to apply when project"},
		{pastColumns[:], 118, "session ended acts deny back files net to apply took when project"},
		{pastColumns[:], 198, "session ended acts deny back files net to apply took when project last"},
	} {
		var heads []string
		for _, col := range columns(c.all, c.width) {
			heads = append(heads, col.head)
		}
		if got := strings.Join(heads, " "); got != c.heads {
			t.Errorf("%d wide: %s, want %s", c.width, got, c.heads)
		}
	}
}

// A live session's row says what it uses, and a dot where nothing is known.
func TestLiveRow(t *testing.T) {
	at := time.Unix(1000, 0)
	l := line{
		x: api.Session{State: api.SessionRunning, StartedAt: at, Workspace: "/home/ada/src/parser", Branch: "refs/heads/fix/x", Mode: api.ModeStep, Unreviewed: 2,
			Spend: []api.Spend{{Input: 12000, Output: 300}}},
		u:   api.Usage{CPU: 1.5, Memory: 3 << 20, Pids: 2, Sent: 1 << 10, Received: 1 << 10, Unapplied: 4, Last: "ok\x1b[2J"},
		now: at.Add(time.Hour),
	}
	for _, c := range []struct {
		l    line
		want []string
	}{
		{l, []string{"running", "parser", "fix/x", "STEP", "2", "4 files", "150%", "3M", "2k", "12k", "01:00:00", `ok\x1b[2J`}},
		{line{x: api.Session{State: api.SessionPaused, Held: 1}, now: at}, []string{"1 held · paused", "·", "·", "", "·", "·", "·", "·", "·", "·", "00:00:00", ""}},
	} {
		var got []string
		for _, col := range liveColumns {
			got = append(got, col.text(c.l))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// All that was changed is in the project, or nothing was changed: these aren't the same.
func TestToApply(t *testing.T) {
	for want, x := range map[string]api.Session{"2 files": {Changed: 3, Unapplied: 2}, "120": {Unapplied: 120}, "none": {Changed: 3}, "·": {}} {
		if got := toApply(line{x: x}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
