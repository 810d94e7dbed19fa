package scratch

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/session/api"
)

// asAda is what an agent's git is told first.
const asAda = `export GIT_AUTHOR_NAME=Ada GIT_AUTHOR_EMAIL=ada@example.org GIT_AUTHOR_DATE="1700000000 +0100" GIT_COMMITTER_NAME=Charles GIT_COMMITTER_EMAIL=c@example.org HOME=/tmp; git config --global safe.directory '*'; set -e; `

// git runs the person's git in a folder of the project.
func (r *rig) git(folder string, args ...string) string {
	r.Helper()
	cmd := exec.Command("git", append([]string{"-C", filepath.Join(r.project, folder), "-c", "user.name=Person", "-c", "user.email=p@example.org"}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// newRepository is newRig with a commit on main.
func newRepository(t testing.TB) *rig {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git to make a repository with")
	}
	r := newRig(t, map[string]string{"a.txt": "one\n"})
	r.commitAll("")
	return r
}

// commitAll makes a folder a repository with all that is in it.
func (r *rig) commitAll(folder string) {
	r.Helper()
	r.git(folder, "init", "-q", "-b", "main")
	r.git(folder, "add", "-A")
	r.git(folder, "commit", "-qm", "first")
}

// notes are the reasons for what can't be had.
func notes(c Commits) string {
	var out []string
	for _, n := range c.Notes {
		out = append(out, n.Path+": "+n.Why)
	}
	return strings.Join(out, "\n")
}

func subjects(c Commits) (out []string) {
	for _, c := range c.List {
		out = append(out, strings.TrimPrefix(c.Ref, "refs/heads/")+" "+c.Subject)
	}
	return out
}

func TestCommitsComeAsCommits(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	head := r.git("", "rev-parse", "HEAD")
	state := r.agent(asAda + `echo two >a.txt; git commit -qam "second"; echo three >b; git add b; git commit -qm "third
more"; git switch -qc topic HEAD~1; echo c >c; git add c; git commit -qm "on topic"; git tag v1; git switch -q main`)
	got, err := r.Commits(t.Context(), state, whole(state))
	r.must(err)
	if want := []string{"main third more", "main second", "topic on topic"}; !slices.Equal(subjects(got), want) || len(got.Notes) != 0 {
		t.Fatalf("the commits are %q, %s", subjects(got), notes(got))
	}
	if c := got.List[0]; c.Author != "Ada <ada@example.org>" || c.At.Unix() != 1700000000 || c.Ref != "refs/heads/main" || c.Folder != "" {
		t.Errorf("it is said to be %+v", c)
	}
	before := r.git("", "for-each-ref")
	for range 2 { // again, too
		fetched, err := r.fetched("abc12", state)
		r.must(err)
		if !slices.Equal(subjects(fetched.Commits), subjects(got)) || fetched.Ref != "refs/stepbox/abc12/" || len(fetched.Notes) > 0 {
			t.Fatalf("fetched are %+v: %s", fetched, notes(fetched.Commits))
		}
		want := []string{"git log -p ..refs/stepbox/abc12/main", "git merge refs/stepbox/abc12/main", "git cherry-pick ..refs/stepbox/abc12/main",
			"git log -p ..refs/stepbox/abc12/topic", "git merge refs/stepbox/abc12/topic", "git cherry-pick ..refs/stepbox/abc12/topic"}
		if !slices.Equal(fetched.How, want) {
			t.Errorf("what to do is %q", fetched.How)
		}
	}
	if got := r.git("", "log", "-1", "--format=%an %cn %s %H", "refs/stepbox/abc12/main"); got != "Ada Charles third more "+got[len(got)-40:] || !strings.HasSuffix(got, subjectsHash(t, r, state)) {
		t.Errorf("fetched is %q", got)
	}
	after := r.git("", "for-each-ref", "refs/heads", "refs/tags", "refs/remotes")
	if before != after || r.git("", "rev-parse", "HEAD") != head || r.git("", "status", "--porcelain") != "" {
		t.Errorf("the repository was\n%s\nand is\n%s", before, after)
	}
	if left, err := filepath.Glob(filepath.Join(r.project, ".git", "FETCH_HEAD")); err != nil || len(left) > 0 {
		t.Errorf("there is %v, %v", left, err)
	}
	r.git("", "merge", "-q", "refs/stepbox/abc12/main")
	now, err := r.Commits(t.Context(), state, whole(state))
	r.must(err)
	if want := []string{"topic on topic"}; !slices.Equal(subjects(now), want) {
		t.Errorf("after the merge there are %q", subjects(now))
	}
}

// subjectsHash is the newest commit that is listed.
func subjectsHash(t *testing.T, r *rig, state stateOf) string {
	got, err := r.Commits(t.Context(), state, whole(state))
	r.must(err)
	return got.List[0].Hash
}

func TestNoCommitsTakeNoSandbox(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	other := newRig(t, nil).agent("mkdir -p x/y; echo >x/y/HEAD")
	r.cfg.DataDir = "/proc" // so that no sandbox can be made
	for _, state := range []stateOf{nil, other} {
		got, err := r.Commits(t.Context(), state, whole(state))
		if err != nil || len(got.List)+len(got.Notes) > 0 {
			t.Errorf("there are %+v, %v", got, err)
		}
	}
}

func TestCommitsOfAllKindsOfRepositories(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", "sub/b.txt": "one\n", "my lib/c.txt": "x"})
	r.commitAll("sub")
	r.commitAll("my lib")
	r.git("", "init", "-q", "-b", "main")
	r.git("", "-c", "protocol.file.allow=always", "submodule", "add", "-q", filepath.Join(r.project, "sub"), "module")
	r.git("", "add", "a.txt")
	r.git("", "commit", "-qm", "first")
	state := r.agent(asAda + `
		for d in sub "my lib" module; do (cd "$d"; echo more >more; git add more; git commit -qm "in $d"); done
		git commit -qm "detached" --allow-empty; git checkout -q --detach; git commit -qm "loose" --allow-empty
		git worktree add -q --detach ../$(basename $PWD)/tree HEAD~1 2>/dev/null; (cd tree; git commit -qm "in a worktree" --allow-empty)
		git init -q new; (cd new; git commit -qm "new" --allow-empty); git stash list`)
	got, err := r.fetched("s1", state)
	r.must(err)
	want := []string{"main detached", "HEAD loose", "HEAD in a worktree", "main in module", "main in my lib", "main in sub"}
	slices.Sort(want)
	have := subjects(got.Commits)
	slices.Sort(have)
	if !slices.Equal(have, want) {
		t.Errorf("the commits are %q\n%s", have, notes(got.Commits))
	}
	if n := notes(got.Commits); !strings.Contains(n, "new: the agent made this repository") || strings.Count(n, "\n") > 0 {
		t.Errorf("the notes are %s", n)
	}
	if how := strings.Join(got.How, "\n"); !strings.Contains(how, "git -C 'my lib' merge refs/stepbox/s1/main\n") || !strings.Contains(how, "git -C module cherry-pick ") {
		t.Errorf("what to do is\n%s", how)
	}
	for folder, want := range map[string]string{"module": "in module", "sub": "in sub", "my lib": "in my lib", "": "detached"} {
		if got := r.git(folder, "log", "-1", "--format=%s", "refs/stepbox/s1/main"); got != want {
			t.Errorf("in %q there is %q", folder, got)
		}
	}
	if refs := r.git("", "for-each-ref", "--format=%(refname) %(subject)", "refs/stepbox"); strings.Count(refs, "refs/stepbox/s1/commit-") != 2 {
		t.Errorf("the references are\n%s", refs)
	}
}

// What was fetched stays, whatever becomes of the agent's branch: a person may have meant
// to merge it, and git notes nowhere what such a reference was.
func TestWhatWasFetchedStays(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	fetch := func(script string) Fetched {
		t.Helper()
		got, err := r.fetched("s1", r.agent(asAda+`export GIT_COMMITTER_DATE="1700000000 +0100"; `+script))
		r.must(err)
		if len(got.Notes) > 0 {
			t.Fatalf("the notes are %s", notes(got.Commits))
		}
		return got
	}
	fetch(`git commit -qm "first way" --allow-empty; git switch -qc fix HEAD~1; git commit -qm "a fix" --allow-empty`)
	first := r.git("", "rev-parse", "refs/stepbox/s1/main")
	got := fetch(`git commit -qm "other way" --allow-empty; git switch -qc fix/one HEAD~1; git commit -qm "another fix" --allow-empty; git branch fix/two`)
	if how := strings.Join(got.How, "\n"); !strings.Contains(how, "git log -p ..refs/stepbox/s1/commit-"+first[:12]) || strings.Contains(how, "fix/") {
		t.Errorf("what to do is\n%s", how)
	}
	fetch(`git commit -qm "other way" --allow-empty; git commit -qm "and on" --allow-empty`)
	refs := strings.Split(r.git("", "for-each-ref", "--format=%(subject)", "refs/stepbox/s1"), "\n")
	slices.Sort(refs)
	if want := []string{"a fix", "and on", "another fix", "first way"}; !slices.Equal(refs, want) {
		t.Errorf("the references are %q", refs)
	}
}

// A branch, or a submodule, may be called as a folder of git's: nothing but its reference
// tells of its commits.
func TestNamesThatAreGitsOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"lib/b.txt": "one\n"})
	r.commitAll("lib")
	r.git("", "init", "-q", "-b", "fix/logs/rotate")
	for _, name := range []string{"logs", "deep/refs/worktrees"} {
		r.git("", "-c", "protocol.file.allow=always", "submodule", "add", "-q", filepath.Join(r.project, "lib"), name)
		r.git(name, "switch", "-qc", "fix/worktrees/rotate")
	}
	r.git("", "commit", "-qm", "first")
	state := r.agent(asAda + `git commit -qm project --allow-empty
		for d in logs deep/refs/worktrees; do git -C $d commit -qm "in $d" --allow-empty; done`)
	got, err := r.fetched("s1", state)
	r.must(err)
	want := []string{"fix/logs/rotate project", "fix/worktrees/rotate in deep/refs/worktrees", "fix/worktrees/rotate in logs"}
	if have := subjects(got.Commits); !slices.Equal(have, want) || len(got.Notes) > 0 {
		t.Errorf("the commits are %q, %s", have, notes(got.Commits))
	}
}

