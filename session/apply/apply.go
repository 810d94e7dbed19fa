// Package apply writes a session's changes to the person's project folder, after
// showing what that means, and takes it back.
//
// A plan (plan.go) compares three states of each path that the session changed:
// what the project had when the session first touched it, what is wanted, and what
// the project has now. Where the project still has the first, it is written; where
// it changed since, that is a conflict (conflict.go), which stays as it is unless a
// person says otherwise. What is dangerous about a change is said in words
// (danger.go). A plan's hash covers all that a person was shown: one that would
// come out differently by now is refused.
//
// Contents come from the record and never from the session's own files, so that
// whatever still writes there makes no difference. session/project does the
// writing, under a journal. What was applied stands in the session's record, which
// belongs to its supervisor while the session lives, and else to whoever locks it
// (Owner). Recover settles what a killed process left.
//
// An Applier is safe for concurrent use. What comes from the session (paths,
// contents) is hostile: bounded and escaped here, and kept in the project by
// session/project.
package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"stepbox/policy"
	"stepbox/policy/git"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/project"
	"stepbox/session/scratch"
	"stepbox/store"
)

// Applier plans applies and carries them out.
type Applier struct {
	Store    *store.Store
	History  *files.History
	Journals project.Journals

	// Owner says who has a session.
	Owner func(id string) Owner
	// Sandbox makes throw-away sandboxes of a session's project.
	Sandbox func(s api.Session) Sandbox
	// Same says why a session's folder isn't the one that it worked on, but another of
	// its name; nil when nothing is known against it.
	Same func(s api.Session) error
	// Sound says what is wrong with the record of a session that is over, which tells of
	// its files and is recorded more behind; nil: nobody looks.
	Sound func(ctx context.Context, id string) error
	// Applied hears of what was written to a project; nil for nobody.
	Applied func(ctx context.Context, s api.Session, steps []project.Step)
	// Rules are what policies say of a session's project by now; nil: nothing.
	Rules func(s api.Session) (*policy.Policy, error)
	// Person is whose project it is: where git looks for settings.
	Person git.Person

	under sync.RWMutex // read-locked while something is written
	mu    sync.Mutex
	shown []*plan          // guarded by mu; those shown last, newest last
	wrote map[string]wrote // guarded by mu; what applies wrote, by journal
	held  int              // guarded by mu; how many paths that are
}

func (a *Applier) open(s api.Session) (*project.Folder, error) {
	if a.Same != nil {
		if err := a.Same(s); err != nil {
			return nil, err
		}
	}
	return project.Open(s.Folder)
}

// Owner is who has a session while something of it is applied: its supervisor, or
// this process in the place of one.
type Owner interface {
	// Hold keeps the session from ending, and others from applying something of
	// it, until it is released; CodeBusy when somebody else has it.
	Hold(ctx context.Context) (release func(), err error)
	// Settle makes sure that all changes so far are in a checkpoint.
	Settle(ctx context.Context) error
	// Record commits an apply as it is after an event, and what count makes of
	// the session's numbers.
	Record(ctx context.Context, event string, a api.Apply, count func(*api.Session)) error
}

// Sandbox runs checks, and git where the agent could write. See package scratch.
type Sandbox interface {
	Check(ctx context.Context, state *manifest.Manifest, command string, told func(line string)) (api.CheckResult, error)
	Commits(ctx context.Context, state *manifest.Manifest, shown scratch.Shown) (scratch.Commits, error)
	Fetch(ctx context.Context, session string, state *manifest.Manifest, shown []api.Commit) (scratch.Fetched, error)
}

// counting brings a session's numbers up to an event of an apply. What the project
// of one that is over lacks then is looked up: a person may have merged some of it.
func (a *Applier) counting(ctx context.Context, id, event string) func(*api.Session) {
	more := map[string]int{eventDone: 1, eventUndone: -1}[event]
	lacks, err := 0, error(nil)
	if more != 0 {
		lacks, err = a.lacks(context.WithoutCancel(ctx), id)
	}
	return func(s *api.Session) {
		s.Applies = max(s.Applies+more, 0)
		if more != 0 && err == nil {
			s.Unapplied = lacks
		}
	}
}

