package session

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"stepbox/policy/git"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/scan"
	"stepbox/session/api"
	"stepbox/session/base"
	"stepbox/session/files"
	"stepbox/session/frozen"
	"stepbox/session/outfit"
	"stepbox/session/project"
)

// What git is in a session is as it was when the session began, see package frozen. A
// session that is resumed and whose agent did nothing of its own in git goes on from what
// git is in the project by now; one that has a history of its own keeps it, and all files
// that git has as they were, since whatever differs from it would be committed as the
// agent's.

// maxIndex is how large an index is that is read, in bytes.
const maxIndex = 256 << 20

// catchUpGit has git be what it is to be from now on, before the files are mounted. Drop
// says what is let go of though the project has it otherwise by now; own is whether the
// session keeps a history of its own, and nothing goes.
func (s *Session) catchUpGit(ctx context.Context) (drop scan.Drop, own bool, err error) {
	applied, err := s.applied(ctx)
	g := s.outfit.Git
	if err != nil || len(g.Repositories) == 0 && g.Outer == "" {
		return applied, false, err
	}
	if err := g.Recover(); err != nil {
		return nil, false, err
	}
	if err := g.NothingBack(); err != nil { // what was put back before isn't the project's
		return nil, false, err
	}
	if g.Gone() {
		s.past.next.Git = s.apart()
		s.past.gitWords = append(s.past.gitWords, "git: the project's repository has this working tree no more (git worktree prune takes it out when its folder isn't where it was): the session goes on with what it has of it; its commits can be applied when the project is a working tree again")
		return nil, true, nil
	}
	all := g.Wrote(s.past.found.Manifest, func(e *manifest.Entry) ([]byte, error) {
		return s.files.Read(ctx, &diff.File{Entry: *e}, maxIndex)
	})
	settled, why, err := s.ownHistory(ctx, all, applied)
	if err != nil {
		return nil, false, err
	}
	s.sayWhence(why)
	if why != "" {
		s.past.next.Git = s.apart()
		if err := g.Alone(all); err != nil {
			return nil, false, err
		}
		return nil, true, s.putBack(ctx, all)
	}
	if _, err := g.Take(s.past.Session.Resumed + 1); err != nil {
		return nil, false, err
	}
	goes := g.Drop(all)
	return func(path string, e *manifest.Entry, moved bool) bool {
		if project.Never(path) != "" {
			return goes(path)
		}
		return settled(path, e, moved)
	}, false, nil
}

// sayWhence says what the session goes on from, where the project has something else
// checked out than it began with.
func (s *Session) sayWhence(why string) {
	g := s.outfit.Git
	dirs := g.Moved()
	if git.CheckedOut(g.Project, g.Of) != git.CheckedOut(g.Project, git.Here) || len(dirs) == 0 && why != "" && why != itsOwn {
		dirs = append([]string{""}, dirs...)
	}
	for _, dir := range dirs {
		s.past.gitWords = append(s.past.gitWords, s.whence(dir, why))
	}
}

// whence is that of one folder; "" is the project.
func (s *Session) whence(dir, why string) string {
	g, in := s.outfit.Git, ""
	if dir != "" {
		in = " in " + api.Escape(api.Trim(dir, 100))
	}
	at := filepath.Join(g.Project, dir)
	was, is := git.CheckedOut(at, g.Of), git.CheckedOut(at, git.Here)
	if why == "" {
		return "git: goes on from what the project has checked out by now" + in + ", " + head(is) + "; it was " + head(was)
	}
	return "git: the project has " + head(is) + " checked out by now" + in + "; " + why +
		", and the session goes on from " + head(g.Tip(dir)) + ": what it commits is to be merged or picked"
}

// itsOwn is why a session whose commits weren't merged keeps its history.
const itsOwn = "the agent has a history of its own"

