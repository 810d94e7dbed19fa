package scratch

import (
	"cmp"
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

	"stepbox/policy/git"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/frozen"
)

// Commits are those of a state that the project's repositories on the host don't
// have on any branch, tag or remote branch.
type Commits struct {
	List   []api.Commit  // of each repository and branch, the newest first
	Notes  []api.Trouble // what can't be had, and why
	Failed int           // repositories of which nothing can be had
}

// Bounds of what is taken over from one repository.
const (
	maxCommits = 10_000
	maxTips    = 500
	maxRefs    = 8 << 20  // bytes
	maxObjects = 64 << 20 // bytes of commits
	gitTime    = 10 * time.Minute
)

// Commits lists the commits that the agent made. What it lists is checked: each is
// the one of that hash, and Fetch refuses what was left out.
// What their merge would take is told beside what goes anyway.
func (s *Scratch) Commits(ctx context.Context, state *manifest.Manifest, shown Shown) (Commits, error) {
	list, err := s.gather(ctx, state, shown)
	return said(list), err
}

// said is what was found, as it is told.
func said(list []*repository) (out Commits) {
	for _, r := range list {
		if r.trouble != "" {
			out.Failed++
			out.Notes = append(out.Notes, api.Trouble{Path: api.Escape(cmp.Or(r.folder, ".git")), Why: api.Escape(api.Trim(r.trouble, 700))})
			continue
		}
		for _, why := range r.left {
			out.Notes = append(out.Notes, api.Trouble{Path: api.Escape(cmp.Or(r.folder, ".git")), Why: api.Escape(api.Trim(why, 700))})
		}
		dangers := map[string][]string{} // a commit may be the tip of several branches
		for _, t := range r.tips {
			if t.danger != "" && !slices.Contains(dangers[t.hash], t.danger) {
				dangers[t.hash] = append(dangers[t.hash], t.danger)
			}
		}
		for _, t := range r.tips {
			for _, i := range t.own {
				c := r.commits[i]
				out.List = append(out.List, api.Commit{
					Hash: c.hash, Danger: strings.Join(dangers[c.hash], "; "), Ref: api.Escape(t.ref), Folder: api.Escape(r.folder), At: c.at,
					Subject: api.Escape(api.Trim(c.subject, 300)), Author: api.Escape(api.Trim(c.author, 300)),
				})
			}
		}
	}
	return out
}

// gather finds the repositories whose references a state has in another way than
// the host, and has git list what is new in a sandbox with that state.
func (s *Scratch) gather(ctx context.Context, state *manifest.Manifest, shown Shown) ([]*repository, error) {
	list := repositories(state, func(dir string) bool { return s.isRepository(state, dir) })
	switch r, err := s.outer(); {
	case err != nil:
		list = append(list, &repository{trouble: "the agent can't commit, since the project's repository isn't shown to it: " + err.Error()})
	case r != nil:
		list = append(list, r)
	}
	list = append(list, s.outerModules()...)
	odd(state, list)
	for _, r := range list {
		if _, err := os.Lstat(s.at(r)); errors.Is(err, os.ErrNotExist) {
			r.trouble = "the agent made this repository, and the project has none there that its commits could be fetched into: run git init there first"
		}
	}
	return list, s.git(ctx, state, list, listScript, func(r *repository) (map[string]string, error) {
		has, err := s.real(ctx, r, call{}, "rev-list", "--no-walk=unsorted", "--exclude="+ours+"*", "--all")
		own, _ := filepath.Rel(s.at(r), s.metadata(r)) // it is below, if it isn't that
		return map[string]string{"has": string(has) + s.began(ctx, r), "was": s.logged(ctx, r), "own": own}, err
	}, func(r *repository, dir, prefix string) error {
		refs, err := git.ReadFile(prefix+"refs", maxRefs)
		if err != nil {
			return err
		}
		objects, err := git.ReadFile(prefix+"commits", maxObjects)
		if err != nil {
			return err
		}
		if r.commits, err = parseCommits(objects); err != nil {
			return fmt.Errorf("cannot read its commits: %w", err)
		}
		if len(r.commits) > maxCommits {
			return fmt.Errorf("it has more than %d new commits, which is more than can be listed", maxCommits)
		}
		head, _ := git.ReadFile(prefix+"head", maxSubject) // without, any may be checked out
		r.head = strings.TrimSpace(strings.TrimPrefix(string(head), "ref:"))
		r.left, err = s.unfetched(ctx, r, prefix)
		if err = cmp.Or(err, r.name(string(refs))); err == nil {
			s.compare(ctx, r, state, shown, dir, prefix+"pack")
		}
		return err
	})
}

