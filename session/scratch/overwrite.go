package scratch

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Git takes what it ignores for worth nothing: a merge that adds a path, or a pick that
// adds and then removes it, writes over an ignored file there without a word, removes a
// folder for a file and a file for a folder. So whatever is there, and isn't of the
// branch, is a loss; what git doesn't ignore, by the rules of then, it refuses to write over.

// Bounds of a look at the project.
const (
	maxMade  = 100_000 // paths that a tip adds
	maxBeing = 10_000  // files of a folder that are looked at
)

const modeSubmodule = "160000"

// overwritten are the paths of the project's at which a tip adds something else, or that are
// in the way of it.
func (a *apart) overwritten(ctx context.Context, branch, tip string, list []differs) (out []string, err error) {
	made, has := added(list)
	passing, err := a.passing(ctx, branch, tip, made, has)
	made = append(made, passing...)
	if err == nil && len(made) > maxMade {
		err = fmt.Errorf("it adds more than %d files", maxMade)
	}
	root, said := a.s.root(a.r), make(map[string]bool)
	for _, d := range made {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return nil, err
		}
		if at := inTheWay(root, d, func(path string) bool { return has[path] }); at != "" && !said[at] {
			said[at] = true
			out = append(out, at)
		}
	}
	return a.unrefused(ctx, branch, root, out), nil
}

// unrefused are those over which git may write by then without a word.
func (a *apart) unrefused(ctx context.Context, branch, root string, paths []string) []string {
	if len(paths) == 0 || a.rules(ctx, branch, ".gitignore") {
		return paths
	}
	return a.ignored(ctx, root, paths)
}

// ignored are those of a working tree's paths that git ignores: it refuses to write over
// others. All are, if it can't tell.
func (a *apart) ignored(ctx context.Context, root string, paths []string) []string {
	if len(paths) == 0 {
		return nil
	}
	list, err := a.working(ctx, paths, "check-ignore", "-z", "--stdin")
	if err != nil && !exited(err, 1) {
		return paths
	}
	is := make(map[string]bool)
	for p := range strings.SplitSeq(string(list), "\x00") {
		is[p] = true
	}
	return slices.DeleteFunc(paths, func(p string) bool { return !is[filepath.Join(root, p)] })
}

// passing is what commits that would be picked one by one add, and a later one removes, where
// all counts that the branch has.
func (a *apart) passing(ctx context.Context, branch, tip string, made []differs, has map[string]bool) (out []differs, err error) {
	commits, err := a.git(ctx, nil, "rev-list", "--reverse", "--topo-order", "--no-merges", tip, "^"+branch)
	if err != nil {
		return nil, err
	}
	all, err := a.changes(ctx, commits)
	known := make(map[string]bool)
	for _, d := range made {
		known[d.path] = true
	}
	for _, d := range all {
		if d.made() && !known[d.path] {
			d.is = "" // it stays nothing
			out = append(out, d)
		}
		known[d.path] = true
	}
	if len(out) > 0 && err == nil {
		var names []byte
		names, err = a.git(ctx, nil, "ls-tree", "-r", "-z", "--name-only", branch)
		for name := range strings.SplitSeq(string(names), "\x00") {
			has[name] = true
		}
	}
	return out, err
}

// inTheWay is what of a working tree an added path takes the place of; "" for nothing. No
// link is followed.
func inTheWay(root string, d differs, tracked func(string) bool) string {
	if !filepath.IsLocal(d.path) || tracked(d.path) {
		return "" // git writes no such path, or has what is there
	}
	for i, c := range d.path {
		if c != '/' {
			continue
		}
		at := d.path[:i]
		info, err := os.Lstat(filepath.Join(root, at))
		if err != nil || !info.IsDir() && tracked(at) {
			return ""
		}
		if !info.IsDir() {
			return at
		}
	}
	return replaced(root, d, tracked)
}

// replaced is that of a path in whose folder nothing is in the way.
func replaced(root string, d differs, tracked func(string) bool) string {
	file := filepath.Join(root, d.path)
	info, err := os.Lstat(file)
	switch {
	case err != nil || info.IsDir() && d.to == modeSubmodule: // git leaves what is in such a folder
		return ""
	case info.IsDir():
		return untracked(root, d.path, tracked)
	case sameFile(file, d.is):
		return ""
	}
	return d.path
}

// untracked is a file in a folder that git doesn't have; "" where there is none.
func untracked(root, folder string, tracked func(string) bool) (found string) {
	left := maxBeing
	_ = filepath.WalkDir(filepath.Join(root, folder), func(p string, d fs.DirEntry, err error) error {
		at, failure := filepath.Rel(root, p)
		switch left--; {
		case left == 0:
			found = folder
		case failure == nil && (err != nil || !d.IsDir() && !tracked(at)): // what can't be read may be anything
			found = at
		default:
			return nil
		}
		return fs.SkipAll
	})
	return found
}