// ownHistory says why the session keeps a history of its own; "" when it doesn't, and
// then which files are the person's whatever the session has.
func (s *Session) ownHistory(ctx context.Context, all []*frozen.Wrote, applied scan.Drop) (settled scan.Drop, why string, err error) {
	settled = applied
	if slices.ContainsFunc(all, (*frozen.Wrote).Own) {
		settled, why, err = s.merged(ctx, all, applied)
	}
	var both []string
	if why == "" && err == nil {
		both, err = s.both(ctx, all, settled)
	}
	if len(both) > 0 {
		why = "both the agent and you changed " + few(both) + ", which has to be applied or merged first"
	}
	if errors.Is(err, git.ErrIndex) {
		why, err = "both the agent and you may have changed the same files ("+err.Error()+")", nil
	}
	return settled, why, err
}

// applied says which of the session's files were applied as they are, or were never another:
// what became of them in the project since is the person's.
func (s *Session) applied(ctx context.Context) (scan.Drop, error) {
	if s.cfg.Applied == nil {
		return func(string, *manifest.Entry, bool) bool { return false }, nil
	}
	return s.cfg.Applied(ctx, s.cfg.ID, s.past.found.Manifest)
}

// merged says why what the session's git wrote is a history of its own; "" when all of it is
// in what the project has checked out by now. Then files are settled, too, that are as
// the session's newest commit has them, also those that the person took back after it. What
// the agent put back of it, and didn't commit, would come again with what is checked out.
func (s *Session) merged(ctx context.Context, all []*frozen.Wrote, applied scan.Drop) (settled scan.Drop, why string, err error) {
	had := map[string]*git.Entry{} // by path; nil: it has nothing there
	for _, w := range all {
		if !w.Own() {
			continue
		}
		if why := s.apartFrom(ctx, w); why != "" {
			return nil, why, ctx.Err()
		}
		s.heads(w, had)
	}
	if undone, err := s.undone(ctx, all); err != nil || len(undone) > 0 {
		return nil, "the agent put back " + few(undone) + " and didn't commit that", err
	}
	if staged, err := s.staged(ctx, all); err != nil || staged {
		return nil, itsOwn, err
	}
	committed, err := s.outfit.Git.Staged(all)
	if err != nil {
		return nil, "", err
	}
	return func(path string, e *manifest.Entry, moved bool) bool {
		in, known := had[path]
		_, ours := committed[path]
		return applied(path, e, moved) || known && s.is(ctx, e, in) && (ours || moved)
	}, "", nil
}

// apartFrom says why what the project has checked out hasn't all that the session's git wrote
// of a repository, or isn't what its files are based on; "" when it is.
func (s *Session) apartFrom(ctx context.Context, w *frozen.Wrote) string {
	ask := func(args ...string) (string, error) { return s.hostGit(ctx, w.Repository, args...) }
	within := func(commits map[string]struct{}, of ...string) bool {
		args := slices.Concat([]string{"rev-list", "--max-count=1"}, slices.Sorted(maps.Keys(commits)), []string{"--not"}, of)
		beyond, err := ask(args...)
		return err == nil && beyond == "" // an error: it hasn't got them
	}
	switch {
	case w.Other || !within(w.Tips, "HEAD") || !within(w.Logged, "HEAD", "--all", "--reflog"):
		return itsOwn
	case s.outfit.Git.Strays(w.Tree, ask):
		return "the agent switched from what the session began with and committed nothing since"
	}
	return ""
}

// staged says whether something is that isn't committed.
func (s *Session) staged(ctx context.Context, all []*frozen.Wrote) (bool, error) {
	g := s.outfit.Git
	for _, w := range all {
		was, is := git.CheckedOut(filepath.Join(g.Project, w.Tree), g.Of), g.Tip(w.Tree)
		if is.Commit == was.Commit {
			if w.Index != nil {
				return true, nil
			}
			continue
		}
		index, err := g.Index(w.Tree, all)
		if err != nil {
			return true, err
		}
		tree, err := s.tree(ctx)(w.Repository, is.Commit)
		if err != nil || !slices.EqualFunc(tree, index, func(a, b git.Entry) bool {
			return a.Path == b.Path && a.Mode == b.Mode && bytes.Equal(a.Hash, b.Hash) && b.Stage == 0
		}) {
			return true, err
		}
	}
	return false, nil
}