// A repository outside of the project has what the session wrote of it, whatever
// that is; one that can't be shown has nothing, and says why.
func TestWhereTheGitFolderIsOutside(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.git("", "worktree", "add", "-q", "-b", "tree", "tree")
	inner := New(r.cfg)
	inner.cfg.Workspace = filepath.Join(r.project, "tree")
	got, err := inner.Commits(t.Context(), nil, whole(nil))
	if err != nil || len(got.List)+len(got.Notes) > 0 {
		t.Errorf("nothing was written: %v, %+v", err, got)
	}
	inner.cfg.Folder = t.TempDir()
	upper := inner.cfg.outer()
	for _, dir := range []string{"refs/heads", "objects/pack"} {
		r.must(os.MkdirAll(filepath.Join(upper, dir), 0o755))
	}
	r.must(unix.Mkfifo(filepath.Join(upper, "refs/heads/fifo"), 0o644))
	r.must(os.Symlink("/nowhere/at/all", filepath.Join(upper, "HEAD")))
	r.must(os.WriteFile(filepath.Join(upper, "refs/heads/bad"), []byte("nonsense\n"), 0o644))
	r.must(os.WriteFile(filepath.Join(upper, "config"), []byte("[core]\n\tfsmonitor = touch /tmp/ran\n[alias]\n\tbundle = !touch /tmp/ran\n"), 0o644))
	if got, err := inner.Fetch(t.Context(), "s1", nil, nil); err != nil || len(got.List) > 0 || got.Ref != "" {
		t.Errorf("of nonsense there is %v, %+v", err, got)
	}
	apart := filepath.Join(r.project, "apart")
	r.git("", "init", "-q", "--separate-git-dir="+filepath.Join(r.project, "elsewhere"), apart)
	inner.cfg.Workspace = apart
	got, err = inner.Commits(t.Context(), nil, whole(nil))
	if err != nil || len(got.Notes) != 1 || !strings.Contains(notes(got), "isn't shown to it") {
		t.Errorf("a repository that doesn't lead back: %v, %+v", err, got)
	}
}

