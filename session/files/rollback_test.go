package files

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/runner"
	"stepbox/runner/overlay/restore"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// quiet is a sandbox in which nothing runs. What it is to restore is noted; of that
// it removes what is to go.
type quiet struct {
	restless
	upper    string
	lazy     bool // it doesn't
	log      *[]string
	restored []string
}

func (*quiet) Activity() ([]runner.Activity, error) { return nil, nil }
func (*quiet) OpenFiles() runner.OpenFiles          { return runner.OpenFiles{} }

func (s *quiet) Restore(_ context.Context, plan *restore.Plan, _ restore.Source) (restore.Report, error) {
	*s.log = append(*s.log, "restore")
	s.restored = plan.Paths()
	for _, op := range plan.Ops {
		if op.Kind != restore.OpRemove || s.lazy {
			continue
		}
		if err := os.RemoveAll(filepath.Join(s.upper, op.Path)); err != nil {
			return restore.Report{}, err
		}
	}
	return restore.Report{}, nil
}

// timeline is a session's files with its checkpoints, and a restorer over them.
type timeline struct {
	*uppers
	Line
	restorer *Restorer
	box      *quiet
	log      []string // what was asked of the session and the sandbox
}

func newTimeline(t testing.TB) *timeline {
	l := newBareTimeline(t)
	l.checkpoint()
	return l
}

// newBareTimeline has no checkpoint yet, so that the project can be filled.
func newBareTimeline(t testing.TB) *timeline {
	l := &timeline{uppers: newUppers(t)}
	l.box = &quiet{upper: l.upper, log: &l.log}
	l.restorer = &Restorer{Taker: &Taker{Files: l.Files, Freezer: NewFreezer(l.box), Box: l.box, Log: slog.New(slog.DiscardHandler)}}
	return l
}

// checkpoint makes one of what is there now.
func (l *timeline) checkpoint() int64 {
	l.Helper()
	m := l.look()
	root, err := l.Save(l.Context(), m)
	must.OK(l, err)
	from := int64(0)
	if l.Last != nil {
		from = l.Last.ID
	}
	l.Last = l.Number(root, m, from)
	l.Remember(l.Last)
	return l.Last.ID
}

// change does what an agent's programs would: "name text" writes a file, "-name"
// removes one, "name/" makes a folder. It gives the checkpoint after it.
func (l *timeline) change(what ...string) int64 {
	l.Helper()
	for _, w := range what {
		name, text, _ := strings.Cut(w, " ")
		var err error
		switch gone, removed := strings.CutPrefix(name, "-"); {
		case removed:
			err = os.RemoveAll(filepath.Join(l.upper, gone))
		case strings.HasSuffix(name, "/"):
			err = os.Mkdir(filepath.Join(l.upper, name), 0o755)
		default:
			l.write(l.upper, name, text)
		}
		must.OK(l, err)
	}
	return l.checkpoint()
}

func (l *timeline) plan(now Standing) *Plan {
	l.Helper()
	now.Newest = l.Newest()
	p, err := l.restorer.Plan(l.Context(), now)
	must.OK(l, err)
	return p
}

// What a plan ends and takes back follows from how the actions stand.
func TestPlanOfActions(t *testing.T) {
	l := newTimeline(t)
	l.change("a 1")
	for name, c := range map[string]struct {
		past          []Past
		ends, actions []int
	}{
		"an edit and a command": {[]Past{{N: 1, State: api.ActionEnded, Files: 1}, {N: 2, State: api.ActionEnded, Files: 3}}, nil, []int{1, 2}},
		"one that runs":         {[]Past{{N: 1, State: api.ActionEnded, Files: 1}, {N: 2, State: api.ActionRunning}}, []int{2}, []int{1, 2}},
		"what one left running": {[]Past{{N: 1, State: api.ActionEnded, Lingers: true}}, []int{1}, []int{1}},
		"one that changed none": {[]Past{{N: 1, State: api.ActionEnded}, {N: 2, State: api.ActionDenied}, {N: 3, State: api.ActionHeld}}, nil, []int{}},
		"one taken back before": {[]Past{{N: 1, State: api.ActionEnded, Files: 1, TakenBack: true}, {N: 2, State: api.ActionRunning, TakenBack: true}}, nil, []int{}},
		"another agent":         {[]Past{{N: 1, State: api.ActionRunning, Apart: true}, {N: 2, State: api.ActionEnded, Files: 1, Apart: true}}, nil, []int{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := l.plan(Standing{ToBefore: 1, Checkpoint: 1, Actions: c.past})
			if !slices.Equal(p.Shown.Ends, c.ends) || !slices.Equal(p.Shown.Actions, c.actions) {
				t.Errorf("it ends %v and takes back %v, want %v and %v", p.Shown.Ends, p.Shown.Actions, c.ends, c.actions)
			}
			if p.Files() != 1 || p.Shown.Files[0].Path != "a" || p.Shown.Files[0].Status != "D" {
				t.Errorf("it lists %+v", p.Shown.Files)
			}
		})
	}
}

