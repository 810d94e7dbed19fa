package scratch

import (
	"context"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"

	"stepbox/policy/git"
)

// A commit may have more than its author wrote: what the person had in the working tree and
// threw away since, or put into a commit and took off the branch. No plan has that, as the
// session changed nothing there, and the merge brings it back.

// here notes what a merge does to the files that the project has.
func (a *apart) here(ctx context.Context, l *losses, shown Shown, b branch, t *tip, c *change) (err error) {
	if l.over, err = a.overwritten(ctx, b.hash, t.hash, c); err == nil && t.head {
		err = a.unseen(ctx, l, shown, b, t.hash, c)
	}
	return err
}

// unseen notes what a merge of new commits that the agent has checked out writes unasked, as
// the project has there what both went on from, or nothing, while the plan writes nothing; and
// what the project has as the commits have it, but git isn't to know of.
func (a *apart) unseen(ctx context.Context, l *losses, plan Shown, b branch, tip string, c *change) error {
	news, err := a.news(ctx, b, tip)
	if err != nil {
		return err
	}
	root, said := a.s.root(a.r), slices.Concat(l.over, l.bare, l.older)
	var there []string
	for _, d := range c.written() {
		in, shown := a.s.inProject(a.r, d.path)
		if _, its := news[d.path]; !its || shown && plan.Writes(in) || slices.Contains(said, d.path) {
			continue
		}
		switch file := filepath.Join(root, d.path); {
		case untouched(file, d):
			l.unseen = append(l.unseen, d.path)
		case d.made() && sameFile(file, d.is):
			there = append(there, d.path)
		}
	}
	slices.Sort(l.unseen)
	l.ignored = a.ignored(ctx, root, there)
	return nil
}

// news are the files that commits have which lead to none of the project's branches, by path.
func (a *apart) news(ctx context.Context, b branch, tip string) (map[string]differs, error) {
	commits, err := a.git(ctx, nil, "rev-list", tip, "--not", b.hash, "--branches") // it may be on none of these
	if err != nil {
		return nil, err
	}
	list, err := a.changes(ctx, commits, "-m") // a merge may have more than both sides had
	// Git writes no path that leads out, and a submodule's commit is none.
	list = slices.DeleteFunc(list, func(d differs) bool { return !filepath.IsLocal(d.path) || d.to == modeSubmodule })
	return byPath(list), err
}

// untouched says whether a file is as a tip and a branch went on from, so that git writes what
// the tip has unasked.
func untouched(file string, d differs) bool {
	info, err := os.Lstat(file)
	switch {
	case err != nil || d.made():
		return err != nil
	case d.is == d.was: // whether it may be run, alone
		return (info.Mode()&0o100 != 0) == (d.from == "100755")
	}
	return sameFile(file, d.was)
}

// sameFile says whether a file has the content that git names so, or that with the ends of
// lines that other systems have. Behind a filter or an encoding it never has.
func sameFile(file, hash string) bool {
	if info, err := os.Lstat(file); err != nil || sameBlob(file, info, hash) {
		return err == nil
	}
	text, err := git.ReadFile(file, maxBlob)
	name, _ := hex.DecodeString(hash) // it is git's
	return err == nil && git.Holds(text, name)
}
