package git

import (
	"path/filepath"
	"strings"
	"testing"
)

// Head says what git says, wherever the reference is kept.
func TestHeadIsGits(t *testing.T) {
	needGit(t)
	dir, home := t.TempDir(), t.TempDir()
	git := func(args ...string) string { return strings.TrimSpace(oracle(t, dir, home, "", args...)) }
	check := func(what, at string) {
		t.Helper()
		commit, branch := Open(at, Person{}).Head()
		out := strings.TrimSpace(oracle(t, at, home, "", "rev-parse", "HEAD"))
		if commit != out {
			t.Errorf("%s: the commit is %q, git says %q", what, commit, out)
		}
		if want := strings.TrimSpace(oracle(t, at, home, "", "rev-parse", "--symbolic-full-name", "HEAD")); branch != strings.TrimSuffix(want, "HEAD") {
			t.Errorf("%s: the branch is %q, git says %q", what, branch, want)
		}
	}
	git("init", "-q", "-b", "main")
	if commit, branch := Open(dir, Person{}).Head(); commit != "" || branch != "refs/heads/main" {
		t.Errorf("before the first commit it is %q on %q", commit, branch)
	}
	git("commit", "-q", "--allow-empty", "-m", "one")
	check("loose", dir)
	git("pack-refs", "--all")
	check("packed", dir)
	git("commit", "-q", "--allow-empty", "-m", "two") // loose again, and newer than what is packed
	check("both", dir)
	git("checkout", "-q", "-b", "some/branch")
	check("a branch with a slash", dir)
	tree := filepath.Join(t.TempDir(), "tree")
	git("worktree", "add", "-q", "-b", "other", tree)
	check("a linked worktree", tree)
	git("checkout", "-q", "--detach")
	check("detached", dir)
}

// A reference leads nowhere but below refs, and what is malformed is not known.
func TestHeadIsBounded(t *testing.T) {
	hash := strings.Repeat("a1", 20)
	for what, files := range map[string]map[string]string{
		"out of the repository": {".git/HEAD": "ref: refs/../../secret\n", "secret": hash},
		"to another file":       {".git/HEAD": "ref: config\n", ".git/config": hash},
		"a loop":                {".git/HEAD": "ref: refs/heads/a\n", ".git/refs/heads/a": "ref: refs/heads/a\n"},
		"no hash":               {".git/HEAD": "ref: refs/heads/a\n", ".git/refs/heads/a": "password\n"},
		"too long":              {".git/HEAD": strings.Repeat("x", maxRef+1)},
		"kept as a table":       {".git/HEAD": "ref: refs/heads/.invalid\n"},
	} {
		dir := t.TempDir()
		put(t, dir, files)
		if commit, branch := Open(dir, Person{}).Head(); commit != "" || branch != "" {
			t.Errorf("%s: it is %q on %q", what, commit, branch)
		}
	}
	dir := t.TempDir()
	put(t, dir, map[string]string{".git/HEAD": "ref: refs/heads/a\n", ".git/packed-refs": "# pack-refs with: peeled\n" + hash + " refs/heads/ab\n" + strings.Repeat("b2", 20) + " refs/heads/a\n^" + hash + "\n"})
	if commit, _ := Open(dir, Person{}).Head(); commit != strings.Repeat("b2", 20) {
		t.Errorf("of the packed ones it is %q", commit)
	}
}