// The submodules of a linked working tree have their repositories outside as well.
func TestWhatIsOutsideAndNotFetchedIsSaid(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"lib/b.txt": "one\n"})
	r.commitAll("lib")
	r.git("", "init", "-q", "-b", "main")
	r.git("", "-c", "protocol.file.allow=always", "submodule", "add", "-q", filepath.Join(r.project, "lib"), "deep/logs")
	r.git("", "commit", "-qm", "first")
	r.git("", "worktree", "add", "-q", "-b", "tree", "tree")
	r.git("tree", "-c", "protocol.file.allow=always", "submodule", "-q", "update", "--init")
	inner := New(r.cfg)
	inner.cfg.Workspace, inner.cfg.Folder = filepath.Join(r.project, "tree"), t.TempDir()
	own := filepath.Join(inner.cfg.outer(), "worktrees/tree/modules/deep/logs")
	r.must(os.MkdirAll(filepath.Join(own, "refs/heads"), 0o755))
	r.must(os.WriteFile(filepath.Join(own, "index"), nil, 0o644))
	if got := inner.outerModules(); len(got) > 0 {
		t.Errorf("of a look there is %+v", got[0])
	}
	r.must(os.WriteFile(filepath.Join(own, "refs/heads/main"), nil, 0o644))
	got, err := inner.Commits(t.Context(), nil, whole(nil))
	r.must(err)
	if n := notes(got); !strings.HasPrefix(n, "deep/logs: what the agent committed in this submodule can't be fetched") || strings.Contains(n, "\n") {
		t.Errorf("the notes are %q", n)
	}
	r.must(os.WriteFile(filepath.Join(inner.cfg.outer(), "HEAD"), nil, 0o644))
	r.must(os.MkdirAll(filepath.Join(inner.cfg.Folder, "git"), 0o755))
	r.must(os.WriteFile(filepath.Join(inner.cfg.Folder, "git/taken.json"), []byte(`{"from":"/x/.git"}`), 0o644))
	inner.cfg.Workspace = t.TempDir() // as where its .git is gone
	if got, err := inner.Commits(t.Context(), nil, whole(nil)); err != nil || !strings.Contains(notes(got), "is no working tree of its repository any more") {
		t.Errorf("of one that is gone there is %v, %q", err, notes(got))
	}
}