// git runs a script of ours with git in a sandbox, for all repositories that have
// no trouble yet. What each gets is given by file name, and what came of it is in
// files that begin with a prefix; dir goes with the sandbox.
func (s *Scratch) git(ctx context.Context, state *manifest.Manifest, list []*repository, script string,
	give func(*repository) (map[string]string, error), take func(r *repository, dir, prefix string) error) error {
	var asked []*repository
	argv, temp := []string{"/bin/sh", "-c", scriptStart + script, "commits"}, make(map[string]string)
	for _, r := range list {
		if r.trouble != "" {
			continue
		}
		names, err := give(r)
		if err != nil {
			r.trouble = err.Error()
		}
		if err != nil || names == nil {
			continue
		}
		asked = append(asked, r)
		argv = append(argv, s.at(r))
		for name, text := range names {
			temp[fmt.Sprintf("%d.%s", len(asked), name)] = text
		}
	}
	if len(asked) == 0 || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ran, err := s.run(ctx, job{
		state: state, argv: argv, temp: temp, wall: gitTime, git: true, home: "[safe]\n\tdirectory = *\n",
		after: func(dir string) error {
			for i, r := range asked {
				prefix := filepath.Join(dir, "state", "tmp", strconv.Itoa(i+1)) + "."
				if _, err := os.Lstat(prefix + "failed"); err == nil {
					text, _ := git.ReadFile(prefix+"said", 64<<10) // else there is nothing to add
					r.trouble = "git can't read its new commits: " + strings.TrimSpace(string(text))
				} else if err := take(r, dir, prefix); err != nil {
					r.trouble = err.Error()
				}
			}
			return context.Cause(ctx)
		},
	})
	if err == nil && ran.overtime {
		err = fmt.Errorf("cannot get at the agent's commits: git took longer than %s", gitTime)
	}
	return err
}

// scriptStart is how the scripts begin: for each repository, whose folder is an
// argument, $n begins the names of its files.
const scriptStart = `ulimit -f 4194304
g() {
	git --no-replace-objects --git-dir="$dir" -c core.bare=true -c core.hooksPath=/dev/null -c core.fsmonitor= -c gc.auto=0 -c maintenance.auto=false -c core.commitGraph=false "$@"
}
many() {
	[ $# -gt 1000 ]
}
i=0
for dir; do
	i=$((i+1)); n=/tmp/$i
`

var (
	autostashes = strings.Join(frozen.Autostashes, " ")
	foreign     = strings.Join(frozen.Foreign, `\|`) + `\|refs/stash/`
)