// lacks counts the changes of a session that is over which its project hasn't got,
// but for what git ignores or has to itself.
func (a *Applier) lacks(ctx context.Context, id string) (int, error) {
	s, err := a.History.Session(ctx, id)
	if err != nil || s.Live() {
		return 0, err // at its end it is counted anyway
	}
	all, err := a.History.Select(ctx, id, api.Selection{})
	if err != nil || all.To == nil {
		return 0, err
	}
	folder, err := a.open(s)
	if err != nil {
		return 0, err
	}
	defer folder.Close()
	n, err := all.Files.Unapplied(ctx, all.To, func(ctx context.Context, path string, now *diff.File) (bool, error) {
		has, err := folder.Look(ctx, path)
		return err == nil && has.Same(files.StateOf(now)), nil // what can't be looked at isn't known to be there
	})
	if err != nil {
		return 0, err
	}
	more, err := a.Returned(ctx, s, all.Files, all.To, all.Checkpoint)
	return n + len(more), err
}

// Wait waits until nothing is being written any more; contexts end what is.
func (a *Applier) Wait() {
	a.under.Lock()
	defer a.under.Unlock()
}

// maxShown is how many plans are remembered with the state that they are of.
const maxShown = 8

// ErrStale says that an apply would do something else by now than was shown.
var ErrStale = api.Problemf(api.CodeStale, "the project folder or the session has changed since the plan was made; look at it again")

