// Package bisect finds the action of a session after which a command fails, as git
// bisect finds a commit: it runs the command in throw-away sandboxes on the project as
// it was after this action and that one.
//
// The states are those at the ends of actions that changed files, on the way that led
// to the newest one: what was rolled back isn't on it. Home, /tmp and the network are
// what a throw-away sandbox has, whatever the session had: an empty home, an empty
// /tmp, no network. Files that can't be had as they were then are named.
//
// A Bisector is safe for concurrent use.
package bisect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/ledger"
	"stepbox/session/tree"
	"stepbox/store"
)

// Bounds of a bisection.
const (
	maxCommand = 10 << 10 // bytes
	maxJobs    = 16
)

// Sandbox runs a command on a state of the project.
type Sandbox interface {
	Check(ctx context.Context, state *manifest.Manifest, command string, told func(line string)) (api.CheckResult, error)
}

// Bisector bisects recorded sessions, live ones too up to their newest checkpoint.
type Bisector struct {
	History *files.History
	Trees   tree.Source
	Sandbox func(s api.Session) Sandbox
	// Same says why a session's folder isn't the one that it worked on; nil: it is.
	Same func(s api.Session) error
}

// Bisect finds the action after which a command fails. It tells how that goes, from
// one goroutine at a time, until it returns.
func (b *Bisector) Bisect(ctx context.Context, id string, r api.BisectRequest, tell func(api.BisectProgress)) (api.Bisected, error) {
	out := api.Bisected{}
	if strings.TrimSpace(r.Command) == "" || len(r.Command) > maxCommand {
		return out, api.Problemf(api.CodeInvalid, "a command is needed, of at most %d bytes", maxCommand)
	}
	session, err := b.History.Session(ctx, id)
	if err == nil {
		err = b.Same(session)
	}
	if err != nil {
		return out, err
	}
	steps, err := b.steps(ctx, id, r.From, r.To)
	if err != nil {
		return out, err
	}
	if out.All = len(steps); out.All == 0 {
		out.No = "no action changed any files in between"
		return out, nil
	}
	t := &tester{Bisector: b, session: session, command: r.Command, steps: steps, sandbox: b.Sandbox(session), tell: tell, failed: make(map[int]api.CheckResult), inexact: make(map[string]string)}
	tell(api.BisectProgress{Steps: steps})
	s := search{last: len(steps), jobs: min(cmp.Or(max(r.Jobs, 0), usual()), maxJobs), test: t.test}
	ok, err := s.ends(ctx)
	if err != nil {
		return out, err
	}
	if !ok {
		at, want, got := "at the beginning", "pass", s.known[0]
		if got == passes {
			at, want, got = "at the end", "fail", s.known[s.last]
		}
		out.No = fmt.Sprintf("the command must pass at the beginning and fail at the end; %s it doesn't %s: %s", at, want, words(got))
	} else {
		low, high, err := s.between(ctx)
		if err == nil && !r.Once {
			low, high, err = s.sure(ctx, low, high)
		}
		if err != nil {
			return out, err
		}
		out.Steps, out.Failed = steps[low:high], t.failed[high]
	}
	out.Runs, out.Again, out.Flaky = s.runs, s.again, s.flaky
	var gaps []manifest.Problem
	for _, path := range slices.Sorted(maps.Keys(t.inexact)) {
		gaps = append(gaps, manifest.Problem{Path: path, Text: t.inexact[path]})
	}
	out.Inexact, out.InexactMore = tree.Told(gaps)
	return out, nil
}

func words(v verdict) string {
	if v == skipped {
		return "it says with 125 that it can't tell"
	}
	return "it " + v.String()
}

// usual is how many runs there are at once: a command may use several processors itself.
func usual() int { return max(1, min(4, runtime.NumCPU()/2)) }

// steps are what led from one moment to another. An action that changed files several
// times is one step, and states that have the same files are one: see files.Same.
func (b *Bisector) steps(ctx context.Context, id string, from, to api.Moment) ([]api.BisectStep, error) {
	first, err := b.History.At(ctx, id, cmp.Or(from, "start"))
	if err != nil {
		return nil, err
	}
	last, err := b.History.At(ctx, id, to)
	if err != nil {
		return nil, err
	}
	past, err := ledger.Recall(ctx, b.History.Store, id)
	if err != nil {
		return nil, err
	}
	c := files.NewCourse(past)
	var way []int64 // checkpoints, from the last one back
	for at := last.Checkpoint; at > first.Checkpoint && c.Index(at) >= 0; at = c.From(at) {
		way = append(way, at)
	}
	slices.Reverse(way)
	begin, before := cmp.Or(from, "start"), first.Checkpoint
	f := files.Recorded(b.History.Store, id)
	var steps []api.BisectStep
	for i, at := range way {
		made := c.Made[at]
		if i+1 < len(way) && len(made) > 0 && slices.Equal(made, c.Made[way[i+1]]) {
			continue // in the middle of what they did
		}
		same, err := b.same(ctx, f, c, before, at)
		if err != nil {
			return nil, err
		}
		if !same {
			end, err := b.History.Taken(ctx, id, at)
			if err != nil {
				return nil, err
			}
			steps = append(steps, step(past, c, at, begin, end))
			begin, before = end, at
		}
	}
	return b.resumed(ctx, id, steps, first.Seq, last.Seq, begin)
}

