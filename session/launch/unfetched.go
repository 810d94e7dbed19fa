package launch

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/frozen"
	"stepbox/session/outfit"
	"stepbox/session/project"
)

// unfetched says in words which commits go with a session: what an apply fetched doesn't,
// whatever the person made of it since, nor what any reference of theirs leads to, or did
// when the session took their git over.
func unfetched(ctx context.Context, h *files.History, folder, home string, env []string, s *api.Session) string {
	g := frozen.Git{Project: s.Folder, Folder: folder}
	taken, ok, err := frozen.Load(folder)
	if err != nil || !ok || s.Folder == "" {
		return ""
	}
	_ = g.Beyond(taken) // else it isn't shown
	ask := hostGit{ctx, home, env, s}
	return g.Unfetched(func(repository string, hashes []string) map[string]bool {
		applies, _ := h.Applies(ctx, s.ID) // without, less is known
		known := fetched(applies, s.Last())
		dir := g.Host(repository)
		ask.reached(known, hashes, dir)
		ask.reached(known, hashes, g.Of(dir))
		return known
	})
}

// undone says in words which files a session put back of what it had committed and didn't commit, where
// the project has something else.
func undone(ctx context.Context, h *files.History, folder, home string, env []string, s *api.Session) string {
	paths, err := undonePaths(ctx, h, folder, home, env, s)
	if err != nil {
		return "files that can't be told: " + api.Escape(err.Error())
	}
	named := api.EscapeAll(paths[:min(len(paths), maxUndone)])
	if n := len(paths) - len(named); n > 0 {
		named = append(named, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(named, ", ")
}

func undonePaths(ctx context.Context, h *files.History, folder, home string, env []string, s *api.Session) ([]string, error) {
	g := frozen.Git{Project: s.Folder, Folder: folder}
	taken, ok, err := frozen.Load(folder)
	if err != nil || !ok || s.Folder == "" {
		return nil, err
	}
	_ = g.Beyond(taken) // else it isn't shown
	state, err := h.Scope(ctx, s.ID, api.Scope{})
	if err != nil || state.To == nil {
		return nil, err
	}
	in, err := project.Open(s.Folder)
	if err != nil {
		return nil, nil // it is gone, and with it what was merged
	}
	defer in.Close()
	ask := hostGit{ctx, home, env, s}
	return g.UndoneAt(state.To, func(e *manifest.Entry) ([]byte, error) {
		return state.Files.Read(ctx, &diff.File{Entry: *e}, maxIndex)
	}, frozen.Trees(func(repository string, args ...string) (string, error) {
		return ask.git(g.Host(repository), "", args...)
	}), func(path string, e *manifest.Entry) bool {
		has, err := in.Look(ctx, path)
		return err == nil && has.Same(project.Of(e))
	})
}

const (
	maxUndone = 3         // files that are named
	maxIndex  = 256 << 20 // bytes of an index that is read
)

// fetched are the commits that applies have fetched, and "" where one has fetched all since a
// session ended.
func fetched(applies []api.Apply, ended time.Time) map[string]bool {
	known := map[string]bool{}
	for _, a := range applies {
		for _, c := range a.Fetched {
			known[c.Hash] = true
		}
		if a.Commits && a.State == api.ApplyDone && a.Failure == "" && a.At.After(ended) {
			known[""] = true
		}
	}
	return known
}

// hostGit is what the person's git is asked with.
type hostGit struct {
	ctx  context.Context
	home string
	env  []string
	s    *api.Session
}

// git runs it on a repository that no agent writes, and that no link leads to.
func (a *hostGit) git(dir, in string, args ...string) (string, error) {
	if real, err := filepath.EvalSymlinks(dir); err != nil || real != dir {
		return "", fmt.Errorf("%q isn't there, or is behind a link", dir)
	}
	cmd, err := outfit.Git(a.ctx, a.s.Folder, dir, a.home, a.env, args...)
	if err != nil {
		return "", err
	}
	cmd.Env, cmd.Stdin = append(cmd.Env, "GIT_DIR="+dir), strings.NewReader(in)
	out, err := cmd.Output()
	return string(out), err
}

// reached notes which of some commits a repository's references lead to, and what it has that
// is no commit.
func (a *hostGit) reached(known map[string]bool, hashes []string, dir string) {
	there := ""
	for _, hash := range hashes {
		if !known[hash] {
			there += hash + "\n"
		}
	}
	kinds, err := a.git(dir, there, "cat-file", "--batch-check=%(objectname) %(objecttype)")
	there = ""
	for line := range strings.Lines(kinds) {
		switch hash, kind, _ := strings.Cut(strings.TrimSpace(line), " "); kind {
		case "commit", "tag":
			there += hash + "\n"
		case "tree", "blob":
			known[hash] = true
		}
	}
	if there == "" || err != nil {
		return
	}
	left, err := a.git(dir, there, "rev-list", "--stdin", "--not", "--all")
	for hash := range strings.Lines(there) {
		if err == nil && !strings.Contains(left, hash) {
			known[strings.TrimSpace(hash)] = true
		}
	}
}
