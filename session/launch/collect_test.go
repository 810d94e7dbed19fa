package launch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"stepbox/session/api"
)

// Who goes: by age and by number the oldest, never what lives or is pinned; what was
// never applied is named and stays.
func TestCandidates(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	days := func(n int) time.Time { return now.AddDate(0, 0, -n) }
	sessions := []api.Session{
		{ID: "live", State: api.SessionRunning, StartedAt: days(400)},
		{ID: "new", State: api.SessionEnded, StartedAt: days(2), EndedAt: days(1)},
		{ID: "old", State: api.SessionEnded, StartedAt: days(300), EndedAt: days(100)},
		{ID: "pinned", State: api.SessionEnded, StartedAt: days(300), EndedAt: days(200), Pinned: true},
		{ID: "older", State: api.SessionEnded, StartedAt: days(300), EndedAt: days(150)},
		{ID: "cut", State: api.SessionInterrupted, StartedAt: days(120)},
		{ID: "work", State: api.SessionEnded, StartedAt: days(300), EndedAt: days(140), Unapplied: 3},
		{ID: "long", State: api.SessionEnded, StartedAt: days(300), EndedAt: days(3)},
		{ID: "trash", State: api.SessionEnded, StartedAt: days(6), EndedAt: days(5), Trashed: days(2)},
		{ID: "wasted", State: api.SessionEnded, StartedAt: days(8), EndedAt: days(7), Trashed: days(2), Unapplied: 1},
		{ID: "root", State: api.SessionEnded, StartedAt: days(300), EndedAt: days(290)},
		{ID: "stem", State: api.SessionEnded, StartedAt: days(290), EndedAt: days(280), Parent: &api.Parent{ID: "root"}},
		{ID: "leaf", State: api.SessionEnded, StartedAt: days(280), EndedAt: days(270), Parent: &api.Parent{ID: "stem"}, Unapplied: 1},
		{ID: "dead", State: api.SessionEnded, StartedAt: days(280), EndedAt: days(260), Parent: &api.Parent{ID: "stem"}},
		{ID: "undo", State: api.SessionEnded, StartedAt: days(6), EndedAt: days(6), Trashed: now.Add(-time.Hour)},
	}
	for _, c := range []struct {
		name string
		ask  api.CollectRequest
		want string // those that stay all the same in brackets, those that go only for room with a question mark
	}{
		{"nothing asked for", api.CollectRequest{}, "(wasted) trash"},
		{"by age", api.CollectRequest{OlderThan: 90 * 24 * time.Hour}, "(root) (stem) (leaf) dead (pinned) older (work) cut old (wasted) trash"},
		{"by age, work too", api.CollectRequest{OlderThan: 90 * 24 * time.Hour, Unapplied: true}, "root stem leaf dead (pinned) older work cut old wasted trash"},
		{"by number", api.CollectRequest{Keep: new(2)}, "(root) (stem) (leaf) dead (pinned) older (work) cut old (wasted) undo trash"},
		{"more than there are", api.CollectRequest{Keep: new(20)}, "(wasted) trash"},
		{"none is kept", api.CollectRequest{Keep: new(0)}, "(root) (stem) (leaf) dead (pinned) older (work) cut old (wasted) undo trash long new"},
		{"by age and number", api.CollectRequest{Keep: new(3), OlderThan: 145 * 24 * time.Hour}, "(root) (stem) (leaf) dead (pinned) older (work) cut old (wasted) trash"},
		{"by size", api.CollectRequest{MaxSize: 1}, "(root?) (stem?) (leaf?) dead? older? (work?) cut? old? (wasted) undo? trash long? new?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, d := range candidates(slices.Clone(sessions), c.ask, now) {
				name := d.ID
				if d.Why == "" {
					name += "?"
				}
				if d.Stays != "" {
					name = fmt.Sprintf("(%s)", name)
				}
				got = append(got, name)
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("%s, want %s", s, c.want)
			}
		})
	}
}
