package launch

import (
	"context"
	"fmt"

	"stepbox/runner/overlay/manifest"
	"stepbox/session"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/frozen"
	"stepbox/session/scratch"
	"stepbox/session/tree"
	"stepbox/store"
)

// Fork names what a session begins as: another one's files at a moment.
type Fork struct {
	Session string     `json:"session"`
	At      api.Moment `json:"at"`
}

// layOut puts the files that a fork begins with into its folder, over the project as
// it is now, and notes what they are.
func layOut(ctx context.Context, st *store.Store, cfg *session.Config) error {
	source := tree.Source{Store: st, Home: cfg.Home, Env: cfg.Env}
	history := &files.NewHistory(st, registryIn(cfg.DataDir).live).History
	p := cfg.Parent
	bad := func(err error) error { return fmt.Errorf("cannot fork session %s: %w", p.ID, err) }
	t, err := source.In(ctx, history, p.ID, p.At)
	if err != nil {
		return bad(err)
	}
	defer t.Close()
	upper, gaps, err := t.Over(ctx, true)
	if err != nil {
		return bad(err)
	}
	cfg.Laid = &manifest.Manifest{Root: upper.Root}
	if cfg.Laid.Base, p.Others, err = t.Beneath(ctx, upper); err != nil {
		return bad(err)
	}
	first := &manifest.Manifest{Root: cfg.Laid.Base.Root}
	if err := frozen.Fork(st.SessionDir(p.ID), st.SessionDir(cfg.ID)); err != nil {
		return bad(err)
	}
	p.Inexact, p.More = tree.Told(gaps)
	p.Checkpoint = t.At.Checkpoint
	err = scratch.New(scratch.Config{
		Store: st, Workspace: cfg.Workspace, Home: cfg.Home, Env: cfg.Env, Hidden: t.Session.HiddenPaths, Folder: st.SessionDir(cfg.ID), DataDir: cfg.DataDir, Limits: cfg.Limits,
	}).Lay(ctx, st.SessionDir(cfg.ID), upper, func(path string) bool {
		return !upper.Lookup(path).Same(first.Lookup(path)) // what the other session did
	})
	if err != nil {
		return bad(err)
	}
	return nil
}