// listScript lists what leads to commits, and which of those are new: neither the host
// has them, nor had it when the session took its git over.
var listScript = `	if many "$dir"/worktrees/*; then
		echo "it has more than 1000 working trees" >$n.said; echo failed >$n.failed
		continue
	fi
	form='%(if)%(*objectname)%(then)%(*objectname)%(else)%(objectname)%(end) %(refname)'
	head="$dir/$(cat $n.own)/HEAD"
	[ ! -f "$head" ] || [ -h "$head" ] || head -n 1 "$head" >$n.head
	{
		g for-each-ref --format="$form" refs/heads &&
		for head in "$dir"/HEAD "$dir"/worktrees/*/HEAD; do
			[ ! -f "$head" ] || [ -h "$head" ] || printf '%s HEAD\n' "$(head -n 1 "$head")"
		done &&
		g for-each-ref --format="$form" refs/tags refs/notes &&
		if g rev-parse -q --verify refs/stash >/dev/null; then
			{ g log -g --format='%H %gD' refs/stash; g rev-parse refs/stash | sed 's,$, refs/stash@{0},'; } | grep -vFf $n.was || :
		fi &&
		for own in "$dir" "$dir"/worktrees/*; do for file in ` + autostashes + `; do
			[ ! -f "$own/$file" ] || [ -h "$own/$file" ] || printf '%s refs/stash@{autostash}\n' "$(head -n 1 "$own/$file")"
		done; done &&
		g for-each-ref --format="$form/" | grep -v ' \(` + foreign + `\)' | sed 's,/$,,' &&
		(for dir in "$dir"/worktrees/*; do g for-each-ref --format="$form" refs/bisect refs/rewritten refs/worktree || :; done)
	} >$n.refs 2>$n.said &&
		g cat-file --batch-check='%(objectname) %(objecttype)' <$n.has >$n.there 2>>$n.said &&
		sed -n 's/^\([0-9a-f]\{40,64\}\) .*/\1/p' $n.refs >$n.ask &&
		sed -n 's/^\([0-9a-f]*\) commit$/^\1/p' $n.there >>$n.ask &&
		g rev-list --topo-order --max-count=10001 --stdin <$n.ask >$n.new 2>>$n.said &&
		g cat-file --batch <$n.new >$n.commits 2>>$n.said || echo failed >$n.failed
	{
		sed 's/^^*/^/' $n.ask
		g cat-file --batch-check='%(objectname) %(objecttype)' <$n.was | sed -n 's/^\([0-9a-f]*\) commit$/^\1/p'
	} >$n.known 2>/dev/null
	g rev-list --count --reflog --stdin <$n.known >$n.logged 2>/dev/null || :
	g for-each-ref --format='%(objecttype) %(objectname) %(refname)' refs/tags 2>/dev/null | sed -n 's/^tag //p' >$n.tags
` + packScript + `done </dev/null
`

// packScript packs new commits, their trees and what isn't large. Git of the host reads it
// where nothing else is, see apart.
const packScript = `	g pack-objects -q --revs --thin --stdout --filter=blob:limit=1m <$n.ask >$n.pack 2>$n.unpacked || rm -f $n.pack
`

// repositories finds those whose references are in a state's upper. Is says whether a
// folder in the project is a repository's.
func repositories(state *manifest.Manifest, is func(dir string) bool) (out []*repository) {
	found := make(map[string]bool)
	if state == nil {
		return nil
	}
	for p, e := range state.All() {
		dir := ofReference(p, is)
		if dir == "" || found[dir] || e.Kind == manifest.KindDir || len(found) == maxRepositories {
			continue
		}
		found[dir] = true
		r := &repository{dir: dir, folder: strings.TrimPrefix(path.Dir("/"+dir), "/")}
		if before, module, ok := strings.Cut(dir, ".git/modules/"); ok {
			r.folder = path.Join(before, module)
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *repository) int { return strings.Compare(a.folder, b.folder) })
	return out
}

// odd finds what no git makes where git reads: a pipe, at which it would wait, or a link to
// what isn't known to be a file. Nothing waits at a socket, and hooks aren't run.
func odd(state *manifest.Manifest, list []*repository) {
	for p, e := range state.All() {
		r := innermost(list, p)
		if r == nil || r.trouble != "" || e.Kind == manifest.KindSocket || isPlain(state, r.dir, p, e) {
			continue
		}
		if rest := strings.TrimPrefix(p, r.dir+"/"); !strings.HasPrefix(rest, "hooks/") && !strings.HasPrefix(rest, "modules/") {
			r.trouble = "git isn't run on it, since its " + rest + " isn't a file"
		}
	}
}

// innermost is the repository in whose folder a path is; nil for none.
func innermost(list []*repository, p string) (found *repository) {
	for _, r := range list {
		if strings.HasPrefix(p, r.dir+"/") && (found == nil || len(r.dir) > len(found.dir)) {
			found = r
		}
	}
	return found
}

// isPlain says whether git finds a file or a folder of a repository's there, or nothing.
func isPlain(state *manifest.Manifest, dir, p string, e *manifest.Entry) bool {
	switch e.Kind {
	case manifest.KindFile, manifest.KindDir, manifest.KindWhiteout:
		return true
	case manifest.KindSymlink:
		to := path.Join(path.Dir(p), e.Target)
		is := state.Lookup(to)
		return is != nil && !path.IsAbs(e.Target) && (is.Kind == manifest.KindFile || is.Kind == manifest.KindDir && manifest.Within(to, dir))
	}
	return false
}

