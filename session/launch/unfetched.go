package launch

import (
	"context"
	"path/filepath"
	"strings"

	"stepbox/policy/git"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/frozen"
	"stepbox/session/outfit"
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
	return g.Unfetched(func(repository string, hashes []string) map[string]bool {
		known := map[string]bool{}
		applies, _ := h.Applies(ctx, s.ID) // without, less is known
		for _, a := range applies {
			for _, c := range a.Fetched {
				known[c.Hash] = true
			}
		}
		dir := filepath.Join(s.Folder, repository)
		if _, metadata := git.Above(s.Folder); repository == "" && metadata != "" {
			dir = metadata
		} else if repository == "" {
			dir = g.Outer
		}
		for _, at := range []string{dir, g.Of(dir)} {
			if real, err := filepath.EvalSymlinks(at); err == nil && real == at {
				reached(known, hashes, func(in string, args ...string) (string, error) {
					cmd, err := outfit.Git(ctx, s.Folder, at, home, env, args...)
					if err != nil {
						return "", err
					}
					cmd.Env, cmd.Stdin = append(cmd.Env, "GIT_DIR="+at), strings.NewReader(in)
					out, err := cmd.Output()
					return string(out), err
				})
			}
		}
		return known
	})
}

// reached notes which of some commits references lead to, in a repository that no agent writes.
func reached(known map[string]bool, hashes []string, ask func(in string, args ...string) (string, error)) {
	there := ""
	for _, hash := range hashes {
		if !known[hash] {
			there += hash + "\n"
		}
	}
	if there == "" {
		return
	}
	kinds, err := ask(there, "cat-file", "--batch-check=%(objectname) %(objecttype)")
	if err != nil {
		return // it has none
	}
	there = ""
	for line := range strings.Lines(kinds) {
		if hash, kind, _ := strings.Cut(strings.TrimSpace(line), " "); kind == "commit" || kind == "tag" {
			there += hash + "\n"
		}
	}
	left, err := ask(there, "rev-list", "--stdin", "--not", "--all")
	for hash := range strings.Lines(there) {
		if err == nil && !strings.Contains(left, hash) {
			known[strings.TrimSpace(hash)] = true
		}
	}
}
