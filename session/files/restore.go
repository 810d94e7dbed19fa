package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/restore"
	"stepbox/session/api"
	"stepbox/session/ledger"
	"stepbox/store"
)

// Restorer plans roll backs and carries them out.
type Restorer struct {
	*Taker

	// Project is the folder, which is looked at for words on what it has by now.
	Project string

	// Outer is the upper folder of a repository that lies outside of the project,
	// which no checkpoint has. It needn't be there.
	Outer string

	// Git says whether a path is in a repository that the session took over from the
	// project, and whether it is one of its objects; nil: there is none.
	Git func(path string) (in, object bool)
}

// ofGit is what a roll back leaves as git has it. Objects stay: one that nothing names
// harms nobody, and others may have come to need it. What git was before it was taken over
// from the project anew never comes again: it would be mixed with what git is by now.
type ofGit struct {
	in   func(path string) (in, object bool) // see Restorer; nil: nothing
	past bool                                // git was taken over anew since
}

// stays says whether a change isn't carried out.
func (g ofGit) stays(c *diff.Change) bool {
	kept, object := g.keeps(c.Path)
	return kept || object && (c.New == nil || c.From != "")
}

// keeps says whether a path stays as git has it by now, and whether it is an object of git's.
func (g ofGit) keeps(path string) (kept, object bool) {
	if g.in == nil {
		return false, false
	}
	in, object := g.in(path)
	return in && g.past, object
}

// earlier says whether git was taken over anew since a checkpoint.
func (s *Standing) earlier(checkpoint int64) bool {
	return slices.ContainsFunc(s.Turned, func(before int64) bool { return before >= checkpoint })
}

// gitGoesOn says why what is in git's own folder isn't rolled back.
const gitGoesOn = "what git is was taken over from the project anew since: it stays as it is here"

// committed says whether git wrote references to the repository outside of the
// project since just before an action.
func (r *Restorer) committed(ctx context.Context, before int64) bool {
	cp, err := ledger.Doc[api.Checkpoint](ctx, r.Files.store, r.Files.session, store.KindCheckpoint, before)
	if err != nil || r.Outer == "" {
		return false // there is none
	}
	found := false
	for _, name := range []string{"HEAD", "packed-refs", "refs", "worktrees"} {
		_ = filepath.WalkDir(filepath.Join(r.Outer, name), func(at string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || name == "worktrees" && d.Name() != "HEAD" {
				return nil // it may be gone; git's looks write an index
			}
			info, err := d.Info()
			found = found || err == nil && info.ModTime().After(cp.At)
			return nil
		})
	}
	return found
}

// Desk is what carrying out a roll back asks of the session, which decides and
// records it. Its methods wait for that.
type Desk interface {
	// Last is the newest checkpoint that changes are accounted for up to.
	Last() *Checkpoint
	// Account records a checkpoint and says whose its changes are.
	Account(context.Context, Taken) error
	// Since lists the actions from one on as they stand now.
	Since(ctx context.Context, action int) ([]Past, error)
	// Begin records that the roll back begins, or says why it may not.
	Begin(context.Context, *Outcome) error
	// End kills an action's processes and all that they started.
	End(ctx context.Context, action int) error
}

// Outcome is what carrying a plan out comes to.
type Outcome struct {
	*Plan
	Actions []int              // that are taken back, with nothing left of them, or put in, be it in part
	Left    []string           // what changed since it was shown, and stays
	Begun   bool               // it is in the record, and files may have been written
	Killed  []int              // actions
	After   *Checkpoint        // the state that it left, without a number; nil: not known
	Failed  []manifest.Problem // what couldn't be carried out after all
}