// ApplyPlan says what an apply would do.
func (a *Applier) ApplyPlan(ctx context.Context, id string, r api.ApplyRequest) (api.ApplyPlan, error) {
	p, err := a.plan(ctx, id, a.Owner(id), r)
	if err != nil {
		return api.ApplyPlan{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.shown = slices.DeleteFunc(a.shown, func(q *plan) bool { return q.session.ID == id && q.Hash == p.Hash })
	a.shown = append(a.shown, p)
	a.shown = a.shown[max(len(a.shown)-maxShown, 0):]
	return p.ApplyPlan, nil
}

// plan plans on the newest state of a session.
func (a *Applier) plan(ctx context.Context, id string, o Owner, r api.ApplyRequest) (*plan, error) {
	s, err := a.History.Session(ctx, id)
	if err == nil {
		err = o.Settle(ctx)
	}
	if err != nil {
		return nil, err
	}
	before, err := a.before(ctx, id)
	if err != nil {
		return nil, err
	}
	sel, err := a.History.SelectOver(ctx, id, r.Selection, before)
	if err != nil {
		return nil, err
	}
	return a.sound(ctx, s, sel, r)
}

// sound plans, and has nothing written of a record that isn't what was recorded. That
// takes seconds of a long one, so for what is only shown it is looked once.
func (a *Applier) sound(ctx context.Context, s api.Session, sel files.Selected, r api.ApplyRequest) (*plan, error) {
	p, err := a.planOf(ctx, s, sel, r)
	a.mu.Lock()
	was := slices.ContainsFunc(a.shown, func(q *plan) bool { return q.session.ID == s.ID && q.Blocked == "" })
	a.mu.Unlock()
	if err != nil || a.Sound == nil || was || r.Hash != "" { // then it is held
		return p, err
	}
	var wrong *api.Problem
	if err := a.Sound(ctx, s.ID); errors.As(err, &wrong) {
		p.Blocked = wrong.Message
	} else if err != nil {
		return nil, err
	}
	return p, nil
}

// again makes the plan that was shown once more: on the state that it was of if
// that is remembered, else on the newest.
func (a *Applier) again(ctx context.Context, id string, o Owner, r api.ApplyRequest) (*plan, error) {
	a.mu.Lock()
	var was *plan
	for _, p := range a.shown {
		if p.session.ID == id && p.Hash == r.Hash {
			was = p
		}
	}
	a.mu.Unlock()
	var p *plan
	var err error
	if was != nil {
		p, err = a.planOf(ctx, was.session, was.sel, r)
	} else {
		p, err = a.plan(ctx, id, o, r)
	}
	switch {
	case err != nil:
		return nil, err
	case p.Hash != r.Hash:
		return nil, ErrStale
	case p.Blocked != "":
		return nil, api.Problemf(api.CodeBusy, "nothing was applied: %s", p.Blocked)
	}
	return p, nil
}

// own has a session that nothing else is recorded of, and whose record is sound: what is
// recorded behind it is made of that, and signed.
func (a *Applier) own(ctx context.Context, id string) (o Owner, release func(), err error) {
	o = a.Owner(id)
	if release, err = o.Hold(ctx); err != nil || a.Sound == nil {
		return o, release, err
	}
	if err := a.Sound(ctx, id); err != nil {
		release()
		return nil, nil, err
	}
	return o, release, nil
}

// hold has a session for writing, with nothing left half-way, until release.
func (a *Applier) hold(ctx context.Context, id string) (o Owner, release func(), err error) {
	a.under.RLock()
	o, held, err := a.own(ctx, id)
	if err != nil {
		a.under.RUnlock()
		return nil, nil, err
	}
	release = func() { held(); a.under.RUnlock() }
	if _, err := a.settle(ctx, id, o); err != nil {
		release()
		return nil, nil, err
	}
	return o, release, nil
}

// Apply carries out a plan that was shown.
func (a *Applier) Apply(ctx context.Context, id string, r api.ApplyRequest, tell func(api.Progress)) (api.Apply, error) {
	if r.Hash == "" {
		return api.Apply{}, api.Problemf(api.CodeInvalid, "an apply names the hash of the plan that was shown")
	}
	o, release, err := a.hold(ctx, id)
	if err != nil {
		return api.Apply{}, err
	}
	defer release()
	p, err := a.again(ctx, id, o, r)
	if err != nil {
		return api.Apply{}, err
	}
	earlier, err := a.History.Applies(ctx, id)
	if err != nil {
		return api.Apply{}, err
	}
	rec := p.record(r, earlier)
	if err := a.check(ctx, p, &rec, tell); err != nil {
		return rec, errors.Join(err, a.failed(ctx, o, &rec, err))
	}
	if err := a.carry(ctx, p, o, &rec, tell); err != nil {
		return rec, err
	}
	if r.Commits {
		tell(api.Progress{Stage: "fetch"})
		a.fetch(ctx, p, &rec)
	}
	end := context.WithoutCancel(ctx)
	if err := o.Record(end, eventDone, rec, a.counting(end, id, eventDone)); err != nil {
		return rec, err
	}
	if a.Applied != nil {
		a.Applied(end, p.session, p.steps)
	}
	return rec, nil
}

// carry writes the steps of a plan, if it has any.
func (a *Applier) carry(ctx context.Context, p *plan, o Owner, rec *api.Apply, tell func(api.Progress)) error {
	if err := o.Record(ctx, eventStarted, *rec, a.counting(ctx, p.session.ID, eventStarted)); err != nil {
		return err
	}
	var err error
	if len(p.steps) > 0 {
		err = a.write(ctx, p, rec, tell)
	}
	if err != nil {
		err = inWords(err)
		return errors.Join(err, a.failed(ctx, o, rec, err))
	}
	rec.State = api.ApplyDone
	return nil
}

func (a *Applier) write(ctx context.Context, p *plan, rec *api.Apply, tell func(api.Progress)) error {
	if err := os.MkdirAll(a.Journals.Dir, 0o700); err != nil {
		return err
	}
	f, err := a.open(p.session)
	if err != nil {
		return err
	}
	defer f.Close()
	left, err := f.Carry(ctx, a.Journals, rec.Journal, p.steps, throttled("write", tell))
	rec.Left = files.Troubles(left[:min(len(left), maxPaths)])
	return err
}

// fetch has the agent's commits put into the real repositories. The files are
// written by then: that this fails is said in the record, and can be tried again.
func (a *Applier) fetch(ctx context.Context, p *plan, rec *api.Apply) {
	got, err := a.Sandbox(p.session).Fetch(ctx, p.session.ID, p.all, p.Commits)
	if err != nil {
		rec.Failure = "the commits couldn't be fetched: " + api.Escape(api.Trim(err.Error(), maxReason))
		return
	}
	rec.Fetched, rec.Ref, rec.How = got.List, got.Ref, got.How
	rec.Left = append(rec.Left, got.Notes...)
	if got.Failed > 0 {
		rec.Failure = "not all of the agent's commits could be fetched"
	}
}

// failed records that an apply came to nothing. The error is what is told; one
// that its record meets comes on top.
func (a *Applier) failed(ctx context.Context, o Owner, rec *api.Apply, why error) error {
	rec.State, rec.Failure = api.ApplyFailed, api.Escape(api.Trim(why.Error(), maxReason))
	return o.Record(context.WithoutCancel(ctx), eventFailed, *rec, a.counting(ctx, "", eventFailed))
}

// check runs the checks of a plan one after the other; the first that fails ends
// it. Their results are in the record either way.
func (a *Applier) check(ctx context.Context, p *plan, rec *api.Apply, tell func(api.Progress)) error {
	if len(p.checks) == 0 {
		return nil
	}
	box := a.Sandbox(p.session)
	for _, c := range p.checks {
		say := func(line string) {
			tell(api.Progress{Stage: "check", Text: strings.TrimSuffix(api.Escape(api.Trim(c, 200))+": "+line, ": ")})
		}
		say("")
		result, err := box.Check(ctx, p.state, c, say)
		if err != nil {
			return err
		}
		rec.Checks = append(rec.Checks, result)
		if !result.Passed() {
			return &CheckError{result}
		}
	}
	return nil
}

// CheckError says that a check failed, so that nothing was applied.
type CheckError struct{ api.CheckResult }

func (e *CheckError) Error() string {
	return fmt.Sprintf("nothing was applied: the check failed: %s (%s)", e.Command, cmp.Or(e.Failure, e.Exit.Words()))
}

// As makes it an answer's Problem, errors.As.
func (e *CheckError) As(target any) bool {
	p, ok := target.(**api.Problem)
	if ok {
		*p = &api.Problem{Code: api.CodeChecked, Message: e.Error()}
	}
	return ok
}

// inWords are the errors of writing for a person.
func inWords(err error) error {
	var refused *project.RefusedError
	switch {
	case errors.As(err, &refused):
		c := refused.Conflicts[0]
		more := ""
		if n := len(refused.Conflicts) - 1; n > 0 {
			more = fmt.Sprintf(" (and %d more)", n)
		}
		return api.Problemf(api.CodeStale, "nothing was written: %s: %s%s; look at the plan again", api.Escape(c.Path), api.Escape(c.Why), more)
	case errors.Is(err, project.ErrBusy), errors.Is(err, project.ErrUnfinished), errors.Is(err, project.ErrMoved):
		return api.Problemf(api.CodeBusy, "%s", api.Escape(err.Error()))
	case errors.Is(err, context.Canceled):
		return api.Problemf(api.CodeBusy, "it was stopped; the project folder is as it was")
	}
	return err
}

// throttled tells how writing goes, now and then.
func throttled(stage string, tell func(api.Progress)) func(project.Progress) {
	var last time.Time
	said := ""
	return func(p project.Progress) {
		if p.Stage == said && p.Part < p.Whole && time.Since(last) < toldEvery {
			return
		}
		said, last = p.Stage, time.Now()
		tell(api.Progress{Stage: stage, Text: p.Stage, Part: p.Part, Whole: p.Whole})
	}
}

const (
	toldEvery = 100 * time.Millisecond
	maxReason = 500  // bytes of what is said of a file, or of a failure
	maxListed = 5000 // files that a plan lists; further ones are counted
	maxPaths  = 100  // that an apply's record names
)
