package session

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"stepbox/runner"
	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/restore"
	"stepbox/session/api"
	"stepbox/session/files"
)

// inherit looks at the files that a fork begins with, before they are mounted: its
// first checkpoint is what it inherits, and nothing that its agent does.
func (s *Session) inherit(ctx context.Context, prepared *runner.Prepared) error {
	s.files.Lower().Ask(prepared.OpenLower)
	upper := filepath.Join(s.store.SessionDir(s.cfg.ID), "upper")
	if err := s.files.Attach(upper, prepared.OpenUpper, s.outfit.Ignores.Ignored, time.Now()); err != nil {
		return err
	}
	s.files.GoOn(files.Checkpoint{Manifest: s.cfg.Laid})
	first, err := s.files.Look(ctx)
	if err != nil {
		return err
	}
	if err := s.asLaid(ctx, first.Manifest); err != nil {
		return err
	}
	inherited, err := s.files.Between(ctx, nil, first.Manifest)
	s.fork, s.inherited = &first, len(inherited)
	return err
}

// asLaid refuses what a fork would begin with if that isn't what was laid out for it. Owners,
// and the bits that go with them, aren't looked at, as a sandbox knows one, nor times.
func (s *Session) asLaid(ctx context.Context, is *manifest.Manifest) error {
	is, want := &manifest.Manifest{Root: is.Root}, &manifest.Manifest{Root: s.cfg.Laid.Root}
	plan, err := restore.NewPlan(ctx, s.files.Lower(), is, want, restore.Options{Whole: true})
	if err != nil {
		return err
	}
	for _, op := range plan.Ops {
		if e := is.Lookup(op.Path); op.Kind != restore.OpMeta || e != nil && e.Kind != manifest.KindSymlink && (e.Mode^op.Mode)&0o777 != 0 {
			return fmt.Errorf("%q wouldn't be as it was then", api.Escape(op.Path))
		}
	}
	return nil
}

// maxGaps is how many paths a fork's notes name that aren't as they were.
const maxGaps = 10

// sayForked tells what a fork begins with, and what it can't have.
func (s *Session) sayForked() {
	p := s.cfg.Parent
	if p == nil {
		return
	}
	at := "its end"
	if p.At != "" && p.At != "end" {
		at = string(p.At)
	}
	s.note(false, "forked from %s (%s) at %s: what it begins with is applied with what it does itself (changed files: %d); processes, connections, /tmp and the home folder aren't brought back",
		p.Name, p.ID, api.Escape(at), s.inherited)
	if p.Others > 0 {
		s.note(true, "files that %s didn't write are others in the project by now, or new (%d): here they are as when it began, and an apply leaves the project's as they are", p.Name, p.Others)
	}
	named := p.Inexact[:min(len(p.Inexact), maxGaps)]
	if slices.ContainsFunc(s.info.Dirs, func(d api.Dir) bool { return d.Write }) {
		s.note(true, "what %s wrote in folders besides the project isn't here: they are as on the host", p.Name)
	}
	for _, t := range named {
		s.note(true, "not surely as it was: %s: %s", cmp.Or(t.Path, "the project"), t.Why)
	}
	if more := len(p.Inexact) - len(named) + p.More; more > 0 {
		s.note(true, "and %d more files aren't surely as they were", more)
	}
}