// CarryOut restores files through the merged view. No checkpoint may be taken
// meanwhile, but for its own. All that belongs together is done under one freeze:
// the files are looked at, what moved since the last checkpoint gets one of its
// own, what has to end is killed, and the files are written. So nothing is lost
// that is written over, and nothing that ends can write any more: even where a
// frozen process dies only when it is thawed, it runs nothing before.
func (r *Restorer) CarryOut(ctx context.Context, p *Plan, desk Desk) (*Outcome, error) {
	o := &Outcome{Plan: p}
	thaw, err := r.Freezer.Freeze(ctx)
	if err != nil {
		return o, fmt.Errorf("cannot freeze the agent, so nothing was rolled back: %w", err)
	}
	defer r.thaw(thaw)
	open := r.Box.OpenFiles()
	cur, err := r.Files.ScanStill(ctx, open.Shared, nil, false)
	if err != nil {
		return o, err
	}
	if p.ToBefore == 0 {
		o.Plan, err = r.again(ctx, p, cur)
	} else {
		o.Left, err = p.meanwhile(ctx, r.Files, cur)
	}
	if err != nil {
		return o, err
	}
	p = o.Plan
	// What changed since the last checkpoint is in one, and somebody's, before
	// any of it is written over.
	first, err := r.since(ctx, desk.Last(), cur)
	if err != nil {
		return o, err
	}
	first.Until = r.activity()
	if err := desk.Account(ctx, first); err != nil {
		return o, err
	}
	now := p.Actions
	if o.Actions = p.whole; p.ToBefore != 0 {
		if now, err = desk.Since(ctx, p.ToBefore); err != nil {
			return o, err
		}
		if o.Actions, err = p.takenBack(now, func(s Span) (bool, error) { return r.Files.holdsSome(ctx, []Span{s}, o.Left) }); err != nil {
			return o, err
		}
	}
	plan, err := restore.NewPlan(ctx, r.Files.lower, cur, p.target, restore.Options{Replace: open.Runs, Only: p.lists(), Leave: slices.Concat(o.Left, p.stays)})
	if err != nil {
		return o, fmt.Errorf("cannot plan the rollback: %w", err)
	}
	if !p.PutsIn() {
		if o.Actions, err = r.Files.gone(ctx, o.Actions, now, slices.Concat(plan.Lost, p.stays)); err != nil {
			return o, err
		}
	}
	if err := desk.Begin(ctx, o); err != nil {
		return o, err
	}
	for _, n := range p.Shown.Ends {
		if err := desk.End(ctx, n); err != nil {
			return o, fmt.Errorf("cannot end #%d first: %w", n, err)
		}
		o.Killed = append(o.Killed, n)
	}
	return o, r.write(ctx, plan, open.Shared, o)
}

// again is the plan of a selection for the files as they are under the freeze. It
// has to come to what was shown.
func (r *Restorer) again(ctx context.Context, p *Plan, cur *manifest.Manifest) (*Plan, error) {
	if cur == p.source {
		return p, nil
	}
	now, err := r.planSome(ctx, p.Standing, cur)
	if err != nil || now.Shown.Hash != p.Shown.Hash {
		return p, errors.Join(err, ErrStale)
	}
	return now, nil
}

// write has the files written, and looks at what they are then: even what a
// failure left isn't the agent's doing.
func (r *Restorer) write(ctx context.Context, plan *restore.Plan, shared []string, o *Outcome) error {
	report, err := r.Box.Restore(ctx, plan, restore.NewSource(r.Files.lower, Bodies{r.Files.store}))
	if err != nil {
		err = fmt.Errorf("cannot restore files: %w", err)
	} else if o.Failed = report.Failed; len(o.Failed) > 0 {
		err = fmt.Errorf("cannot restore all files: %d failed, the first is %s: %s", len(o.Failed), api.Escape(o.Failed[0].Path), o.Failed[0].Text)
	}
	m, late := r.Files.ScanStill(ctx, shared, touchedBy(plan), true)
	if late != nil {
		return errors.Join(err, late)
	}
	root, late := r.Files.Save(ctx, m)
	if late == nil {
		o.After = &Checkpoint{Root: root, Manifest: m}
	}
	if err = errors.Join(err, late); err == nil {
		err = r.look(ctx, o)
	}
	return err
}

// look makes sure that what was written is what was to be: there is nothing left to
// write. What came from the project may have moved on there.
func (r *Restorer) look(ctx context.Context, o *Outcome) error {
	is := o.After.Manifest
	left, err := restore.NewPlan(ctx, r.Files.lower, is, o.target, restore.Options{Only: o.lists(), Leave: slices.Concat(o.Left, o.stays)})
	if err != nil {
		return fmt.Errorf("cannot tell whether the files were restored: %w", err)
	}
	listed, target := byPath(o.changed), manifest.Pin(o.target, is)
	for i := range left.Ops {
		op := &left.Ops[i]
		has, want := is.Lookup(op.Path), target.Lookup(op.Path)
		both := has != nil && want != nil && has.Kind == want.Kind
		switch _, ok := listed[op.Path]; {
		case !ok || op.Content.Lower:
			continue
		case op.Kind == restore.OpMeta && (!both || has.Mode == want.Mode):
			continue
		case (op.Kind == restore.OpFile || op.Kind == restore.OpLink) && both && has.Hash == want.Hash && has.Size == want.Size:
			continue // linked to others, maybe, of which some stay
		}
		o.Failed = append(o.Failed, manifest.Problem{Path: op.Path, Text: "it isn't what it was to be"})
	}
	if len(o.Failed) > 0 {
		return fmt.Errorf("cannot restore all files: %d aren't as they were to be, the first is %s", len(o.Failed), api.Escape(o.Failed[0].Path))
	}
	return nil
}

// touchedBy lists the directories whose entries a plan may have changed: those
// above what it writes, since they are made in the upper, and its own.
func touchedBy(p *restore.Plan) []string {
	return slices.Collect(maps.Keys(leading(p.Paths())))
}
