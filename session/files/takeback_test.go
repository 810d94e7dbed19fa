package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/restore"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/e2e/pairstest"
)

// past is an action that made what changed between two checkpoints.
func past(n int, from, to int64) Past {
	return Past{N: n, State: api.ActionEnded, Files: 1, Before: from, After: to, Spans: []Span{{from, to}}}
}

func (l *timeline) takeBack(all []Past, n int) (*Plan, error) {
	l.Helper()
	return l.restorer.Plan(l.Context(), Standing{Newest: l.Newest(), Actions: all, Selection: &api.Selection{Actions: []int{n}}})
}

// loseBody removes a content's file from the record, and says how many it was.
func (l *timeline) loseBody(hash string) (removed int) {
	l.Helper()
	err := filepath.WalkDir(filepath.Join(filepath.Dir(l.upper), "data", "bodies"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(strings.ReplaceAll(path, "/", ""), hash) {
			return err
		}
		removed++
		return os.Remove(path)
	})
	must.OK(l, err)
	return removed
}

// TestTakeBackWithALostBody: a file whose content is lost from the record is
// named, and all others are put back.
func TestTakeBackWithALostBody(t *testing.T) {
	l := newTimeline(t)
	big := strings.Repeat("lost\n", 20_000) // larger than what is in the database
	one := l.change("a "+big+"1\n", "b 1\n")
	two := l.change("a "+big+"2\n", "b 2\n")
	now := l.change("a " + big + "2\nlater\n")
	lost := content.Sum([]byte(big + "1\n"))
	removed := l.loseBody(lost.String())
	if removed != 1 {
		t.Fatalf("%d bodies were lost", removed)
	}
	p, err := l.takeBack([]Past{past(1, 1, one), past(2, one, two), past(3, two, now)}, 2)
	must.OK(t, err)
	if len(p.Shown.Files) != 1 || p.Shown.Files[0].Path != "b" || len(p.Shown.Problems) != 1 || p.Shown.Problems[0].Path != "a" {
		t.Errorf("it puts back %+v, and names %+v, %+v", p.Shown.Files, p.Shown.Problems, p.Shown.Conflicts)
	}
}

// TestPlanOfASelectionIsMadeAgain: what is written elsewhere after it was shown
// doesn't matter, what is written to its files does.
func TestPlanOfASelectionIsMadeAgain(t *testing.T) {
	l := newTimeline(t)
	one := l.change("a 1\n", "b 1\n")
	p, err := l.takeBack([]Past{past(1, 1, one)}, 1)
	must.OK(t, err)
	l.change("c 1\n")
	again, err := l.restorer.again(t.Context(), p, l.Last.Manifest)
	if err != nil || again.Shown.Hash != p.Shown.Hash || again.target.Has(nil, "c") == nil || again.target.Has(nil, "a") != nil {
		t.Errorf("it is %+v, %v", again.Shown, err)
	}
	l.change("b 2\n")
	if _, err := l.restorer.again(t.Context(), p, l.Last.Manifest); !errors.Is(err, ErrStale) {
		t.Errorf("a file of it that was written to gives %v", err)
	}
}

// BenchmarkTakeBackOne plans taking back one of 300 actions, each of which changed
// three files of a thousand, beside going back to just before the same one. Of
// both it is the plan, with the steps that it comes to.
func BenchmarkTakeBackOne(b *testing.B) {
	l := newRecorded(b)
	var all []Past
	for n := 1; n <= 300; n++ {
		var what []string
		for k := range 3 {
			what = append(what, fmt.Sprintf("d%d/f%d %d\n", (n*3+k)%10, (n*3+k)%900, n))
		}
		from := l.Last.ID
		l.did(what...)
		all = append(all, past(n, from, l.Last.ID))
	}
	plan := func(s Standing) func() time.Duration {
		return func() time.Duration {
			begin := time.Now()
			p, err := l.restorer.Plan(b.Context(), s)
			if err == nil {
				_, err = restore.NewPlan(b.Context(), l.lower, p.source, p.target, restore.Options{})
			}
			if err != nil || p.Files() == 0 || len(p.Shown.Problems) > 0 {
				b.Fatal(p, err)
			}
			return time.Since(begin)
		}
	}
	pairstest.Compare(b,
		pairstest.Way{Name: "one", Run: plan(Standing{Newest: l.Newest(), Actions: all, Selection: &api.Selection{Actions: []int{150}}})},
		pairstest.Way{Name: "before", Run: plan(Standing{Newest: l.Newest(), Actions: all[149:], ToBefore: 150, Checkpoint: all[149].Before})})
}