func TestShallowRepositories(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.git("", "commit", "-qm", "second", "--allow-empty")
	shallow := newRig(t, nil)
	shallow.must(os.Remove(shallow.project))
	r.git("", "clone", "-q", "--depth=1", "file://"+r.project, shallow.project)
	state := shallow.agent(asAda + "git commit -qm more --allow-empty")
	got, err := shallow.fetched("s1", state)
	shallow.must(err)
	if !slices.Equal(subjects(got.Commits), []string{"main more"}) || len(got.Notes) > 0 {
		t.Errorf("fetched are %q, %s", subjects(got.Commits), notes(got.Commits))
	}
}

// Names are the agent's; what a person is told to type isn't.
func TestHostileBranches(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	state := r.agent(asAda + `for b in '$(touch${IFS}pwned)' "a'b;c" "-x" "$(printf 'bi\342\200\256di')" "ok/then"; do
		git update-ref "refs/heads/$b" $(git commit-tree -p HEAD -m "of $(printf 'x\033[31m')$b" HEAD^{tree}); done`)
	got, err := r.fetched("s1", state)
	r.must(err)
	if len(got.List) != 5 || len(got.Notes) > 0 {
		t.Fatalf("the commits are %q, %s", subjects(got.Commits), notes(got.Commits))
	}
	for _, c := range got.List {
		if api.Unclear(c.Subject) || api.Unclear(c.Ref) {
			t.Errorf("said as it is: %q %q", c.Ref, c.Subject)
		}
	}
	for _, line := range got.How {
		if strings.Trim(line, "abcdefghijklmnopqrstuvwxyz0123456789 ./-") != "" {
			t.Errorf("a person is told to type %q", line)
		}
	}
	if refs := r.git("", "for-each-ref", "--format=%(refname)", "refs/stepbox"); strings.Count(refs, "/branch-") != 4 || !strings.Contains(refs, "refs/stepbox/s1/ok/then") {
		t.Errorf("the references are\n%s", refs)
	}
}

