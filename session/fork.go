package session

import (
	"cmp"
	"context"
	"path/filepath"
	"time"

	"stepbox/runner"
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
	inherited, err := s.files.Between(ctx, nil, first.Manifest)
	s.fork, s.inherited = &first, len(inherited)
	return err
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
	for _, t := range named {
		s.note(true, "not surely as it was: %s: %s", cmp.Or(t.Path, "the project"), t.Why)
	}
	if more := len(p.Inexact) - len(named) + p.More; more > 0 {
		s.note(true, "and %d more files aren't surely as they were", more)
	}
}
