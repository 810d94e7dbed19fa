package scratch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/policy/git"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/outfit"
)

// Commits are those of a state that the project's repositories on the host don't
// have on any branch, tag or remote branch.
type Commits struct {
	List  []api.Commit  // of each repository and branch, the newest first
	Notes []api.Trouble // repositories, and branches, whose commits can't be had, and why
}

// Bounds of what is taken over from one repository.
const (
	maxRepositories = 50
	maxCommits      = 10_000
	maxTips         = 500
	maxRefsFile     = 8 << 20  // bytes
	maxObjects      = 64 << 20 // bytes of commits
	gitTime         = 10 * time.Minute
)

// ours is where the fetched commits are kept in a repository.
const ours = "refs/stepbox/"

// repository is one that the agent changed.
type repository struct {
	dir     string   // with HEAD, from the project: .git, sub/.git, .git/modules/sub
	folder  string   // as people call it, from the project; "" for the project's own
	has     []string // what the real one's references name; nil: there is no real one
	commits []commit // that are new, the newest first
	tips    []tip
	trouble string // why its commits can't be had
}

// tip is the newest commit of a branch, or of what else leads to new ones.
type tip struct {
	hash, ref string
	name      string // below ours and the session
	own       []int  // commits that no tip before it leads to
}

// Commits lists the commits that the agent made. What it lists is checked: each is
// the one of that hash, and none that leads to it is left out.
func (s *Scratch) Commits(ctx context.Context, state *manifest.Manifest) (Commits, error) {
	list, err := s.gather(ctx, state)
	return listed(list), err
}

func listed(list []*repository) (out Commits) {
	for _, r := range list {
		folder := api.Escape(r.folder)
		if r.trouble != "" {
			out.Notes = append(out.Notes, api.Trouble{Path: folder, Why: r.trouble})
			continue
		}
		for _, t := range r.tips {
			for _, i := range t.own {
				c := r.commits[i].said()
				c.Ref, c.Folder = api.Escape(t.ref), folder
				out.List = append(out.List, c)
			}
		}
	}
	return out
}

// gather finds the repositories whose references a state has in another way than
// the host, and has git list what is new in a sandbox with that state.
func (s *Scratch) gather(ctx context.Context, state *manifest.Manifest) ([]*repository, error) {
	list := repositories(state)
	switch r, err := s.outer(); {
	case err != nil:
		list = append(list, &repository{trouble: "the agent can't commit, since the project's repository isn't shown to it: " + api.Escape(err.Error())})
	case r != nil:
		list = append(list, r)
	}
	var asked []*repository
	argv, temp := []string{"/bin/sh", "-c", listScript, "commits"}, make(map[string]string)
	for _, r := range list {
		if r.trouble == "" {
			s.look(r)
		}
		if r.trouble == "" {
			asked = append(asked, r)
			argv = append(argv, s.at(r))
			var in strings.Builder
			for _, hash := range r.has {
				in.WriteString(hash + "\n")
			}
			temp[strconv.Itoa(len(asked))+".has"] = in.String()
		}
	}
	if len(asked) == 0 {
		return list, nil
	}
	if outfit.Program("git", s.cfg.Env) == "" {
		for _, r := range asked {
			r.trouble = "there is no git on this machine"
		}
		return list, nil
	}
	return list, s.git(ctx, state, argv, temp, func(temp string) error {
		for i, r := range asked {
			if err := r.read(filepath.Join(temp, strconv.Itoa(i+1))); err != nil {
				r.trouble = api.Escape(api.Trim(err.Error(), 500))
			}
		}
		return nil
	})
}

// git runs a script of ours with git in a sandbox.
func (s *Scratch) git(ctx context.Context, state *manifest.Manifest, argv []string, temp map[string]string, after func(temp string) error) error {
	ran, err := s.run(ctx, job{
		state: state, argv: argv, temp: temp, wall: gitTime, after: after,
		home: map[string]string{".gitconfig": "[safe]\n\tdirectory = *\n"},
	})
	if err == nil && ran.overtime {
		err = fmt.Errorf("cannot get at the agent's commits: git took longer than %s", gitTime)
	}
	return err
}

