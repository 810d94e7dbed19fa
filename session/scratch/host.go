package scratch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"stepbox/policy/git"
	"stepbox/session/api"
	"stepbox/session/frozen"
	"stepbox/session/outfit"
)

// call is what the person's git is given beside its arguments.
type call struct {
	in    io.Reader
	env   []string
	guest bool // what it reads is of the agent's making
}

// Bounds of what git may say, and of its memory where the agent made what it reads: a tree
// of a few hundred bytes can be one of a billion paths.
const (
	maxSaid   = 128 << 20
	maxMemory = 1 << 30
)

// bounded keeps what git says, up to a bound.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxSaid {
		return 0, fmt.Errorf("git says more than %d MB", maxSaid>>20)
	}
	return b.Buffer.Write(p)
}

// real runs the person's git on a repository that the agent can't write: nothing
// of a session goes below a .git but what this fetches.
func (s *Scratch) real(ctx context.Context, r *repository, with call, args ...string) ([]byte, error) {
	if !s.straight(r) {
		return nil, fmt.Errorf("its commits can't be fetched: the project's git folder %s is gone, or is behind a link", api.Escape(r.dir))
	}
	dir := s.metadata(r)
	limited, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	cmd, err := outfit.Git(limited, s.cfg.Workspace, dir, s.cfg.Home, s.cfg.Env, args...)
	if err != nil {
		return nil, err
	}
	var out, said bounded
	cmd.Stdin, cmd.Stdout, cmd.Stderr = with.in, &out, &said
	cmd.Env = append(cmd.Env, with.env...)
	if err = start(cmd, with.guest); err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		if strings.Contains(said.String(), "unknown option") {
			return nil, errors.New("this machine's git is too old to fetch them safely: 2.31 or a newer one is needed")
		}
		return out.Bytes(), fmt.Errorf("git %s: %s (%w)", args[0], strings.TrimSpace(api.Trim(said.String(), 500)), err)
	}
	return out.Bytes(), nil
}

// start starts git, whose memory is bounded if what it reads is a guest's: see
// RLIMIT_DATA in getrlimit(2), which what it maps of the repository doesn't count for.
func start(cmd *exec.Cmd, guest bool) error {
	err := cmd.Start()
	if err != nil || !guest {
		return err
	}
	limit := &unix.Rlimit{Cur: maxMemory, Max: maxMemory}
	if err := unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_DATA, limit, nil); err != nil && err != unix.ESRCH {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return fmt.Errorf("cannot bound git's memory: %w", err)
	}
	return nil
}

// metadata is where a repository's HEAD is: of one outside of the project, the working
// tree's own.
func (s *Scratch) metadata(r *repository) string {
	if filepath.IsAbs(r.dir) {
		_, dir := git.Above(s.cfg.Workspace)
		return dir
	}
	return s.at(r)
}

// frozen is where a folder of a repository is as the session took it over from the host,
// where no agent can write; "" for nowhere.
func (s *Scratch) frozen(r *repository, dir string) string {
	g := frozen.Git{Project: s.cfg.Workspace, Folder: s.cfg.Folder}
	if filepath.IsAbs(r.dir) {
		g.Outer = r.dir
	}
	if at := g.Of(dir); s.cfg.Folder != "" && at != dir {
		return at
	}
	return ""
}

// beside says what the agent's git has beside its objects, and isn't fetched.
func (s *Scratch) beside(r *repository) (out []string) {
	g, at := frozen.Git{Project: s.cfg.Workspace, Folder: s.cfg.Folder}, r.dir
	switch outer, _ := git.Outer(s.cfg.Workspace); { // else there is none
	case at == outer:
		g.Outer, at = outer, ""
	case filepath.IsAbs(at):
		return nil // of a submodule of it nobody can tell
	}
	for _, words := range g.Beside(at) {
		out = append(out, "not fetched: "+words)
	}
	return out
}

// began are the commits that the session had from the host then, by line. The host's
// branches may have gone on, or back, and still they aren't the agent's.
func (s *Scratch) began(ctx context.Context, r *repository) string {
	dir := s.frozen(r, s.metadata(r))
	if dir == "" {
		return ""
	}
	with := call{env: []string{"GIT_DIR=" + dir}}
	refs, _ := s.real(ctx, r, with, "for-each-ref", "--format=%(objectname) %(refname)") // without, more is listed
	head, failure := s.real(ctx, r, with, "rev-parse", "--verify", "--quiet", "HEAD")
	if failure == nil { // else there was no commit yet
		refs = append(refs, head...)
	}
	for _, name := range frozen.Autostashes {
		hash, _ := git.ReadFile(filepath.Join(dir, name), maxSubject) // there is none but in the midst of a merge or a rebase
		refs = fmt.Appendf(refs, "\n%s\n", hash)
	}
	var out strings.Builder
	for line := range strings.Lines(string(refs)) {
		if hash, name, _ := strings.Cut(strings.TrimSpace(line), " "); isHash(hash) && !strings.HasPrefix(name, ours) {
			out.WriteString(hash + "^{commit}\n")
		}
	}
	return out.String()
}

// logged are the commits that its logs named then, stashes among them, by line.
func (s *Scratch) logged(ctx context.Context, r *repository) string {
	dir := s.frozen(r, s.metadata(r))
	if dir == "" {
		return ""
	}
	out, _ := s.real(ctx, r, call{env: []string{"GIT_DIR=" + dir}}, "rev-list", "--no-walk=unsorted", "--reflog") // as in began
	return string(out)
}

// tags are the annotated tags that the person has, or had then, by line.
func (s *Scratch) tags(ctx context.Context, r *repository) (out string) {
	for _, dir := range []string{s.metadata(r), s.frozen(r, s.metadata(r))} {
		if dir != "" {
			list, _ := s.real(ctx, r, call{env: []string{"GIT_DIR=" + dir}}, "for-each-ref", "--format=%(objectname)", "refs/tags", ours)
			out += string(list)
		}
	}
	return out
}

// stores are the object stores in which a repository's commits are, and those that the
// host has thrown away since the session took them over, as a variable of git's.
func (s *Scratch) stores(r *repository) string {
	out := `GIT_ALTERNATE_OBJECT_DIRECTORIES="` + between.Replace(filepath.Join(s.at(r), "objects")) + `"`
	if kept := s.frozen(r, s.at(r)); kept != "" {
		out += `:"` + between.Replace(filepath.Join(kept, "objects")) + `"`
	}
	return out
}