// What the agent put into its repository runs in the sandbox, if at all.
func TestHostileRepositories(t *testing.T) {
	t.Parallel()
	for name, trap := range map[string]string{
		"hooks":      `for h in reference-transaction post-update pre-receive post-commit; do printf '#!/bin/sh\ntouch %s\n' "$OUT" >.git/hooks/$h; chmod +x .git/hooks/$h; done`,
		"hooks path": `mkdir h; printf '#!/bin/sh\ntouch %s\n' "$OUT" >h/reference-transaction; chmod +x h/*; git config core.hooksPath h`,
		"links":      `mv .git/refs/heads/main .git/x; ln -s ../../x .git/refs/heads/main; mv .git/logs y; mv y .git/z; ln -s z .git/logs; mkfifo .git/hooks/p`,
		"aliases":    `for a in bundle rev-list cat-file for-each-ref update-ref fetch; do git config alias.$a "!touch $OUT"; done; git config core.pager "touch $OUT"`,
		"fsmonitor":  `printf '#!/bin/sh\ntouch %s\n' "$OUT" >f; chmod +x f; git config core.fsmonitor ./f; git config core.sshCommand "touch $OUT"; git config gpg.program "touch $OUT"`,
		"filter":     `echo '* filter=x diff=x' >.gitattributes; git config filter.x.clean "touch $OUT"; git config filter.x.smudge "touch $OUT"; git config diff.x.textconv "touch $OUT"`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			config, err := os.ReadFile(filepath.Join(r.project, ".git/config"))
			r.must(err)
			out := filepath.Join(r.cfg.Home, "ran")
			state := r.agent(asAda + `git commit -qm work --allow-empty; OUT=` + out + `; ` + trap)
			got, err := r.fetched("s1", state)
			r.must(err)
			if !slices.Equal(subjects(got.Commits), []string{"main work"}) || len(got.Notes) > 0 {
				t.Errorf("the commits are %q, %s", subjects(got.Commits), notes(got.Commits))
			}
			if _, err := os.Lstat(out); err == nil {
				t.Error("the trap ran on the host")
			}
			if now, err := os.ReadFile(filepath.Join(r.project, ".git/config")); err != nil || !bytes.Equal(now, config) {
				t.Errorf("the real configuration changed: %v", err)
			}
		})
	}
}

func TestBrokenRepositories(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ trap, note string }{
		"an object is gone":     {`git commit -qm two --allow-empty; t=$(git rev-parse HEAD~1); rm -rf .git/objects/$(echo $t | cut -c1-2)`, "can't read"},
		"no objects at all":     {`rm -rf .git/objects/*`, "git can't read its new"},
		"a link for git folder": {`mv .git real; ln -s real .git`, ""},
		"a pipe":                {`mkfifo .git/packed-refs`, "its packed-refs isn't a file"},
		"a pipe behind a link":  {`mkfifo p; ln -s ../../../p .git/refs/heads/x`, "its refs/heads/x isn't a file"},
		"a pipe in a folder":    {`mkdir p; mkfifo p/x; ln -s ../../../p .git/refs/heads/x`, "its refs/heads/x isn't a file"},
		"a terminal":            {`ln -s /dev/tty .git/MERGE_HEAD`, "its MERGE_HEAD isn't a file"},
		"many working trees":    {`for i in $(seq 1001); do mkdir -p .git/worktrees/$i; done; touch .git/worktrees/1/HEAD`, "it has more than 1000 working trees"},
		"another one's objects": {`git commit -qm x --allow-empty; h=$(git rev-parse HEAD); f=.git/objects/$(echo $h | cut -c1-2)/$(echo $h | cut -c3-); chmod +w $f; echo garbage >$f`, "can't"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			state := r.agent(asAda + `git commit -qm work --allow-empty; ` + test.trap)
			refs := r.git("", "for-each-ref")
			got, err := r.fetched("s1", state)
			r.must(err)
			if n := notes(got.Commits); test.note == "" && n != "" || !strings.Contains(n, test.note) {
				t.Errorf("the notes are %q", n)
			}
			if test.note != "" && r.git("", "for-each-ref") != refs {
				t.Error("the references changed")
			}
			r.git("", "fsck", "--strict")
			if len(got.List)+len(got.How) > 0 {
				t.Errorf("there are commits: %+v", got)
			}
		})
	}
}

// What isn't in the record is named in a line.
func TestWhatIsTooDeepIsNamed(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	state := r.agent(asAda + `git commit -qm work --allow-empty; cd .git/refs/heads; for i in $(seq 300); do mkdir deep; cd deep; done`)
	_, err := r.Commits(t.Context(), state, whole(state))
	if err == nil || !strings.Contains(err.Error(), ".git/refs/heads/deep/") || len(err.Error()) > 400 {
		t.Errorf("it is said %v", err)
	}
}