// heads notes what a session's newest commit has, and that it has nothing more.
func (s *Session) heads(w *frozen.Wrote, had map[string]*git.Entry) {
	prefix := "."
	if w.Repository == "" {
		_, prefix = git.Open(s.cfg.Workspace, git.Person{}).Root()
		prefix = path.Join(".", prefix)
	}
	for p, e := range s.past.found.Manifest.All() {
		if e.Kind == manifest.KindWhiteout && w.Index != nil && (w.Tree == "." || strings.HasPrefix(p, w.Tree+"/")) {
			had[p] = nil
		}
	}
	for i := range w.Index {
		if at, err := filepath.Rel(prefix, w.Index[i].Path); err == nil && filepath.IsLocal(at) {
			had[path.Join(w.Tree, at)] = &w.Index[i]
		}
	}
}

// is says whether something of the upper is what git has, its mode as well.
func (s *Session) is(ctx context.Context, e *manifest.Entry, in *git.Entry) bool {
	return frozen.Committed(e, in, s.reads(ctx))
}

func (s *Session) reads(ctx context.Context) frozen.Reader {
	return func(e *manifest.Entry) ([]byte, error) { return s.files.Read(ctx, &diff.File{Entry: *e}, maxPutBack) }
}

// tree lists commits that the person's git has.
func (s *Session) tree(ctx context.Context) frozen.Tree {
	return frozen.Trees(func(repository string, args ...string) (string, error) { return s.hostGit(ctx, repository, args...) })
}

// hostGit is what the person's git says of a repository of theirs.
func (s *Session) hostGit(ctx context.Context, repository string, args ...string) (string, error) {
	dir := filepath.Join(s.cfg.Workspace, repository)
	if repository == "" {
		_, dir = git.Above(s.cfg.Workspace)
	}
	cmd, err := outfit.Git(ctx, s.cfg.Workspace, dir, s.cfg.Home, s.cfg.Env, args...)
	if err != nil {
		return "", err
	}
	out, err := cmd.Output()
	return string(out), err
}

// head is a commit and its branch, as people say it.
func head(c git.Checked) string {
	commit := api.Escape(cmp.Or(c.Commit, "no commit"))
	return frozen.Name(c.Branch) + " at " + commit[:min(len(commit), 10)]
}

// putBack has all that git has be as it was when what git is was taken over: what the
// project has by now is the person's, and not this session's to commit.
func (s *Session) putBack(ctx context.Context, all []*frozen.Wrote) error {
	g, options := s.outfit.Git, s.baseOptions()
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
	s.sayUnread(now)
	staged, err := g.Staged(all)
	if err != nil {
		return err
	}
	list, theirs := frozen.Since(then, now, covered(s.past.found.Manifest), s.added(options.Person)), []string(nil)
	undone, err := g.Undone(all, s.past.found.Manifest, s.reads(ctx), func(repository, commit string) ([]git.Entry, error) {
		tree, _ := s.tree(ctx)(repository, commit) // else what is staged tells
		return tree, nil
	}, func(string, *manifest.Entry) bool { return false })
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(b frozen.Back) bool {
		took := s.took(staged, b.Path) && !slices.Contains(undone, b.Path)
		if took {
			theirs = append(theirs, b.Path)
		}
		return took
	})
	list, made := s.checkedOut(ctx, list)
	lost, err := g.PutBack(ctx, list, frozen.Contents{Blobs: s.blobs, Body: func(ctx context.Context, e *manifest.Entry) ([]byte, error) {
		return s.files.Read(ctx, &diff.File{Entry: *e}, maxPutBack)
	}})
	if err != nil {
		return err
	}
	s.sayBack(list, lost, made, theirs)
	return nil
}

// sayUnread says of which repositories it can't be told what git has, so that nothing of them
// is put back.
func (s *Session) sayUnread(now *base.Record) {
	g := s.outfit.Git
	for _, dir := range g.Folders() {
		at := filepath.Join(g.Project, dir)
		recorded := slices.ContainsFunc(now.Repositories, func(r base.Repository) bool { return r.Path == dir })
		if !recorded && git.CheckedOut(at, g.Of) != git.CheckedOut(at, git.Here) {
			s.past.gitWords = append(s.past.gitWords, "git: "+api.Escape(dir)+" has another commit checked out in the project by now, and its files show through, since the project's git ignores it: what the agent commits there could hold them")
		}
	}
	for _, r := range now.Repositories {
		if r.Unread != "" {
			s.past.gitWords = append(s.past.gitWords, "git: it can't be told which files of the project it has ("+api.Escape(r.Unread)+"), and what they are by now shows through: what the agent commits could hold it")
		}
	}
}

