package files

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
)

// A selection is taken back, and what was taken back comes again, by carrying the
// reverse of the change over to the files as they are: later changes of other
// files stay, those of other lines too, and what can't be had together is a
// conflict. Nothing is ended. Under the freeze the plan is made again when anything
// was written since, and has to come to the same.

// planSome plans taking back a selection, or its coming again, from a state of the
// files.
func (r *Restorer) planSome(ctx context.Context, now Standing, source *manifest.Manifest) (*Plan, error) {
	p := &Plan{Standing: now, source: source}
	p.Shown = api.RollbackPlan{RollbackTarget: now.Target(), Actions: []int{}, Files: []api.Change{}}
	b := backing{Files: r.Files, git: r.Git, p: p, done: carried{to: source}, resolve: make(map[string]api.Resolution)}
	for _, res := range now.Resolve {
		path, err := api.PathOf(res.Key)
		if err != nil {
			return nil, err
		}
		if res.Way != api.WayMerge && res.Way != api.WayWanted && res.Way != api.WayThere {
			return nil, api.Problemf(api.CodeInvalid, "a conflict is resolved by %q, %q or %q", api.WayMerge, api.WayWanted, api.WayThere)
		}
		b.resolve[path] = res
	}
	var err error
	switch {
	case now.Redo != nil:
		err = b.redo(ctx, now.Redo)
	case len(now.Selection.Actions) > 0:
		err = b.actions(ctx, *now.Selection)
	default:
		err = b.session(ctx, *now.Selection)
	}
	if err != nil {
		return nil, err
	}
	p.target, p.merged, p.Shown.Conflicts = b.done.to, b.done.merged, b.done.conflicts
	slices.Sort(p.Shown.Actions)
	if p.changed, err = r.Files.differs(ctx, source, p.target); err != nil {
		return nil, err
	}
	if err := r.describe(ctx, p, b.done.problems); err != nil {
		return nil, err
	}
	if now.Redo != nil {
		if p.whole, err = b.redone(ctx, now.Redo); err != nil {
			return nil, err
		}
		if p.Shown.Away = !p.PutsIn(); p.PutsIn() {
			p.Shown.Actions = p.whole
		}
	}
	b.say()
	return p, nil
}

// backing works out a plan of taking something back.
type backing struct {
	*Files
	git     func(path string) (in, object bool) // Restorer's
	p       *Plan
	resolve map[string]api.Resolution
	done    carried
	whole   bool // of a Redo: all of it is there
}

// ofGit is what git keeps of a change that was made after a checkpoint.
func (b *backing) ofGit(checkpoint int64) ofGit { return ofGit{b.git, b.p.earlier(checkpoint)} }

// actions takes back what some actions changed, the last one first.
func (b *backing) actions(ctx context.Context, in api.Selection) error {
	filter, err := chooserOf(in)
	if err != nil {
		return err
	}
	numbers := slices.Compact(slices.Sorted(slices.Values(in.Actions)))
	numbers = slices.DeleteFunc(numbers, func(n int) bool { return slices.Contains(in.Without, n) })
	for _, n := range slices.Backward(numbers) {
		if n < 1 || n > len(b.p.Actions) {
			return api.Problemf(api.CodeNotFound, "there is no #%d", n)
		}
		a := &b.p.Actions[n-1]
		switch {
		case a.Before == 0 || a.Apart:
			return api.Problemf(api.CodeInvalid, "#%d has no changes of its own: it is housekeeping, or an agent", n)
		case a.TakenBack:
			return api.Problemf(api.CodeInvalid, "#%d was rolled back already", n)
		}
		if err := b.action(ctx, a, filter); err != nil {
			return err
		}
	}
	return filter.missing()
}

