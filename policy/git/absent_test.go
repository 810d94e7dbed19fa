package git

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What isn't shown is unchanged to git, whatever the index's version, and stays in what
// is committed.
func TestUnmissed(t *testing.T) {
	for _, version := range []string{"2", "3", "4"} {
		for _, format := range []string{"sha1", "sha256"} {
			root, front := t.TempDir(), t.TempDir()
			shell(t, root, `git init -q --object-format=`+format+` .; mkdir conf; for i in $(seq 40); do echo $i >conf/$i; done; echo key >.npmrc
git add -A; git commit -qm first; git update-index --index-version `+version)
			hides := func(path string) bool { return path == ".npmrc" || path == "conf/7" || path == "not/there" }
			unmissed, err := Unmissed(root, front, ".git", hides)
			if err != nil || !slices.Equal(unmissed, []string{".npmrc", "conf/7"}) {
				t.Fatalf("%s, %s: %q, %v", version, format, unmissed, err)
			}
			shell(t, root, "rm .npmrc conf/7; cp -a "+front+"/. .") // as an overlay would show it
			if got := shell(t, root, "git status --porcelain"); got != "" {
				t.Errorf("%s, %s: git finds changes:\n%s", version, format, got)
			}
			shell(t, root, "echo more >conf/1; echo new >added; rm conf/2; git add -A; git commit -qam second")
			got := strings.Fields(shell(t, root, "git show --name-status --format="))
			if want := []string{"A", "added", "M", "conf/1", "D", "conf/2"}; !slices.Equal(got, want) {
				t.Errorf("%s, %s: the commit has %q, want %q", version, format, got, want)
			}
			if got := shell(t, root, "git fsck"); strings.Contains(got, "error") {
				t.Errorf("git isn't content: %s", got)
			}
		}
	}
}

// An index that can't be written anew stays as it is, and nothing is said to be marked.
func TestUnmissedIsLeft(t *testing.T) {
	for name, prepare := range map[string]string{
		"split": "git update-index --split-index", "none": "rm .git/index", "broken": "echo x >.git/index", "nothing hidden": "git rm -q --cached .npmrc",
	} {
		root, front := t.TempDir(), t.TempDir()
		shell(t, root, "git init -q .; echo key >.npmrc; echo a >a; git add -A; git commit -qm first; "+prepare)
		unmissed, err := Unmissed(root, front, ".git", func(path string) bool { return path == ".npmrc" })
		if served, _ := filepath.Glob(front + "/.git/*"); err != nil || len(unmissed) != 0 || len(served) != 0 {
			t.Errorf("%s: %q (%v), and there is %q", name, unmissed, err, served)
		}
	}
}