// isRepository says whether a folder in the project is a repository's: on the host, as the
// session took it over, or in a state.
func (s *Scratch) isRepository(state *manifest.Manifest, dir string) bool {
	at := filepath.Join(s.cfg.Workspace, dir)
	_, err := os.Lstat(filepath.Join(at, "HEAD"))
	return err == nil || state.Lookup(dir+"/HEAD") != nil || s.frozen(&repository{dir: dir}, at) != ""
}

// name finds out which references lead to new commits, and gives them names that
// can be typed into a shell as they are, whatever the agent called them.
func (r *repository) name(refs string) error {
	at := make(map[string]int, len(r.commits))
	for i := range r.commits {
		at[r.commits[i].hash] = i
	}
	seen, names, known := make([]bool, len(r.commits)), make(map[string]bool), false
	for line := range strings.Lines(refs) {
		hash, ref, _ := strings.Cut(strings.TrimSpace(line), " ")
		first, ok := at[hash]
		branch, isBranch := strings.CutPrefix(ref, "refs/heads/")
		t := tip{hash: hash, ref: ref, name: branch, head: r.head == ref || r.head == hash}
		known = known || t.head
		switch {
		case !ok || !isBranch && seen[first]:
			continue
		case !isBranch:
			t.name = r.nameOf(ref, hash)
		case !plainName(branch):
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
		if r.tips = append(r.tips, t); len(r.tips) > maxTips {
			return fmt.Errorf("it has more than %d branches with new commits", maxTips)
		}
	}
	for i := range r.tips { // any may be checked out if that can't be read plainly
		r.tips[i].head = r.tips[i].head || !known
	}
	return nil
}

// nameOf is the name of what no branch leads to: a stash, notes, or else a commit.
func (r *repository) nameOf(ref, hash string) string {
	name := ""
	if n, ok := strings.CutPrefix(ref, "refs/stash@{"); ok && strings.Trim(n, "0123456789") == "}" {
		name = "stash-" + strings.TrimSuffix(n, "}")
	} else if n, ok := strings.CutPrefix(ref, "refs/notes/"); ok && plainName(n) {
		name = "notes/" + n
	}
	within := func(a, b string) bool { return a == b || strings.HasPrefix(a, b+"/") }
	if name == "" || slices.ContainsFunc(r.tips, func(t tip) bool { return within(t.name, name) || within(name, t.name) }) {
		return "commit-" + hash[:12]
	}
	return name
}

// maxTags is how many tags are named.
const maxTags = 5

// unfetched says what git in the sandbox had and isn't fetched: what only its logs name, and
// what tags are beside the commits that they lead to.
func (s *Scratch) unfetched(ctx context.Context, r *repository, prefix string) (out []string, err error) {
	logged, err := git.ReadFile(prefix+"logged", maxRefs)
	if err != nil {
		return nil, err
	}
	if n, err := strconv.Atoi(strings.TrimSpace(string(logged))); err == nil && n > 0 {
		out = append(out, "not fetched: "+api.Counted(n, "commit")+" that only its logs name, as after an amend, a reset or a rebase")
	}
	out = append(out, s.beside(r)...)
	tags, err := git.ReadFile(prefix+"tags", maxRefs)
	if err != nil {
		return nil, err
	}
	var names []string
	had := s.tags(ctx, r)
	for line := range strings.Lines(string(tags)) {
		hash, ref, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.Contains(had, hash) {
			names = append(names, strings.TrimPrefix(ref, "refs/tags/"))
		}
	}
	if n := len(names); n > 0 {
		if n > maxTags {
			names = append(names[:maxTags], fmt.Sprintf("and %d more", n-maxTags))
		}
		out = append(out, "not fetched: the text of "+api.Counted(n, "annotated tag")+": "+strings.Join(names, ", "))
	}
	return out, nil
}

// plainName says whether a branch's name can be a part of a reference and of a
// command line as it is. See git-check-ref-format(1).
func plainName(name string) bool {
	if len(name) > 200 || strings.Trim(name, plainLetters) != "" {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || part[0] == '-' || strings.HasSuffix(part, ".") || strings.HasSuffix(part, ".lock") || strings.Contains(part, "..") {
			return false
		}
	}
	return true
}

const plainLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-"
