package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
)

// shell runs lines in a folder, with git's own settings alone.
func shell(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

func TestOuter(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	must.OK(t, err)
	shell(t, root, `git init -q main; cd main; mkdir part; echo 1 >part/a; echo 2 >b; git add -A; git commit -qm first
git worktree add -q ../linked; git clone -q . ../lib; git -c protocol.file.allow=always submodule --quiet add ../lib sub; cd ..
git init -q --separate-git-dir=apart separate
mkdir evil; echo "gitdir: ../main/.git" >evil/.git
mkdir home; echo ref >home/HEAD; mkdir evil2; echo "gitdir: $PWD/home" >evil2/.git
ln -s main alias; mkdir evil3; echo "gitdir: $PWD/alias/.git/worktrees/linked" >evil3/.git
mkdir plain linkedto; ln -s ../main/.git linkedto/.git`)
	at := func(p string) string { return filepath.Join(root, p) }
	for project, want := range map[string]string{
		"main": "", "plain": "",
		"linked": at("main/.git"), "main/sub": at("main/.git/modules/sub"), "main/part": at("main/.git"), "linked/part": at("main/.git"),
	} {
		if got, err := Outer(at(project)); got != want || err != nil {
			t.Errorf("Outer(%s) = %q, %v, want %q", project, got, err, want)
		}
	}
	// What doesn't lead back is nobody's own repository, however it looks.
	for _, project := range []string{"evil", "evil2", "evil3", "separate", "linkedto"} {
		if got, err := Outer(at(project)); got != "" || err == nil {
			t.Errorf("Outer(%s) = %q, %v", project, got, err)
		}
	}
}

// TestNarrow: git takes the narrowed index for its own, and misses nothing that
// isn't meant to be there.
func TestNarrow(t *testing.T) {
	for _, version := range []string{"2", "3", "4"} {
		for _, format := range []string{"sha1", "sha256"} {
			root, err := filepath.EvalSymlinks(t.TempDir())
			must.OK(t, err)
			shell(t, root, `git init -q --object-format=`+format+` .; mkdir -p 'a b/[c]' other; for i in $(seq 60); do echo $i >other/$i; echo $i >"a b/[c]/file with a name $i"; done
ln -s x other/link; git add -A; git commit -qm first; echo later >'a b/[c]/new'; git add -N 'a b/[c]/new'; git update-index --assume-unchanged other/5; git update-index --index-version `+version)
			project, front := filepath.Join(root, "a b/[c]"), filepath.Join(t.TempDir(), "front")
			shell(t, root, "cp -a .git "+front)
			must.OK(t, ServeOuter(project, filepath.Join(root, ".git"), front))
			before := shell(t, root, "git ls-files -s")
			// What an overlay would do.
			shell(t, root, "cp -a "+front+"/. .git/; rm -r other")
			if got := shell(t, root, "git status --porcelain"); strings.TrimSpace(got) != `A "a b/[c]/new"` {
				t.Errorf("version %s, %s: git finds changes:\n%s", version, format, got)
			}
			if got := shell(t, root, "git ls-files -s"); got != before {
				t.Errorf("version %s, %s: the index has other entries", version, format)
			}
			shell(t, root, "git fsck; git add -A; git commit -qm second; test $(git ls-tree -r HEAD | wc -l) = 122")
			entries, err := ParseIndex(mustRead(t, filepath.Join(front, "index")))
			if err != nil || !slices.ContainsFunc(entries, func(e Entry) bool { return e.Sparse }) {
				t.Errorf("nothing is left out: %v", err)
			}
		}
	}
}

func mustRead(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	must.OK(t, err)
	return b
}