// sayBack says what became of what git has: what of it can't be had any more, and what git
// has in another form.
func (s *Session) sayBack(list []frozen.Back, lost, made, theirs []string) {
	say := func(why string, of []string) {
		if len(of) > 0 {
			s.past.gitWords = append(s.past.gitWords, "what the project has by now shows through, since "+why+": "+few(of))
		}
	}
	if len(list) > len(lost) {
		s.past.gitWords = append(s.past.gitWords, "what git has is here as it was when the session began; the project has it otherwise by now: "+fewOf(list, backPath))
	}
	say("what it was can't be had any more", lost)
	say("git has something else than it checks out there, by a filter, an encoding or line ends, and what the agent commits could hold it", made)
	say("the agent's git took over what you had made there meanwhile", theirs)
}

// checkedOut parts what is to be put back from files of which git has something else than
// it checks out: what a filter made of them, another encoding, other ends of lines. Nobody's filter is run
// for that; the agent's git would take what it makes of them again for a change.
func (s *Session) checkedOut(ctx context.Context, list []frozen.Back) (plain []frozen.Back, made []string) {
	ask, project := map[string]string{}, s.outfit.Git.Project
	for _, b := range list {
		if b.Blob != nil && b.Was.Kind == manifest.KindFile {
			ask[b.Repository] += filepath.Join(project, b.Path) + "\x00"
		}
	}
	is := map[string]bool{}
	for repository, paths := range ask {
		s.converted(ctx, repository, paths, is)
	}
	for _, b := range list {
		if is[filepath.Join(project, b.Path)] {
			made = append(made, b.Path)
		} else {
			plain = append(plain, b)
		}
	}
	return plain, made
}

// converted notes of which of some paths of a repository, each with a NUL behind it, git has
// something else than it checks out: of all of them, if git can't say. The attributes may have
// become others since the repository was taken over, and what there is has both.
func (s *Session) converted(ctx context.Context, repository, paths string, is map[string]bool) {
	g := s.outfit.Git
	project := g.Project
	root, dir := git.Above(filepath.Join(project, repository))
	if dir == "" { // it is gone from the project, and with it what converts
		return
	}
	env := []string{
		"GIT_DIR=" + dir,
		"GIT_WORK_TREE=" + root,
		"GIT_INDEX_FILE=" + filepath.Join(g.Of(dir), "index"),
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + filepath.Join(g.Of(dir), "objects"),
	}
	ask := func(stdin string, args ...string) (string, error) {
		cmd, err := outfit.Git(ctx, project, dir, s.cfg.Home, s.cfg.Env, args...)
		if err != nil {
			return "", err
		}
		cmd.Env, cmd.Stdin = append(cmd.Env, env...), strings.NewReader(stdin)
		out, err := cmd.Output()
		return string(out), err
	}
	auto, _ := ask("", "config", "--bool", "--get", "core.autocrlf") // else it isn't set
	eol, _ := ask("", "config", "--get", "core.eol")
	for _, which := range [][]string{nil, {"--cached"}} { // those of now, and those of then
		said, err := ask(paths, slices.Concat([]string{"check-attr", "-z", "--stdin"}, which, frozen.Converting)...)
		if err != nil {
			s.log.Warn("git doesn't say which files it converts", "repository", repository, "error", err)
			said = strings.ReplaceAll(paths, "\x00", "\x00filter\x00unknown\x00")
		}
		for p, attributes := range frozen.Attributes(said) {
			is[p] = is[p] || frozen.Converts(attributes, auto == "true\n", strings.EqualFold(eol, "crlf\n"))
		}
	}
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

func backPath(b frozen.Back) string { return b.Path }

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
