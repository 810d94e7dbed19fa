package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRefsAreGits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a [b] *c")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", args, out)
		}
		return strings.TrimSpace(string(out))
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git to compare with")
	}
	git("init", "-q", "-b", "main")
	hash := make(map[string]string)
	for _, name := range []string{"packed", "tagged", "loose", "stashed", "apart", "detached", "ours"} {
		git("commit", "-qm", name, "--allow-empty")
		hash[name] = git("rev-parse", "HEAD")
	}
	metadata := filepath.Join(dir, ".git")
	git("branch", "packed", hash["packed"])
	git("tag", "-am", "x", "v1", hash["tagged"])
	git("update-ref", "refs/remotes/origin/main", hash["stashed"])
	git("update-ref", "refs/stepbox/s/main", hash["ours"])
	git("pack-refs", "--all")
	git("update-ref", "refs/heads/a/b", hash["loose"])
	git("update-ref", "refs/stepbox/s/other", hash["ours"])
	git("worktree", "add", "-q", "--detach", filepath.Join(t.TempDir(), "tree"), hash["apart"])
	git("checkout", "-q", "--detach", hash["detached"])
	git("branch", "-D", "main")
	if err := os.Symlink("a/b", filepath.Join(metadata, "refs/heads/link")); err != nil {
		t.Fatal(err)
	}
	want := []string{git("rev-parse", "v1")}
	for _, name := range []string{"packed", "loose", "stashed", "apart", "detached"} {
		want = append(want, hash[name])
	}
	got, err := Refs(metadata, "refs/stepbox/")
	slices.Sort(want)
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("they name\n%q, want\n%q, %v", got, want, err)
	}
	if all, err := Refs(metadata, "refs/none/"); err != nil || !slices.Contains(all, hash["ours"]) {
		t.Errorf("all name %q, %v", all, err)
	}
	if root, at := Above(filepath.Join(dir, ".git/refs")); root != dir || at != metadata {
		t.Errorf("it is in %q, %q", root, at)
	}
	if err := os.Mkdir(filepath.Join(metadata, "reftable"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Refs(metadata, "refs/stepbox/"); err == nil {
		t.Error("references in a table were read")
	}
	if _, err := Refs(t.TempDir(), ""); err == nil {
		t.Error("a folder without references has some")
	}
}
