package scratch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"stepbox/policy/git"
	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/files"
)

// apart is a repository of ours with objects of the agent's, and those of one of the host's
// beside it: as git's own receiving end has them until it takes them, see git-receive-pack(1),
// quarantine. No settings are in force there, so that none can name a program: a merge driver,
// or a filter.
type apart struct {
	s     *Scratch
	r     *repository
	state *manifest.Manifest
	dir   string
	noted noted
}

// take has git read a pack out of a folder where the sandbox can write.
func (a *apart) take(ctx context.Context, from, pack string) error {
	if err := a.make(); err != nil {
		return err
	}
	if _, err := copyRegular(from, pack, maxPack); err != nil {
		return fmt.Errorf("cannot take over the pack that git made of them: %w", err)
	}
	in, err := os.Open(pack)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = a.git(ctx, in, "index-pack", "--stdin", "--fix-thin")
	return err
}

// make makes that repository, whose hashes are as long as the tips'.
func (a *apart) make() error {
	if err := os.MkdirAll(filepath.Join(a.dir, "refs"), 0o700); err != nil {
		return err
	}
	settings := "[core]\nbare = true\nrepositoryformatversion = 0\n"
	if len(a.r.tips[0].hash) == 2*sha256.Size {
		settings = "[core]\nbare = true\nrepositoryformatversion = 1\n[extensions]\nobjectFormat = sha256\n"
	}
	return errors.Join(
		os.Mkdir(filepath.Join(a.dir, "objects"), 0o700),
		os.WriteFile(filepath.Join(a.dir, "HEAD"), []byte("ref: refs/heads/none\n"), 0o600),
		os.WriteFile(filepath.Join(a.dir, "config"), []byte(settings), 0o600))
}

// between is a path among those that colons part: see git(1), GIT_ALTERNATE_OBJECT_DIRECTORIES.
var between = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

func (a *apart) git(ctx context.Context, in io.Reader, args ...string) ([]byte, error) {
	env := []string{
		"GIT_DIR=" + a.dir, "GIT_SHALLOW_FILE=" + filepath.Join(a.s.at(a.r), "shallow"),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1",
		a.s.stores(a.r),
	}
	return a.s.real(ctx, a.r, call{in, env, true}, args...)
}

// text is what the session has as a file, or where its link points to.
func (a *apart) text(ctx context.Context, e *manifest.Entry) ([]byte, error) {
	if e.Kind == manifest.KindSymlink {
		return []byte(e.Target), nil
	}
	if e.Size > maxBlob {
		return nil, content.ErrTooMuch
	}
	r, err := content.Open(ctx, files.Bodies{Store: a.s.cfg.Store}, e.Hash, e.Size)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// trees lists what differs between two commits' trees, unless something failed before.
func (a *apart) trees(ctx context.Context, failed error, from, to string) ([]differs, error) {
	if failed != nil {
		return nil, failed
	}
	out, err := a.git(ctx, nil, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", from, to)
	if err != nil {
		return nil, err
	}
	return raw(out), nil
}

// changes lists what each of some commits changed, in their order.
func (a *apart) changes(ctx context.Context, commits []byte, options ...string) ([]differs, error) {
	out, err := a.git(ctx, bytes.NewReader(commits), slices.Concat([]string{"diff-tree", "--stdin", "-r", "-z", "--root", "--raw", "--no-renames", "--no-abbrev"}, options)...)
	return raw(out), err
}

// root is the folder of a repository's working tree.
func (s *Scratch) root(r *repository) string {
	if filepath.IsAbs(r.dir) {
		root, _ := git.Above(s.cfg.Workspace)
		return root
	}
	return filepath.Join(s.cfg.Workspace, r.folder)
}

// inProject is where a path of a repository's working tree is in the project.
func (s *Scratch) inProject(r *repository, p string) (in string, ok bool) {
	in, err := filepath.Rel(s.cfg.Workspace, filepath.Join(s.root(r), p))
	return in, err == nil && filepath.IsLocal(in)
}

// rules says whether the session, or what it committed, changes any files of a name by which git goes:
// what has them may be applied or merged before a tip is. It does if git can't tell.
func (a *apart) rules(ctx context.Context, branch, name string) bool {
	for p := range a.state.All() {
		if path.Base(p) == name {
			return true
		}
	}
	var tips strings.Builder
	for _, t := range a.r.tips {
		tips.WriteString(t.hash + "\n")
	}
	commits, err := a.git(ctx, strings.NewReader(tips.String()+"^"+branch+"\n--\n:(glob)**/"+name+"\n"), "rev-list", "--full-history", "--max-count=1", "--stdin")
	return len(commits) > 0 || err != nil
}
