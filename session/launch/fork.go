package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"stepbox/runner/overlay/manifest"
	"stepbox/session"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/ledger"
	"stepbox/session/scratch"
	"stepbox/session/tree"
	"stepbox/store"
)

// Fork names what a session begins as: another one's files at a moment.
type Fork struct {
	Session string     `json:"session"`
	At      api.Moment `json:"at"`
}

// forked is a new session with another's rules, and that other one.
func (r Request) forked(ctx context.Context, st *store.Store, dir, root string) (session.Config, error) {
	refuse := func(format string, args ...any) (session.Config, error) {
		return session.Config{}, &Error{Code: 1, Message: fmt.Sprintf("cannot fork session %s: ", api.Escape(api.Trim(r.Fork.Session, 80))) + fmt.Sprintf(format, args...)}
	}
	was, err := ledger.Doc[api.Session](ctx, st, r.Fork.Session, store.KindSession, 0)
	if errors.Is(err, store.ErrNotFound) {
		return refuse("there is no such session; stepbox ls lists them")
	}
	if err != nil {
		return session.Config{}, err
	}
	k, old, err := r.as(st, was)
	if err != nil {
		return refuse("%v", err)
	}
	if len(r.Argv) == 0 {
		return refuse("the Stepbox that ran it didn't keep its exact command, which was %s: say what is to run: stepbox fork %s -- COMMAND", was.Command, was.ID)
	}
	r.Mode = cmp.Or(r.Mode, was.Mode)
	r.Name = cmp.Or(r.Name, was.Name+"-fork")
	if r.Cols <= 0 || r.Rows <= 0 {
		r.Cols, r.Rows = was.Cols, was.Rows
	}
	cfg, err := r.config(dir, root)
	if err != nil {
		return cfg, fmt.Errorf("cannot fork session %s: its project folder can't be used: %w", was.ID, err)
	}
	now, err := identityOf(cfg.Workspace)
	if err != nil || !old && !now.is(k.Folder) {
		return refuse("%s isn't the folder that it worked on, but another of that name; put the right one back there. Its files are in the record: stepbox checkout %s", was.Workspace, was.ID)
	}
	cfg.Parent = &api.Parent{ID: was.ID, Name: was.Name, At: r.Fork.At}
	return cfg, nil
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
	upper, gaps, err := t.Over(ctx)
	if err != nil {
		return bad(err)
	}
	cfg.Laid = &manifest.Manifest{Root: upper.Root}
	if cfg.Laid.Base, p.Others, err = t.Beneath(ctx, upper); err != nil {
		return bad(err)
	}
	told, more := tree.Told(gaps)
	for _, g := range told {
		p.Inexact = append(p.Inexact, cmp.Or(g.Path, "the project")+": "+g.Why)
	}
	if more > 0 {
		p.Inexact = append(p.Inexact, fmt.Sprintf("%d more", more))
	}
	p.Checkpoint = t.At.Checkpoint
	err = scratch.New(scratch.Config{
		Store: st, Workspace: cfg.Workspace, Home: cfg.Home, Env: cfg.Env, Hidden: t.Session.HiddenPaths, DataDir: cfg.DataDir, Limits: cfg.Limits,
	}).Lay(ctx, st.SessionDir(cfg.ID), upper)
	if err != nil {
		return bad(err)
	}
	return nil
}