func (b *backing) action(ctx context.Context, a *Past, filter *chooser) error {
	from, to, err := b.made(ctx, a)
	if err != nil {
		return err
	}
	only, hunks, err := filter.of(ctx, b.Files, from, to, true)
	if err != nil {
		return err
	}
	whole, err := b.done.carry(ctx, carrying{
		Files: b.Files, turned: len(b.p.Turned) > 0, git: b.ofGit(a.Before), from: to, to: from, only: only, hunks: hunks, resolve: b.resolve, why: func(path string) string { return b.later(ctx, a, path) },
	})
	if err != nil {
		return err
	}
	b.p.Shown.Actions = append(b.p.Shown.Actions, a.N)
	if a.ends() {
		b.p.Shown.Lives = append(b.p.Shown.Lives, a.N)
		return nil
	}
	changes, err := b.differs(ctx, from, to)
	if err != nil {
		return err
	}
	for path := range byPath(changes) {
		whole = whole && only(path) && hunks[path] == nil
	}
	if whole {
		b.p.whole = append(b.p.whole, a.N)
	}
	return nil
}

// made is the state before an action, and what the action alone made of it.
func (b *backing) made(ctx context.Context, a *Past) (from, to *manifest.Manifest, err error) {
	t := Told{To: a.Before, After: a.Before}
	from, to, err = b.own(ctx, &t, a.Spans)
	if err == nil && len(a.Spans) == 0 && a.After != 0 { // known from the record alone
		to, err = b.At(ctx, a.After)
	}
	return from, to, err
}

// maxAsked bounds how many actions are looked through for who changed a path.
const maxAsked = 1000

// later says in words which actions changed a path after another.
func (b *backing) later(ctx context.Context, after *Past, path string) string {
	all := b.p.Actions[after.N:]
	for i := range all[:min(len(all), maxAsked)] {
		a := &all[i]
		if a.TakenBack || a.Apart {
			continue
		}
		if some, err := b.holdsSome(ctx, a.Spans, []string{path}); err == nil && some { // only words
			return fmt.Sprintf("#%d changed it since", a.N)
		}
	}
	return ""
}

// session takes back what the session changed of some files.
func (b *backing) session(ctx context.Context, in api.Selection) error {
	if len(in.Without) > 0 {
		return api.Problemf(api.CodeInvalid, "actions are rolled back by name; all but some can't be")
	}
	filter, err := chooserOf(in)
	if err != nil {
		return err
	}
	only, hunks, err := filter.of(ctx, b.Files, nil, b.p.source, true)
	if err == nil {
		err = filter.missing()
	}
	if err != nil {
		return err
	}
	whole, err := b.done.carry(ctx, carrying{Files: b.Files, turned: len(b.p.Turned) > 0, git: ofGit{in: b.git}, from: b.p.source, only: only, hunks: hunks, resolve: b.resolve})
	if err != nil {
		return err
	}
	for i := range b.p.Actions {
		a := &b.p.Actions[i]
		if !whole || !filter.all() || a.Files == 0 || a.Apart || a.TakenBack {
			continue
		}
		b.p.Shown.Actions = append(b.p.Shown.Actions, a.N)
		if a.ends() {
			b.p.Shown.Lives = append(b.p.Shown.Lives, a.N)
		} else {
			b.p.whole = append(b.p.whole, a.N)
		}
	}
	stands, err := b.stands(ctx)
	if err == nil {
		b.p.whole, err = b.gone(ctx, b.p.whole, b.p.Actions, stands)
	}
	if err == nil {
		b.p.Shown.Actions, err = b.gone(ctx, b.p.Shown.Actions, b.p.Actions, stands)
	}
	return err
}

// stands are the paths that aren't what they were when the session began: what the
// project has by now and the session let go of isn't the session's any more.
func (b *backing) stands(ctx context.Context) ([]string, error) {
	if len(b.p.Turned) == 0 {
		return nil, nil
	}
	first, err := b.pinned(ctx, &manifest.Manifest{Root: &manifest.Node{Entry: b.done.to.Root.Entry, Sub: manifest.NewDir(nil, nil)}}, b.p)
	if err != nil {
		return nil, err
	}
	apart, err := b.differs(ctx, first, b.done.to)
	return slices.Collect(maps.Keys(byPath(apart))), err
}

