package session

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"stepbox/policy/git"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/base"
	"stepbox/session/files"
	"stepbox/session/frozen"
	"stepbox/session/outfit"
)

// What git is in a session is as it was when the session began, see package frozen. A
// session that is resumed and whose agent did nothing of its own in git goes on from what
// git is in the project by now; one that has a history of its own keeps it, and all files
// that git has as they were, since whatever differs from it would be committed as the
// agent's.

// maxIndex is how large an index is that is read, in bytes.
const maxIndex = 256 << 20

// catchUpGit has git be what it is to be from now on, before the files are mounted. Drop
// says which of git's own files are let go of; own is whether nothing else is.
func (s *Session) catchUpGit(ctx context.Context) (drop func(path string) bool, own bool, err error) {
	g := s.outfit.Git
	if len(g.Repositories) == 0 && g.Outer == "" {
		return nil, false, nil
	}
	now := git.Open(g.Project, git.Person{})
	had := git.OpenAs(g.Project, git.Person{}, g.Of)
	own, indexes := g.Own(s.past.found.Manifest, func(e *manifest.Entry) ([]byte, error) {
		return s.files.Read(ctx, &diff.File{Entry: *e}, maxIndex)
	})
	if own {
		s.sayKept(had, now)
		return nil, true, s.putBack(ctx)
	}
	s.sayTaken(had, now)
	g.DropOuterIndex()
	if _, err := g.Take(s.past.Session.Resumed + 1); err != nil {
		return nil, false, err
	}
	dropped := make(map[string]bool)
	for _, path := range indexes {
		dropped[path] = true
	}
	return func(path string) bool { return dropped[path] }, false, nil
}

// sayTaken says that the session goes on from another commit than it began with.
func (s *Session) sayTaken(had, now *git.Repository) {
	was, before := had.Head()
	is, branch := now.Head()
	if was != is || before != branch {
		s.past.gitWords = append(s.past.gitWords, "git: goes on from what the project has checked out by now, "+head(is, branch)+"; it was "+head(was, before))
	}
}

// sayKept says that the project is at another commit than the session began with.
func (s *Session) sayKept(had, now *git.Repository) {
	was, before := had.Head()
	is, branch := now.Head()
	if was != is || before != branch {
		s.past.gitWords = append(s.past.gitWords, "git: the project has "+head(is, branch)+" checked out by now; the agent has a history of its own, which goes on from "+head(was, before)+": what it commits is to be merged or picked")
	}
}

// head is a commit and its branch, as people say it.
func head(commit, branch string) string {
	if commit == "" {
		commit = "no commit"
	}
	name := "no branch"
	if len(branch) > len("refs/heads/") {
		name = branch[len("refs/heads/"):]
	}
	return api.Escape(api.Trim(name, 100)) + " at " + commit[:min(len(commit), 10)]
}

// putBack has all that git has be as it was when what git is was taken over: what the
// project has by now is the person's, and not this session's to commit.
func (s *Session) putBack(ctx context.Context) error {
	g, options := s.outfit.Git, s.baseOptions()
	if err := g.NothingBack(); err != nil {
		return err
	}
	taken, _, err := frozen.Load(g.Folder)
	if err != nil {
		return err
	}
	then, err := s.baseOf(ctx, taken.Run)
	if err != nil {
		return err
	}
	now, err := base.Take(ctx, options)
	if err != nil {
		return err
	}
	list := frozen.Since(then, now, covered(s.past.found.Manifest), s.added(options.Person))
	lost, err := g.PutBack(ctx, list, frozen.Contents{Blobs: s.blobs, Body: func(ctx context.Context, e *manifest.Entry) ([]byte, error) {
		return s.files.Read(ctx, &diff.File{Entry: *e}, maxPutBack)
	}})
	if err != nil {
		return err
	}
	if n := len(list) - len(lost); n > 0 {
		var paths []string
		for _, b := range list[:min(len(list), 4)] {
			paths = append(paths, api.Escape(b.Path))
		}
		s.past.gitWords = append(s.past.gitWords, fmt.Sprintf("what git has is here as it was when the session began; the project has it otherwise by now: %s", listed(paths, len(list), 3)))
	}
	if len(lost) > 0 {
		s.past.gitWords = append(s.past.gitWords, fmt.Sprintf("what the project has by now shows through, since what it was can't be had any more: %s", listed(api.EscapeAll(lost[:min(len(lost), 4)]), len(lost), 3)))
	}
	return nil
}

