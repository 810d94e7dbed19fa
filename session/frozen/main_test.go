package frozen

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/policy/git"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/e2e/must"
)

// rig is a person's repository, and what a session has of it. What its git writes goes to
// a copy of that: what differs is what an overlay's upper would have.
type rig struct {
	testing.TB
	Git
	work string // the session's project, as its git sees it
}

func newRig(t testing.TB) *rig {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git to make a repository with")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.OK(t, err)
	r := &rig{TB: t, Git: Git{Project: filepath.Join(dir, "project"), Folder: filepath.Join(dir, "session"), Repositories: []string{".git"}}, work: filepath.Join(dir, "work")}
	for _, d := range []string{r.Project, r.Folder} {
		r.must(os.Mkdir(d, 0o700))
	}
	r.host("git init -q -b main; echo 1 >a; echo 1 >b; git add -A; git commit -qm first")
	return r
}

func (r *rig) must(err error) {
	r.Helper()
	must.OK(r, err)
}

// host runs what the person does in the project.
func (r *rig) host(script string) string { r.Helper(); return r.sh(r.Project, script) }

func (r *rig) sh(dir, script string) string {
	r.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x@y", "GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x@y", "GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.Fatalf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

// take takes the repository, and lays the project out for the agent.
func (r *rig) take() Taken {
	r.Helper()
	t, err := r.Take(0)
	r.must(errors.Join(err, r.Settle()))
	r.sh(r.Folder, "rm -rf ../work upper; cp -a ../project ../work; rm -rf ../work/.git; cp -a git/project/.git ../work/.git")
	return t
}

// agent runs what the agent does, and puts what its git wrote where a session has it.
func (r *rig) agent(script string) string {
	r.Helper()
	out := r.sh(r.work, script)
	r.must(os.RemoveAll(filepath.Join(r.Folder, "upper")))
	r.must(os.Mkdir(filepath.Join(r.Folder, "upper"), 0o700))
	at := filepath.Join(r.work, ".git")
	r.must(filepath.WalkDir(at, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(r.work, path) // it is below
		is, err := os.ReadFile(path)
		was, failed := os.ReadFile(filepath.Join(Layer(r.Folder), rel))
		if err != nil || failed == nil && string(is) == string(was) {
			return err
		}
		to := filepath.Join(r.Folder, "upper", rel)
		r.must(os.MkdirAll(filepath.Dir(to), 0o700))
		return os.WriteFile(to, is, 0o600)
	}))
	return out
}

// state is the upper as a manifest; what is gone from the layer is a whiteout.
func (r *rig) state() *manifest.Manifest {
	r.Helper()
	var dir func(at string) *manifest.Node
	dir = func(at string) *manifest.Node {
		n := &manifest.Node{Entry: manifest.Entry{Name: filepath.Base(at), Kind: manifest.KindDir}}
		var list []*manifest.Node
		entries, err := os.ReadDir(filepath.Join(r.Folder, "upper", at))
		r.must(err)
		for _, e := range entries {
			if e.IsDir() {
				list = append(list, dir(filepath.Join(at, e.Name())))
			} else {
				list = append(list, &manifest.Node{Entry: manifest.Entry{Name: e.Name(), Kind: manifest.KindFile, Target: filepath.Join(at, e.Name())}})
			}
		}
		n.Sub = manifest.NewDir(list, nil)
		return n
	}
	return &manifest.Manifest{Root: dir("")}
}

// read reads a file of the state.
func (r *rig) read(e *manifest.Entry) ([]byte, error) {
	return os.ReadFile(filepath.Join(r.Folder, "upper", e.Target))
}

// written is what its git wrote of the project's repository.
func (r *rig) written() *Wrote {
	r.Helper()
	all := r.Wrote(r.state(), func(e *manifest.Entry) ([]byte, error) {
		return os.ReadFile(filepath.Join(r.Folder, "upper", e.Target))
	})
	if len(all) == 0 {
		return &Wrote{}
	}
	return all[0]
}

// ask has the person's git say something.
func (r *rig) ask(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = r.Project
	out, err := cmd.Output()
	return string(out), err
}

// frozenHead is what the session has checked out.
func (r *rig) frozenHead() git.Checked { return git.CheckedOut(r.Project, r.Of) }