// A plan's hash names what goes back to what, and what ends.
func TestPlanHash(t *testing.T) {
	l := newTimeline(t)
	first := l.change("a 1")
	l.change("a 2", "b 2")
	runs := []Past{{N: 3, State: api.ActionRunning}}
	hashes := map[string]string{}
	for name, s := range map[string]Standing{
		"one":               {ToBefore: 1, Checkpoint: 1},
		"another action":    {ToBefore: 2, Checkpoint: 1},
		"another state":     {ToBefore: 1, Checkpoint: first},
		"with what it ends": {ToBefore: 1, Checkpoint: 1, Actions: runs},
	} {
		h := l.plan(s).Shown.Hash
		if other, ok := hashes[h]; ok {
			t.Errorf("%s has the hash of %s", name, other)
		}
		hashes[h] = name
		if again := l.plan(s).Shown.Hash; again != h {
			t.Errorf("%s has two hashes, %s and %s", name, h, again)
		}
	}
}

// What was written since a plan was shown stays, unless it is in the way.
func TestWhatWasWrittenSinceAPlan(t *testing.T) {
	for name, c := range map[string]struct {
		before, shown, since []string
		left                 []string
		stale                bool
	}{
		"nothing":                          {nil, []string{"a 1"}, nil, nil, false},
		"another file":                     {nil, []string{"a 1"}, []string{"b 1"}, []string{"b"}, false},
		"a shown file again":               {[]string{"a 0"}, []string{"a 1"}, []string{"a 2"}, nil, false},
		"a shown file went":                {[]string{"a 0"}, []string{"a 1"}, []string{"-a"}, nil, false},
		"in a folder that goes":            {nil, []string{"d/a 1"}, []string{"d/b 1"}, []string{"d/b"}, false},
		"in place of what comes back":      {[]string{"a 0"}, []string{"-a"}, []string{"a/b 1"}, nil, true},
		"a file where a folder comes back": {[]string{"d/a 0"}, []string{"-d/a"}, []string{"-d", "d 1"}, nil, true},
		"a folder where a file came":       {nil, []string{"a 1"}, []string{"-a", "a/"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newTimeline(t)
			target := l.change(c.before...)
			l.change(c.shown...)
			p := l.plan(Standing{ToBefore: 1, Checkpoint: target})
			l.change(c.since...)
			left, err := p.meanwhile(t.Context(), l.Files, l.look())
			if stale := errors.Is(err, ErrStale); stale != c.stale || err != nil && !stale || !slices.Equal(left, c.left) {
				t.Errorf("%q stay (%v), want %q", left, err, c.left)
			}
		})
	}
}