// scriptStart is how both scripts begin: for each repository, whose folder is an
// argument, $n begins the names of its files.
const scriptStart = `ulimit -f 4194304
i=0
for dir; do
	i=$((i+1)); n=/tmp/$i
	g() {
		git --git-dir="$dir" -c core.bare=true -c core.hooksPath=/dev/null -c core.fsmonitor= -c gc.auto=0 -c maintenance.auto=false \
			-c core.commitGraph=false -c core.pager=cat "$@"
	}
`

// listScript lists what leads to commits, and which of those are new.
const listScript = scriptStart + `	form='%(if)%(*objectname)%(then)%(*objectname)%(else)%(objectname)%(end) %(refname)'
	{
		g for-each-ref --format="$form" refs/heads &&
		for head in "$dir"/HEAD "$dir"/worktrees/*/HEAD; do
			[ ! -f "$head" ] || [ -h "$head" ] || printf '%s HEAD\n' "$(head -n 1 "$head")"
		done &&
		g for-each-ref --format="$form" refs/tags refs/stash
	} >$n.refs 2>$n.said &&
		g cat-file --batch-check='%(objectname) %(objecttype)' <$n.has >$n.there 2>>$n.said &&
		sed -n -e 's/^\([0-9a-f]\{40,64\}\) .*/\1/p' $n.refs >$n.ask &&
		sed -n -e 's/^\([0-9a-f]*\) commit$/^\1/p' -e 's/^\([0-9a-f]*\) tag$/^\1/p' $n.there >>$n.ask &&
		g rev-list --topo-order --max-count=10001 --stdin <$n.ask >$n.new 2>>$n.said &&
		g cat-file --batch <$n.new >$n.commits 2>>$n.said || echo failed >$n.failed
done </dev/null >/dev/null 2>&1
`

// repositories finds those whose references are in a state's upper.
func repositories(state *manifest.Manifest) []*repository {
	found := make(map[string]bool)
	if state != nil {
		for p, e := range state.All() {
			if dir := ofReference(p); dir != "" && e.Kind != manifest.KindDir && (found[dir] || len(found) < maxRepositories) {
				found[dir] = true
			}
		}
	}
	var out []*repository
	for dir := range found {
		r := &repository{dir: dir, folder: path.Dir(dir)}
		if before, module, ok := strings.Cut(dir, ".git/modules/"); ok {
			r.folder = path.Join(before, module)
		}
		if r.folder == "." {
			r.folder = ""
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *repository) int { return strings.Compare(a.folder, b.folder) })
	return out
}

// ofReference is the folder of the repository that a file says something about,
// by its name: where a branch is, or what is checked out; "" for other files.
func ofReference(file string) string {
	_, rest, ok := strings.Cut("/"+file, "/.git/")
	if !ok {
		return ""
	}
	dir := strings.TrimSuffix(file, "/"+rest)
	if strings.HasPrefix(rest, "logs/") || strings.Contains(rest, "/logs/") {
		return ""
	}
	module, name := "", rest
	if strings.HasPrefix(rest, "modules/") {
		i := strings.Index(rest, "/refs/")
		if j := strings.Index(rest, "/worktrees/"); i < 0 || j >= 0 && j < i {
			i = j
		}
		if i < 0 {
			i = strings.LastIndexByte(rest, '/')
		}
		module, name = "/"+rest[:i], rest[i+1:]
	}
	if name == "HEAD" || name == "packed-refs" || strings.HasPrefix(name, "refs/") && !strings.HasPrefix(name, ours) || strings.HasPrefix(name, "worktrees/") {
		return dir + module
	}
	return ""
}

