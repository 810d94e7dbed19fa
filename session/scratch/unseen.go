package scratch

import (
	"bytes"
	"context"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"stepbox/policy/git"
)

// A commit may have more than its author wrote: what the person had in the working tree and
// threw away since, or put into a commit and took off the branch. No plan has that, as the
// session changed nothing there, and the merge brings it back.

// here notes what a merge does to the files that the project has.
func (a *apart) here(ctx context.Context, l *losses, shown Shown, b branch, t *tip, c *change) (err error) {
	if l.over, err = a.overwritten(ctx, b.hash, t.hash, c); err == nil && t.head {
		err = a.unseen(ctx, l, shown, t.hash, c)
	}
	return err
}

// unseen notes what a merge of new commits that the agent has checked out writes, where the
// project has something else and the plan writes nothing; and what the project has like that,
// but git isn't to know of.
func (a *apart) unseen(ctx context.Context, l *losses, plan Shown, tip string, c *change) error {
	news, err := a.news(ctx, tip)
	if err != nil {
		return err
	}
	root, said := a.s.root(a.r), slices.Concat(l.over, l.bare, l.older)
	var there, unseen []string
	for _, d := range c.written() {
		in, shown := a.s.inProject(a.r, d.path)
		if _, its := news[d.path]; !its || shown && plan.Writes(in) || slices.Contains(said, d.path) {
			continue
		}
		switch same := sameFile(filepath.Join(root, d.path), d.is); {
		case !same:
			unseen = append(unseen, d.path)
		case d.made():
			there = append(there, d.path)
		}
	}
	slices.Sort(unseen)
	if len(there) > 0 {
		l.ignored = a.ignored(ctx, root, there)
	}
	l.unseen, err = a.unfiltered(ctx, root, unseen)
	return err
}

// news are the files that commits have which the project's repository has nowhere, by path.
func (a *apart) news(ctx context.Context, tip string) (map[string]differs, error) {
	commits, err := a.git(ctx, nil, "rev-list", tip, "--not", "--exclude="+ours+"*", "--all")
	if err != nil {
		return nil, err
	}
	list, err := a.changes(ctx, commits, "-m")            // a merge may have more than both sides had
	list = slices.DeleteFunc(list, func(d differs) bool { // git writes no such path, and a submodule is none
		return !filepath.IsLocal(d.path) || d.to == modeSubmodule
	})
	return byPath(list), err
}

// unfiltered are those of a working tree's paths that no filter or encoding makes another
// content of: what git has of others can't be compared with a file.
func (a *apart) unfiltered(ctx context.Context, root string, paths []string) ([]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	list, err := a.inTree(ctx, root, paths, "check-attr", "-z", "--stdin", "filter", "working-tree-encoding")
	if err != nil {
		return nil, err
	}
	filtered := map[string]bool{}
	fields := strings.Split(string(list), "\x00") // path, attribute, value
	for i := 0; i+2 < len(fields); i += 3 {
		filtered[fields[i]] = filtered[fields[i]] || a.converts(ctx, fields[i+1], fields[i+2])
	}
	return slices.DeleteFunc(paths, func(p string) bool { return filtered[filepath.Join(root, p)] }), nil
}

// converts says whether git makes something else of files with an attribute. Anybody may name a
// filter that there isn't.
func (a *apart) converts(ctx context.Context, attribute, value string) bool {
	if value == "unspecified" || value == "unset" || attribute != "filter" {
		return value != "unspecified" && value != "unset"
	}
	_, err := a.s.real(ctx, a.r, call{}, "config", "--get-regexp", `^filter\.`+regexp.QuoteMeta(value)+`\.(clean|process)$`)
	return err == nil
}

// sameFile says whether a file has the content that git names so, or that with the ends of
// lines that other systems have.
func sameFile(file, hash string) bool {
	if info, err := os.Lstat(file); err != nil || sameBlob(file, info, hash) {
		return err == nil
	}
	text, err := git.ReadFile(file, maxBlob)
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	sum := git.Object("blob", int64(len(text)), len(hash)/2)
	_, _ = sum.Write(text) // it never fails
	return err == nil && hex.EncodeToString(sum.Sum(nil)) == hash
}
