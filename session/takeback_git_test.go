package session_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
)

// onHost runs lines in a repository, as whoever commits there.
func onHost(t *testing.T, project, lines string) string {
	t.Helper()
	cmd := exec.Command("sh", "-ec", committing+lines)
	cmd.Dir, cmd.Env = project, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", lines, err, out)
	}
	return strings.TrimSpace(string(out))
}

const committing = "export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@y GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x@y; "

// driveGit is drive in a repository.
func driveGit(t *testing.T) *driven {
	t.Helper()
	needGit(t)
	return drive(t, api.ModePolicy, func(project string) {
		onHost(t, project, "git init -q -b main; echo 1 >f; git add -A; git commit -qm first; echo said >>.git/info/exclude")
	})
}

// git is what the agent's git says.
func (d *driven) git(lines string) string {
	d.Helper()
	n := d.run("(" + committing + lines + ") >said 2>&1")
	out := strings.TrimSpace(d.has("said"))
	d.take(only(n))
	return out
}

// TestTakeBackCommit: a roll back takes a commit out of the branch, and no object away.
func TestTakeBackCommit(t *testing.T) {
	t.Parallel()
	d := driveGit(t)
	n := d.run(committing + "echo 2 >f; git commit -qam second")
	second := d.git("git rev-parse HEAD")
	_, done := d.take(only(n))
	if got, want := d.git("git log --format=%s; git status --short; git cat-file -t "+second), "first\ncommit"; got != want || d.review(n) != api.ReviewRolledBack {
		t.Errorf("taken back, git says %q, want %q, and #%d is %q", got, want, n, d.review(n))
	}
	d.take(api.RollbackTarget{Redo: done.ID})
	if got, want := d.git("git log --format=%s; git status --short; git fsck --no-progress"), "second\nfirst"; got != want {
		t.Errorf("redone, git says %q, want %q", got, want)
	}
	d.take(api.Before(n))
	if got, want := d.git("git log --format=%s; git status --short; git fsck --no-progress --no-dangling"), "first"; got != want {
		t.Errorf("before it, git says %q, want %q", got, want)
	}
}

// TestTakeBackMergedCommit: what was committed before git was taken over from the project
// anew isn't rolled back in git, and objects that the project has beside the agent's stay.
func TestTakeBackMergedCommit(t *testing.T) {
	t.Parallel()
	d := driveGit(t)
	n := d.run(committing + "echo 2 >f; git commit -qam second")
	d.again(func(upper string) {
		onHost(t, d.project, "cp -r "+filepath.Join(upper, ".git/objects")+" .git; git merge -q "+onHost(t, d.project, "cat "+filepath.Join(upper, ".git/refs/heads/main"))+`
			at=$(git rev-parse HEAD | cut -c1-2); i=0
			while i=$((i+1)); case $(echo $i | git hash-object --stdin) in $at*) false; esac; do :; done; echo $i >g; git add g; git commit -qm third`)
	})
	fine := func(when, log string) {
		t.Helper()
		if got := d.git("git log --format=%s; git diff --cached --stat; git show --format= HEAD >/dev/null; git fsck --no-progress --no-dangling"); got != log {
			t.Errorf("%s git says %q, want %q", when, got, log)
		}
	}
	var last api.Checkpoint
	for e, err := range d.read.Recorded(t.Context(), d.ID(), 0) {
		d.must(err)
		if e.Checkpoint != nil && e.Checkpoint.Action == 0 {
			last = *e.Checkpoint
		}
	}
	m, err := manifest.Load(t.Context(), bodies{d.store}, hash(t, last.Root))
	d.must(err)
	for path, e := range m.All() {
		if dir, _ := manifest.Split(path); e.Opaque && dir == ".git/objects" {
			if _, err := os.Lstat(filepath.Join(d.project, path)); err == nil {
				t.Errorf("by the record %s hides objects of the project's", path)
			}
		}
	}
	fine("resumed,", "third\nsecond\nfirst")
	targets := []api.RollbackTarget{only(n), api.Before(n), {Selection: &api.Selection{}}}
	for i, name := range []string{"alone", "to before", "all"} {
		target := targets[i]
		plan, err := d.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: target})
		d.must(err)
		for _, p := range plan.Problems {
			if name == "all" || p.Path != ".git" || !strings.Contains(p.Why, "taken over from the project anew") {
				t.Errorf("%s: %s: %s", name, p.Path, p.Why)
			}
		}
		if len(plan.Problems) != 1 && name != "all" {
			t.Errorf("%s: the plan says nothing of git: %+v", name, plan)
		}
		if len(plan.Files) > 0 {
			d.take(target)
		}
		fine(name+",", "third\nsecond\nfirst")
	}
	fourth := d.run(committing + "echo 4 >f; git commit -qam fourth")
	d.take(only(fourth))
	fine("a later one taken back,", "third\nsecond\nfirst")
}
