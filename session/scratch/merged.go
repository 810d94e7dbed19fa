package scratch

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// What a merge leaves is git's to say: what it merges without asking, takes for renamed, or
// asks about. Nothing is written but objects, which go with the repository that is apart. It
// may find more renamed than the person's settings would have it, and then says more.

// merged lists what a merge of a tip makes of a branch's tree. A git that can't say so makes it
// be told by what both sides changed, and may are the files of which that tells nothing.
func (a *apart) merged(ctx context.Context, b branch, tip, none string) (list []differs, may []string, err error) {
	branch := b.hash
	if branch == none {
		list, err = a.trees(ctx, nil, none, tip)
		return list, nil, err
	}
	out, err := a.git(ctx, nil, "merge-tree", "--write-tree", "-z", "--no-messages", "--allow-unrelated-histories", branch, tip)
	tree, conflicts, ok := strings.Cut(string(out), "\x00")
	if !ok || !isHash(tree) || err != nil && !exited(err, 1) {
		return a.unmerged(ctx, branch, tip, none)
	}
	list, err = a.trees(ctx, nil, branch, tree)
	asked := a.asked(ctx, b, conflicts)
	for i := range list {
		list[i].asked = asked[list[i].path]
	}
	return list, nil, err
}

// asked are the paths of what git lists as conflicts, but where a driver may merge unasked, or an
// option that the person has set for the branch.
func (a *apart) asked(ctx context.Context, b branch, conflicts string) map[string]bool {
	asked, paths := map[string]bool{}, []string(nil)
	notes := b.name == "" // they have no attributes
	if conflicts == "" || a.unasked(ctx, b.name) || !notes && a.rules(ctx, b.hash, ".gitattributes") {
		return asked
	}
	for entry := range strings.SplitSeq(conflicts, "\x00") {
		if _, path, ok := strings.Cut(entry, "\t"); ok && !asked[path] {
			asked[path] = true
			paths = append(paths, path)
		}
	}
	for _, path := range a.attributed(ctx, paths, "merge") {
		delete(asked, path)
	}
	return asked
}

// unasked says whether settings may have a merge into a branch ask nothing: by a driver for all files, a
// strategy or an option of one. Long options beside those don't.
func (a *apart) unasked(ctx context.Context, branch string) bool {
	driver, err := a.s.real(ctx, a.r, call{}, "config", "merge.default")
	options, failure := a.s.real(ctx, a.r, call{}, "config", "--get-all", "branch."+branch+".mergeOptions")
	asks := func(word string) bool { return strings.HasPrefix(word, "--") && !strings.HasPrefix(word, "--str") }
	return err != nil && !exited(err, 1) || failure != nil && !exited(failure, 1) || len(driver) > 0 ||
		slices.ContainsFunc(strings.Fields(string(options)), func(word string) bool { return !asks(word) })
}

// unmerged is that as far as it can be told of what both sides changed of what they went on
// from.
func (a *apart) unmerged(ctx context.Context, branch, tip, none string) (list []differs, may []string, err error) {
	bases, err := a.bases(ctx, branch, tip, none)
	if err != nil {
		return nil, nil, err
	}
	agents, err := a.trees(ctx, nil, bases[0], tip)
	persons, err := a.trees(ctx, err, bases[0], branch)
	changed := byPath(persons)
	for _, d := range agents {
		switch other, both := changed[d.path]; {
		case !both:
			list = append(list, d)
		case other.is == d.is && other.to == d.to:
		default:
			may = append(may, d.path)
			if other.gone() { // what is there is untracked
				d.was, d.asked = other.is, true
				list = append(list, d)
			}
		}
	}
	return list, may, err
}

// bases are what a branch and a tip went on from, several where each merged the other; none if they
// have nothing in common: git refuses to merge them then, unless there is no commit yet, and picks all
// the same.
func (a *apart) bases(ctx context.Context, branch, tip, none string) ([]string, error) {
	if branch == none {
		return []string{none}, nil
	}
	found, err := a.git(ctx, nil, "merge-base", "--all", branch, tip)
	if exited(err, 1) {
		return []string{none}, nil
	}
	return strings.Fields(string(found)), err
}

// exited says whether git ended so.
func exited(err error, code int) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == code
}

// attributed are those of a working tree's paths that have one of some attributes; all, if git
// can't tell.
func (a *apart) attributed(ctx context.Context, paths []string, attributes ...string) (out []string) {
	if len(paths) == 0 {
		return nil
	}
	list, err := a.working(ctx, paths, slices.Concat([]string{"check-attr", "-z", "--stdin"}, attributes)...)
	if err != nil {
		return paths
	}
	root, fields := a.s.root(a.r), strings.Split(string(list), "\x00")
	for i := 0; i+2 < len(fields); i += 3 { // a path, an attribute, its value
		in, err := filepath.Rel(root, fields[i])
		if value := fields[i+2]; err == nil && value != "unspecified" && value != "unset" && !slices.Contains(out, in) {
			out = append(out, in)
		}
	}
	return out
}

// working has the person's git say something of paths in their working tree.
func (a *apart) working(ctx context.Context, paths []string, args ...string) ([]byte, error) {
	var ask strings.Builder
	root := a.s.root(a.r)
	for _, p := range paths {
		ask.WriteString(filepath.Join(root, p) + "\x00")
	}
	return a.s.real(ctx, a.r, call{
		in:  strings.NewReader(ask.String()),
		env: []string{"GIT_DIR=" + a.s.metadata(a.r), "GIT_WORK_TREE=" + root},
	}, args...)
}