// redo has what a roll back took back come again.
func (b *backing) redo(ctx context.Context, r *api.Rollback) error {
	if r.Before == 0 || r.After == 0 {
		return api.Problemf(api.CodeInvalid, "rollback %d can't come again: the states around it aren't in the record", r.ID)
	}
	switch {
	case r.Redone && r.PutsIn():
		return api.Problemf(api.CodeInvalid, "what rollback %d had come again was taken away again already", r.ID)
	case r.Redone:
		return api.Problemf(api.CodeInvalid, "what rollback %d took away has come again already", r.ID)
	}
	from, err := b.At(ctx, r.After)
	if err != nil {
		return err
	}
	to, err := b.At(ctx, r.Before)
	if err != nil {
		return err
	}
	b.whole, err = b.done.carry(ctx, carrying{Files: b.Files, turned: len(b.p.Turned) > 0, git: b.ofGit(r.Before), from: from, to: to, resolve: b.resolve, why: func(string) string { return "after that rollback" }})
	b.p.Shown.Actions = slices.Clone(r.Actions)
	return err
}

// redone are the actions that are taken back no more, since a redo puts something of
// them in, however little the roll back took of them that comes again; or those that
// are, since it takes away the last of them.
func (b *backing) redone(ctx context.Context, r *api.Rollback) ([]int, error) {
	paths, out := pathsOf(b.p.changed), []int{}
	for i := range b.p.Actions {
		a := &b.p.Actions[i]
		turns := b.whole && b.p.PutsIn() && slices.Contains(r.Actions, a.N)
		if !turns && !a.Apart && a.TakenBack == b.p.PutsIn() && (a.TakenBack || !a.ends()) {
			var err error
			if turns, err = b.turns(ctx, a, paths); err != nil {
				return nil, err
			}
		}
		if turns {
			out = append(out, a.N)
		}
	}
	return out, nil
}

// turns says whether a redo that changes some paths puts in something of an action, or
// takes away the last of it.
func (b *backing) turns(ctx context.Context, a *Past, paths []string) (bool, error) {
	if touched, err := b.holdsSome(ctx, a.Spans, paths); err != nil || !touched || b.p.PutsIn() && !a.Was {
		return false, err
	}
	there, err := b.left(ctx, a, b.done.to)
	if err != nil || there || b.p.PutsIn() {
		return there == b.p.PutsIn(), err
	}
	return b.left(ctx, a, b.p.source) // else later ones had made something else of it all
}

// left says whether a state has anything of what an action changed.
func (b *backing) left(ctx context.Context, a *Past, state *manifest.Manifest) (bool, error) {
	from, to, err := b.made(ctx, a)
	if err != nil {
		return false, err
	}
	without := carried{to: state}
	whole, err := without.carry(ctx, carrying{Files: b.Files, turned: len(b.p.Turned) > 0, git: b.ofGit(a.Before), from: to, to: from})
	if err != nil || !whole {
		return true, err
	}
	changed, err := b.differs(ctx, state, without.to)
	return len(changed) > 0, err
}

// say puts into words what becomes of each file.
func (b *backing) say() {
	for i, c := range b.p.changed[:len(b.p.Shown.Files)] {
		word := "restored"
		switch {
		case b.p.merged[c.Path]:
			word = "restored, with later changes of other lines"
		case c.Status == diff.Deleted:
			word = "removed"
		case c.Status == diff.Added:
			word = "put back"
		case c.Status == diff.Renamed:
			word = "renamed back"
		}
		f := &b.p.Shown.Files[i]
		f.Words = strings.TrimSuffix(word+", "+f.Words, ", ")
	}
}