// look looks at the real repository.
func (s *Scratch) look(r *repository) {
	switch err := s.straight(r); {
	case errors.Is(err, os.ErrNotExist):
		r.trouble = "the agent made this repository, and the project has none there that its commits could be fetched into: run git init there first"
	case err != nil:
		r.trouble = "its commits can't be fetched: the project's git folder " + api.Escape(r.dir) + " isn't a folder, or is behind a link"
	default:
		has, err := git.Refs(s.at(r), ours)
		if err != nil {
			r.trouble = api.Escape(err.Error())
		}
		r.has = has
	}
}

// straight says whether a folder below the project is one that no link leads to.
func straight(workspace, rel string) error {
	top, err := unix.Open(workspace, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(top)
	fd, err := unix.Openat2(top, rel, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// read reads what the list script left in files that begin with a name.
func (r *repository) read(prefix string) error {
	said := func(err error) error {
		text, _ := readRegular(prefix+".said", 64<<10) // else there is nothing to add
		if line, _, _ := strings.Cut(string(text), "\n"); line != "" {
			return fmt.Errorf("%w: %s", err, line)
		}
		return err
	}
	if _, err := os.Lstat(prefix + ".failed"); err == nil {
		return said(errors.New("git can't list its commits"))
	}
	refs, err := readRegular(prefix+".refs", maxRefsFile)
	if err != nil {
		return fmt.Errorf("cannot read its list of branches: %w", err)
	}
	objects, err := readRegular(prefix+".commits", maxObjects)
	if err != nil {
		return fmt.Errorf("cannot read its commits: %w", err)
	}
	if r.commits, err = parseCommits(objects); err != nil {
		return fmt.Errorf("cannot read its commits: %w", err)
	}
	if len(r.commits) > maxCommits {
		return fmt.Errorf("it has more than %d new commits, which is more than can be listed", maxCommits)
	}
	return r.name(string(refs))
}

// name finds out which references lead to new commits, and gives them names that
// can be typed into a shell as they are, whatever the agent called them.
func (r *repository) name(refs string) error {
	at := make(map[string]int, len(r.commits))
	for i := range r.commits {
		at[r.commits[i].hash] = i
	}
	seen, names := make([]bool, len(r.commits)), make(map[string]bool)
	for line := range strings.Lines(refs) {
		hash, ref, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		first, ok := at[hash]
		branch, isBranch := strings.CutPrefix(ref, "refs/heads/")
		if !ok || !isBranch && seen[first] {
			continue
		}
		if len(r.tips) == maxTips {
			return fmt.Errorf("it has more than %d branches with new commits", maxTips)
		}
		t := tip{hash: hash, ref: ref, name: branch}
		if !isBranch {
			t.name = "commit-" + hash[:12]
		} else if !plainName(branch) {
			t.name = "branch-" + hash[:12]
		}
		if names[t.name] {
			continue // the same commit, too
		}
		names[t.name] = true
		for left := []int{first}; len(left) > 0; {
			i := left[len(left)-1]
			left = left[:len(left)-1]
			if seen[i] {
				continue
			}
			seen[i] = true
			t.own = append(t.own, i)
			for _, parent := range r.commits[i].parents {
				if p, ok := at[parent]; ok {
					left = append(left, p)
				}
			}
		}
		slices.Sort(t.own)
		r.tips = append(r.tips, t)
	}
	return nil
}

// plainName says whether a branch's name can be a part of a reference and of a
// command line as it is. See git-check-ref-format(1).
func plainName(name string) bool {
	if name == "" || len(name) > 200 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-") != "" || path.Clean(name) != name {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || part[0] == '-' || strings.HasSuffix(part, ".") || strings.HasSuffix(part, ".lock") || strings.Contains(part, "..") {
			return false
		}
	}
	return true
}

// before lists the commits that the new ones are made on top of.
func (r *repository) before() []string {
	fresh := make(map[string]bool, len(r.commits))
	for i := range r.commits {
		fresh[r.commits[i].hash] = true
	}
	var out []string
	for i := range r.commits {
		for _, p := range r.commits[i].parents {
			if !fresh[p] {
				fresh[p] = true
				out = append(out, p)
			}
		}
	}
	return out
}