// resumed adds steps for what was changed in the project while the session didn't run:
// from where it goes on the agent sees that. Begin is where the last of the steps ends.
func (b *Bisector) resumed(ctx context.Context, id string, steps []api.BisectStep, from, to uint64, begin api.Moment) ([]api.BisectStep, error) {
	s, err := b.History.Session(ctx, id)
	if err != nil || s.Resumed == 0 {
		return steps, err
	}
	resumed, err := b.History.Store.Named(ctx, id, store.KindSession, "session.resumed")
	for _, e := range resumed {
		if e.Seq <= from || e.Seq > to {
			continue
		}
		add := api.BisectStep{From: begin, To: api.MomentOf(e.Seq), Title: "what was changed in the project before the session was resumed"}
		i := slices.IndexFunc(steps, func(s api.BisectStep) bool {
			end, err := s.To.Parse()
			return err == nil && end.Event > e.Seq
		})
		if i < 0 {
			i, begin = len(steps), add.To
		} else {
			add.From, steps[i].From = steps[i].From, add.To
		}
		steps = slices.Insert(steps, i, add)
	}
	return steps, err
}

const index = ".git/index"

// same says whether the files are the same at two checkpoints; 0 is the project as the
// session first saw it. Actions are known to have changed something, which is looked
// at only when it may have been nothing but git's index: all else costs a reading of
// both states.
func (b *Bisector) same(ctx context.Context, f *files.Files, c *files.Course, from, to int64) (bool, error) {
	if i, j := c.Index(from), c.Index(to); i >= 0 && len(c.Made[to]) > 0 {
		was, werr := f.Along(ctx, c.All[i].Root, index)
		is, err := f.Along(ctx, c.All[j].Root, index)
		if err = errors.Join(werr, err); err != nil {
			return false, err
		}
		if a, b := was.Has(nil, index), is.Has(nil, index); b == nil || a != nil && a.Hash == b.Hash {
			return false, nil
		}
	}
	is, err := f.At(ctx, to)
	if err != nil {
		return false, err
	}
	var was *manifest.Manifest
	if from != 0 {
		if was, err = f.At(ctx, from); err != nil {
			return false, err
		}
	}
	return f.Same(ctx, was, is)
}

func step(past *ledger.Past, c *files.Course, at int64, from, to api.Moment) api.BisectStep {
	s := api.BisectStep{Actions: c.Made[at], From: from, To: to, Title: "what no action changed"}
	if r := c.Back[at]; r != nil {
		s.Title, _ = r.Words()
	}
	for _, a := range past.Actions {
		if len(s.Actions) > 0 && a.N == s.Actions[0] {
			s.Title, s.Said = a.Title, a.Said()
		}
	}
	return s
}

// tester runs the command on states.
type tester struct {
	*Bisector
	session api.Session
	command string
	steps   []api.BisectStep
	sandbox Sandbox

	mu      sync.Mutex
	tell    func(api.BisectProgress) // guarded by mu
	failed  map[int]api.CheckResult  // guarded by mu
	inexact map[string]string        // guarded by mu
}

// test is search's.
func (t *tester) test(ctx context.Context, state int, again bool) (verdict, error) {
	at := t.steps[0].From
	if state > 0 {
		at = t.steps[state-1].To
	}
	files, err := t.lay(ctx, at)
	var r api.CheckResult
	if err == nil {
		r, err = t.sandbox.Check(ctx, files, t.command, func(line string) { t.say(api.BisectProgress{Line: line, State: state}) })
	}
	run := api.BisectRun{State: state, Again: again, Check: r}
	if ctx.Err() != nil {
		run.Stopped = true
		t.say(api.BisectProgress{Run: &run})
		return unknown, ctx.Err()
	}
	if err != nil {
		return unknown, err
	}
	v, err := judge(r, state == 0)
	if err != nil {
		return unknown, err
	}
	run.Result = v.String()
	t.mu.Lock()
	if v == fails {
		t.failed[state] = r
	}
	t.mu.Unlock()
	t.say(api.BisectProgress{Run: &run})
	return v, nil
}

func (t *tester) say(p api.BisectProgress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tell(p)
}

// lay is the project at a moment, over the folder as it is now.
func (t *tester) lay(ctx context.Context, at api.Moment) (*manifest.Manifest, error) {
	whole, err := t.Trees.In(ctx, &t.History.History, t.session.ID, at)
	if err != nil {
		return nil, err
	}
	defer whole.Close()
	over, gaps, err := whole.Over(ctx, false)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, g := range gaps {
		t.inexact[g.Path] = g.Text
	}
	return over, err
}

// judge says what a run says of its state. As git bisect run has it, 0 is good, 125
// can't tell, 1 to 127 is bad, and from 128 on the command itself has failed. It can't
// have been meant either if it can't be run where it should pass.
func judge(r api.CheckResult, base bool) (verdict, error) {
	switch {
	case r.Failure != "" || r.Exit == nil:
		return unknown, fmt.Errorf("the command wasn't run to its end: %s", cmp.Or(r.Failure, "how it ended isn't known"))
	case r.Exit.Signal != "" || r.Exit.Code >= 128:
		return unknown, api.Problemf(api.CodeInvalid, "the command was ended by a signal (%s), which says nothing of the files; have it exit with 1 if that is the fault that is looked for", r.Exit.Words())
	case base && (r.Exit.Code == 126 || r.Exit.Code == 127):
		return unknown, api.Problemf(api.CodeInvalid, "the command can't be run at the beginning (exit %d): %s", r.Exit.Code, lastLine(r.Output))
	case r.Exit.Code == 0:
		return passes, nil
	case r.Exit.Code == 125:
		return skipped, nil
	}
	return fails, nil
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}
