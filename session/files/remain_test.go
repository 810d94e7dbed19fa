package files

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/restore"
	"stepbox/session/api"
)

// applied has the project get a file as the upper has it, with a time stamp so much later.
func (l *timeline) applied(name, text string, later time.Duration) {
	l.Helper()
	l.write(l.project, name, text)
	info, err := os.Stat(filepath.Join(l.upper, name))
	if err == nil {
		at := info.ModTime().Add(later)
		err = os.Chtimes(filepath.Join(l.project, name), at, at)
	}
	if err != nil {
		l.Fatal(err)
	}
}

// newLarge is a timeline whose project has a file that is too large to be kept.
func newLarge(t *testing.T) *timeline {
	l := newBareTimeline(t)
	l.write(l.project, "large", "")
	if err := os.Truncate(filepath.Join(l.project, "large"), 80<<20); err != nil {
		t.Fatal(err)
	}
	l.checkpoint()
	return l
}

// TestWhatIsntKept: an action isn't taken back while a file stands whose former content
// nobody has any more; the plan names it and doesn't list it.
func TestWhatIsntKept(t *testing.T) {
	for name, c := range map[string]struct {
		project string // what it has by now; "" is nothing
		later   time.Duration
		actions []int
		writes  []string
	}{
		"applied":                     {"1", 0, []int{}, []string{"a"}},
		"applied, with another stamp": {"1", time.Second, []int{}, []string{"a"}},
		"changed there":               {"the person's", 0, []int{}, []string{"a", "large"}},
		"deleted there":               {"", 0, []int{}, []string{"a"}},
		"as it was when first seen":   {"as it was", 0, []int{1}, []string{"a", "large"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLarge(t)
			one := l.change("large 1", "a 1")
			switch c.project {
			case "as it was":
			case "":
				if err := os.Remove(filepath.Join(l.project, "large")); err != nil {
					t.Fatal(err)
				}
			default:
				l.applied("large", c.project, c.later)
			}
			all := []Past{past(1, 1, one)}
			before := l.plan(Standing{ToBefore: 1, Checkpoint: 1, Actions: all})
			alone, err := l.takeBack(all, 1)
			if err != nil {
				t.Fatal(err)
			}
			for way, p := range map[string]*Plan{"to before it": before, "alone": alone} {
				var writes []string
				for _, f := range p.Shown.Files {
					writes = append(writes, f.Path)
				}
				named := len(p.Shown.Problems) == 1 && p.Shown.Problems[0].Path == "large"
				if !slices.Equal(p.Shown.Actions, c.actions) || !slices.Equal(writes, c.writes) || named != (len(c.actions) == 0) {
					t.Errorf("%s it takes back %v, writes %q, and says %+v", way, p.Shown.Actions, writes, p.Shown.Problems)
				}
			}
			if !slices.Equal(alone.whole, c.actions) && len(alone.whole)+len(c.actions) > 0 {
				t.Errorf("alone it takes back %v", alone.whole)
			}
		})
	}
}

// knowing is a session with those actions by now.
type knowing struct {
	*clerk
	now []Past
}

func (k *knowing) Since(context.Context, int) ([]Past, error) { return k.now, nil }

// TestLateActionOnWhatIsntKept: one that began since the plan was shown isn't taken back
// either.
func TestLateActionOnWhatIsntKept(t *testing.T) {
	l := newLarge(t)
	one := l.change("large 1", "a 1")
	l.applied("large", "1", 0)
	p := l.plan(Standing{ToBefore: 1, Checkpoint: 1, Actions: []Past{past(1, 1, one)}})
	two := l.change("large 22")
	l.applied("large", "22", 0)
	o, err := l.restorer.CarryOut(t.Context(), p, &knowing{&clerk{l, ""}, []Past{past(1, 1, one), past(2, one, two)}})
	if err != nil || len(o.Actions) > 0 {
		t.Errorf("it takes back %v, %v", o.Actions, err)
	}
}

// TestLinksAndModesAreLookedAt: not only contents can fail to come back.
func TestLinksAndModesAreLookedAt(t *testing.T) {
	l := newTimeline(t)
	link, file := filepath.Join(l.upper, "link"), filepath.Join(l.upper, "file")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Symlink("here", link))
	l.write(l.upper, "file", "x")
	before := l.checkpoint()
	must(os.Remove(link))
	must(os.Symlink("there", link))
	must(os.Chmod(file, 0o777))
	p := l.plan(Standing{ToBefore: 1, Checkpoint: before, Actions: []Past{past(1, before, l.checkpoint())}})
	l.box.lazy = true
	o, err := l.restorer.CarryOut(t.Context(), p, &clerk{l, ""})
	if err == nil || len(o.Failed) != 2 {
		t.Errorf("a link and a mode that stay give %v, %+v", err, o.Failed)
	}
}

// TestTakeBackAfterLettingGo: what the session let go of is the project's. Taking the
// session back leaves it, and doesn't take back the actions that made it.
func TestTakeBackAfterLettingGo(t *testing.T) {
	l := newRecorded(t, "x 0\n")
	zero := l.Last.ID
	l.did("x 0\n1\n")
	one := l.Last.ID
	l.did("x 0\n1\n2\n")
	two := l.Last.ID
	l.applied("x", "0\n1\n2\n", 0)
	gone, err := l.LetGo(t.Context(), nil, func(left *manifest.Manifest) error {
		root, err := l.Save(t.Context(), left)
		l.Last = l.Number(root, left, two)
		l.Remember(l.Last)
		l.tell(l.Last.ID)
		return err
	})
	if err != nil || len(gone) != 1 {
		t.Fatal(gone, err)
	}
	let := l.Last.ID
	l.did("y 1\n")
	all := []Past{past(1, zero, one), past(2, one, two), past(3, let, l.Last.ID)}
	p, err := l.restorer.Plan(t.Context(), Standing{Newest: l.Newest(), Actions: all, Selection: &api.Selection{}, Turned: l.Turns(0)})
	if err != nil || !slices.Equal(p.whole, []int{3}) {
		t.Errorf("x stays, and it takes back %v, %v", p.whole, err)
	}
}

// growing is a project's file to which somebody goes on appending.
type growing struct {
	*quiet
	host string
}

func (s *growing) Restore(context.Context, *restore.Plan, restore.Source) (restore.Report, error) {
	at := filepath.Join(s.upper, "large")
	info, err := os.Stat(s.host)
	if err == nil {
		err = os.Truncate(at, info.Size())
	}
	if err == nil {
		err = os.Chtimes(at, info.ModTime(), info.ModTime())
	}
	if err == nil {
		err = os.Truncate(s.host, info.Size()+1)
	}
	return restore.Report{}, err
}

// TestProjectMovesOnAfterARollBack: what came from the project may be another there a moment later.
func TestProjectMovesOnAfterARollBack(t *testing.T) {
	l := newLarge(t)
	one := l.change("large 1")
	p := l.plan(Standing{ToBefore: 1, Checkpoint: 1, Actions: []Past{past(1, 1, one)}})
	l.restorer.Box = &growing{l.box, filepath.Join(l.project, "large")}
	if o, err := l.restorer.CarryOut(t.Context(), p, &clerk{l, ""}); err != nil {
		t.Errorf("%v: %+v", err, o.Failed)
	}
}
