package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"stepbox/policy"
	"stepbox/policy/git"
	"stepbox/session/api"
	"stepbox/session/apply"
	"stepbox/session/files"
	"stepbox/session/frozen"
	"stepbox/session/outfit"
	"stepbox/session/project"
	"stepbox/session/rules"
	"stepbox/session/scratch"
	"stepbox/store"
)

// maxNews is how many paths neighbours are told of one apply.
const maxNews = 1000

// applier writes sessions' changes to their project folders. Dir is the store's.
func applier(st *store.Store, h *files.History, dir string, env []string, owner func(id string) apply.Owner) *apply.Applier {
	home, _ := os.UserHomeDir() // without one there are no settings there
	a := &apply.Applier{
		Store: st, History: h, Owner: owner,
		Journals: project.Journals{Dir: filepath.Join(dir, "journals"), Bodies: files.Bodies{Store: st}},
		Person:   git.Person{Home: home, Config: os.Getenv("XDG_CONFIG_HOME")},
		Sandbox: func(s api.Session) apply.Sandbox {
			return scratch.New(scratch.Config{Store: st, Workspace: s.Folder, Home: home, Env: env, Hidden: s.HiddenPaths, Folder: st.SessionDir(s.ID), DataDir: dir})
		},
		Rules: func(s api.Session) (*policy.Policy, error) {
			now := rules.Look(policiesOf(home, os.Getenv("XDG_CONFIG_HOME"), dir, s.Folder))
			return policy.Of(now.Layers()...), errors.Join(now.User.Problem, now.Project.Problem)
		},
		Same: func(s api.Session) error { return same(st.SessionDir(s.ID), s) },
		Applied: func(ctx context.Context, s api.Session, steps []project.Step) {
			n := api.News{Kind: api.NewsApplied, From: api.Neighbour{ID: s.ID, Name: s.Name, Folder: s.Folder}}
			for _, step := range steps[:min(len(steps), maxNews)] {
				n.Paths = append(n.Paths, []byte(step.Path))
			}
			n.More = len(steps) - len(n.Paths)
			Tell(ctx, n)
		},
	}
	h.Applied, h.Returned, h.Person = a.Written, a.Returned, &a.Person
	h.Git = func(ctx context.Context, s *api.Session) string { return apart(ctx, st.SessionDir(s.ID), home, env, s) }
	h.Unfetched = func(ctx context.Context, s *api.Session) string {
		return unfetched(ctx, h, st.SessionDir(s.ID), home, env, s)
	}
	h.Undone = func(ctx context.Context, s *api.Session) string {
		return undone(ctx, h, st.SessionDir(s.ID), home, env, s)
	}
	return a
}

// longAgo is when a session has ended of which git isn't asked any more how far it and its
// project are apart: there may be many.
const longAgo = 48 * time.Hour

// apart says how the git of a session's project is another than the session's, if anything
// of the session's is still to come there.
func apart(ctx context.Context, folder, home string, env []string, s *api.Session) string {
	g := frozen.Git{Project: s.Folder, Folder: folder}
	taken, ok, err := frozen.Load(folder)
	if err != nil || !ok || s.Folder == "" {
		return ""
	}
	_ = g.Beyond(taken) // else it isn't shown
	if s.Unapplied == 0 && !g.MayOwn() {
		return ""
	}
	_, metadata := git.Above(s.Folder)
	var ask func(args ...string) (string, error)
	if time.Since(s.Last()) < longAgo {
		ask = func(args ...string) (string, error) {
			cmd, err := outfit.Git(ctx, s.Folder, metadata, home, env, args...)
			if err != nil {
				return "", err
			}
			out, err := cmd.Output()
			return string(out), err
		}
	}
	return g.Apart(ask)
}

// mend settles what killed processes left of applies, and says so to the person.
func mend(ctx context.Context, a *apply.Applier) error {
	said, err := a.Recover(ctx)
	for _, line := range said {
		fmt.Fprintln(os.Stderr, "stepbox:", line)
	}
	return err
}