// Actions that began since a plan was shown are taken back too, but for those
// whose changes stay.
func TestTakenBack(t *testing.T) {
	const shown = 10 // the newest checkpoint when the plan was made
	stays := Span{11, 12}
	for name, c := range map[string]struct {
		planned []int
		now     []Past
		want    []int
	}{
		"as planned":                 {[]int{1, 2}, []Past{{N: 1, Spans: []Span{{1, 2}}}, {N: 2, State: api.ActionRunning}}, []int{1, 2}},
		"one that ended since":       {[]int{1}, []Past{{N: 2, State: api.ActionEnded, Spans: []Span{{10, 11}}}}, []int{1, 2}},
		"one that runs":              {[]int{1}, []Past{{N: 2, State: api.ActionRunning, Spans: []Span{{10, 11}}}}, []int{1}},
		"one that left some running": {[]int{1}, []Past{{N: 2, State: api.ActionEnded, Lingers: true, Spans: []Span{{10, 11}}}}, []int{1}},
		"another agent":              {[]int{1}, []Past{{N: 2, State: api.ActionEnded, Apart: true, Spans: []Span{{10, 11}}}}, []int{1}},
		"one whose changes stay":     {[]int{1}, []Past{{N: 2, State: api.ActionEnded, Spans: []Span{{10, 11}, stays}}}, []int{1}},
		"a planned one's stay":       {[]int{1, 2}, []Past{{N: 2, State: api.ActionRunning, Spans: []Span{{3, 4}, stays}}}, []int{1}},
		"one that stayed before":     {[]int{1}, []Past{{N: 2, State: api.ActionEnded, Spans: []Span{{3, 4}}}}, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Plan{Standing: Standing{Newest: shown}, Shown: api.RollbackPlan{Actions: slices.Clone(c.planned)}}
			got, err := p.takenBack(c.now, func(s Span) (bool, error) { return s == stays, nil })
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("it takes back %v (%v), want %v", got, err, c.want)
			}
			if !slices.Equal(p.Shown.Actions, c.planned) {
				t.Errorf("the plan itself changed to %v", p.Shown.Actions)
			}
		})
	}
}

// clerk is a session that notes what it is asked, and refuses one thing.
type clerk struct {
	*timeline
	refuse string
}

var errRefused = errors.New("refused")

func (c *clerk) note(what string) error {
	c.log = append(c.log, what)
	if c.refuse == what {
		return errRefused
	}
	return nil
}

func (c *clerk) Last() *Checkpoint                          { return c.Line.Last }
func (c *clerk) Account(context.Context, Taken) error       { return c.note("account") }
func (c *clerk) Since(context.Context, int) ([]Past, error) { return nil, c.note("since") }
func (c *clerk) Begin(_ context.Context, o *Outcome) error {
	o.Begun = c.refuse != "begin"
	return c.note("begin")
}
func (c *clerk) End(context.Context, int) error { return c.note("end") }

// What is written over is accounted for first, what ends is ended first, and
// nothing happens that isn't recorded as begun. All is under one freeze.
func TestCarryOutInOrder(t *testing.T) {
	for refuse, want := range map[string][]string{
		"":        {"account", "since", "begin", "end", "restore"},
		"account": {"account"},
		"begin":   {"account", "since", "begin"},
		"end":     {"account", "since", "begin", "end"},
	} {
		t.Run("refused "+refuse, func(t *testing.T) {
			l := newTimeline(t)
			l.change("a 1")
			p := l.plan(Standing{ToBefore: 1, Checkpoint: 1, Actions: []Past{{N: 1, State: api.ActionRunning}}})
			o, err := l.restorer.CarryOut(t.Context(), p, &clerk{l, refuse})
			if errors.Is(err, errRefused) != (refuse != "") || err != nil && refuse == "" || !slices.Equal(l.log, want) {
				t.Errorf("%v (%v), want %v", l.log, err, want)
			}
			if refuse == "" && (!slices.Contains(l.box.restored, "a") || !slices.Equal(o.Killed, []int{1}) || o.After == nil) {
				t.Errorf("it restored %q, ended %v and left %+v", l.box.restored, o.Killed, o.After)
			}
			if l.box.frozen {
				t.Error("the agent is frozen still")
			}
		})
	}
}

// What isn't as it was to be after a roll back isn't said to be taken back.
func TestRollBackIsLookedAt(t *testing.T) {
	l := newTimeline(t)
	l.change("a 1")
	p := l.plan(Standing{ToBefore: 1, Checkpoint: 1})
	l.box.lazy = true
	o, err := l.restorer.CarryOut(t.Context(), p, &clerk{l, ""})
	if err == nil || len(o.Failed) != 1 || o.Failed[0].Path != "a" {
		t.Errorf("a file that stayed gives %v, %+v", err, o.Failed)
	}
}
