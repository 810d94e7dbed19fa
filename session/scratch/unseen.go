package scratch

import (
	"cmp"
	"context"
	"encoding/hex"
	"path/filepath"
	"slices"

	"stepbox/policy/git"
)

// A merge may write more than its commits' author did: what the person had in the working tree
// and threw away since, what they took off the branch, or the session's file without what they
// have changed there. No plan has that.

// here notes what a merge does to the files that the project has.
func (a *apart) here(ctx context.Context, l *losses, shown Shown, b branch, t *tip, list, written []differs) (err error) {
	if l.over, err = a.overwritten(ctx, b.hash, t.hash, list); err == nil && t.head {
		err = a.unseen(ctx, l, shown, t, written)
	}
	return err
}

// unseen notes what a merge of commits that the agent has checked out writes unasked while the
// plan doesn't; and what the project has as the commits have it, but git isn't to know of.
func (a *apart) unseen(ctx context.Context, l *losses, plan Shown, t *tip, written []differs) error {
	root, said := a.s.root(a.r), slices.Concat(l.over, l.bare, l.older)
	var there, filtered []string
	// Git writes no path that leads out, and a submodule's commit is none.
	passed := func(d differs) bool {
		return !filepath.IsLocal(d.path) || d.to == modeSubmodule || slices.Contains(said, d.path)
	}
	for _, d := range slices.DeleteFunc(slices.Clone(written), passed) {
		planned, err := a.planned(ctx, l, plan, t, d)
		if err != nil {
			return err
		}
		if planned {
			continue
		}
		is, sure := a.noted.stands(root, d)
		switch {
		case is:
			l.unseen = append(l.unseen, d.path)
		case !sure:
			filtered = append(filtered, d.path)
		case d.made() && sameFile(filepath.Join(root, d.path), d.is):
			there = append(there, d.path)
		}
	}
	l.unseen = append(l.unseen, a.attributed(ctx, filtered, "filter", "ident", "working-tree-encoding")...)
	slices.Sort(l.unseen)
	l.ignored = a.ignored(ctx, root, there)
	return context.Cause(ctx)
}

// planned says whether a plan writes a file as a merge leaves it, or as the session has it. Of
// one that both changed, it is what the plan would make of what was committed that counts. It
// notes what of the session's own file the merge takes all the same.
func (a *apart) planned(ctx context.Context, l *losses, plan Shown, t *tip, d differs) (is bool, err error) {
	in, shown := a.s.inProject(a.r, d.path)
	if !shown {
		return false, nil
	}
	is, with := plan.Writes(in)
	if is && with != nil {
		var committed []byte
		committed, err = a.git(ctx, nil, "cat-file", "blob", t.hash+":"+d.path)
		name, _ := hex.DecodeString(d.is) // it is git's
		is = err == nil && with(committed, func(text []byte) bool { return git.Holds(text, name) })
	}
	if is && a.keeps(ctx, in, d) {
		l.kept = append(l.kept, d.path)
	}
	return is, cmp.Or(context.Cause(ctx), err)
}