// added says whether the project's git has a file by now, by that's repository.
func (s *Session) added(person git.Person) func(repository, path string) bool {
	hosts := map[string]*git.Repository{}
	return func(repository, path string) bool {
		r := hosts[repository]
		if r == nil {
			r = git.Open(filepath.Join(s.cfg.Workspace, repository), person)
			hosts[repository] = r
		}
		return r.Tracked(strings.TrimPrefix(strings.TrimPrefix(path, repository), "/"))
	}
}

// maxPutBack is how large a file is that is put back from the record, in bytes.
const maxPutBack = 64 << 20

// baseOf is what the project was at a start of the session; nothing where that isn't known.
func (s *Session) baseOf(ctx context.Context, run int) (*base.Record, error) {
	found := s.info.Base
	for i := range s.info.Bases {
		if run > 0 && s.info.Bases[i].Resumed == run {
			found = &s.info.Bases[i]
		}
	}
	if found == nil || found.Resumed != run {
		return &base.Record{}, nil
	}
	h, err := files.ParseHash(found.Hash)
	if err != nil {
		return nil, err
	}
	return base.Load(ctx, files.Bodies{Store: s.store}, h)
}

// covered says which paths an upper has something at, or hides.
func covered(m *manifest.Manifest) func(path string) bool {
	return func(path string) bool {
		at := m.Root
		for name := range strings.SplitSeq(path, "/") {
			if at.Opaque || at.Kind != manifest.KindDir {
				return true
			}
			if at = at.Sub.Find(name); at == nil {
				return false
			}
		}
		return true
	}
}

// blobs has the person's git read what it has, in their own repository, or what was kept
// of it since.
func (s *Session) blobs(ctx context.Context, repository string, hashes [][]byte, take func(int, io.Reader) error) error {
	g := s.outfit.Git
	_, dir := git.Above(filepath.Join(g.Project, repository))
	if repository == "" && g.Outer != "" {
		dir = g.Outer
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd, err := outfit.Git(ctx, g.Project, dir, s.cfg.Home, s.cfg.Env, "cat-file", "--batch")
	if err != nil {
		return err
	}
	cmd.Env = append(cmd.Env, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+filepath.Join(g.Of(dir), "objects"))
	var in strings.Builder
	for _, h := range hashes {
		fmt.Fprintf(&in, "%x\n", h)
	}
	cmd.Stdin = strings.NewReader(in.String())
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("cannot read what git has: %w", err)
	}
	read := bufio.NewReader(out)
	for i := range hashes {
		if err = blob(read, func(content io.Reader) error { return take(i, content) }); err != nil {
			cancel()
			break
		}
	}
	if failure := cmd.Wait(); err == nil && failure != nil {
		err = failure
	}
	if err != nil {
		return fmt.Errorf("cannot read what git has: %w", err)
	}
	return nil
}

// blob reads one answer of git cat-file --batch.
func blob(in *bufio.Reader, take func(io.Reader) error) error {
	line, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	fields := strings.Fields(line)
	if len(fields) != 3 {
		return take(nil) // missing
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return fmt.Errorf("git says %q", api.Escape(api.Trim(line, 100)))
	}
	content := io.LimitReader(in, size)
	if err := take(content); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return err
	}
	_, err = in.Discard(1)
	return err
}
