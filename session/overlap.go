package session

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"stepbox/policy/git"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/scan"
	"stepbox/session/frozen"
)

// both are files that the person's git has in another way than the session's, committed or
// staged, as by a merge that waits for them, where the session has something of its own or hides
// what the project has: on top of the person's the agent's next commit would take it back. Files that the person's git let go of
// are among them, and those that came into a folder that the session removed.
func (s *Session) both(ctx context.Context, all []*frozen.Wrote, settled scan.Drop) (paths []string, err error) {
	found := s.past.found.Manifest
	changes, err := s.files.Between(ctx, nil, found)
	if err != nil {
		return nil, err
	}
	before := map[string]*diff.File{} // as the session first saw it
	for i := range changes {
		c := &changes[i]
		before[c.Path] = c.Old
		if c.From != "" {
			before[c.Path], before[c.From] = nil, c.Old
		}
	}
	covers := covered(found)
	g := s.outfit.Git
	staged, err := g.Staged(all)
	if err != nil {
		return nil, err
	}
	for _, dir := range append([]string{"."}, g.Folders()...) {
		at := filepath.Join(g.Project, dir)
		now, _, err := git.Open(at, git.Person{}).Index()
		if errors.Is(err, git.ErrIndex) && git.CheckedOut(at, g.Of) == git.CheckedOut(at, git.Here) {
			continue
		}
		if err != nil {
			return nil, err
		}
		base, err := g.Index(dir, all)
		if err != nil {
			return nil, err
		}
		others := frozen.Otherwise(at, base, now)
		for _, p := range slices.Sorted(maps.Keys(others)) {
			if p = path.Join(dir, p); !covers(p) {
				continue
			}
			old, changed := before[p]
			_, own := staged[p] // then it is based on what the agent's git has there
			switch meets, err := s.meets(ctx, p, old, changed && !own, settled); {
			case err != nil:
				return nil, err
			case meets:
				paths = append(paths, p)
			}
		}
	}
	return paths, nil
}

// undone are the paths that the session has put back without committing that, where the
// project has something else.
func (s *Session) undone(ctx context.Context, all []*frozen.Wrote) (paths []string, err error) {
	return s.outfit.Git.Undone(all, s.past.found.Manifest, s.reads(ctx), s.tree(ctx), func(p string, e *manifest.Entry) bool {
		ours, err := s.inProject(ctx, p, e)
		return err == nil && ours
	})
}

// inProject says whether the project has a path as the session.
func (s *Session) inProject(ctx context.Context, p string, e *manifest.Entry) (bool, error) {
	var now *diff.File
	if !e.Absent() {
		now = &diff.File{Entry: *e}
	}
	return s.files.InProject(ctx, p, now)
}

// took says whether the agent's git took a path over as the person had made it meanwhile:
// what that had been is another than what it has, and would be committed as the agent's.
func (s *Session) took(staged map[string]*git.Entry, p string) bool {
	e, differs := staged[p]
	_, err := os.Lstat(filepath.Join(s.outfit.Git.Project, p))
	return e != nil || differs && err != nil // there may be a file in its folder's place
}

// meets says whether the project has something else of the person's at a path than the
// session, which has it changed, or hides it: then it never saw what is there.
func (s *Session) meets(ctx context.Context, p string, old *diff.File, changed bool, settled scan.Drop) (bool, error) {
	e := cmp.Or(s.past.found.Manifest.Lookup(p), &manifest.Entry{Kind: manifest.KindWhiteout})
	ours, err := s.inProject(ctx, p, e)
	if ours || err != nil {
		return false, err
	}
	if changed {
		first, err := s.files.AsSeen(ctx, p, old)
		if first || err != nil {
			return false, err
		}
	}
	return s.keeps(p) || !settled(p, e, true), nil
}

// keeps says whether a path is below a folder of the project's that the session made anew:
// nothing of that is let go of.
func (s *Session) keeps(p string) bool {
	found := s.past.found.Manifest
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		was, is := (*manifest.Manifest)(nil).Has(found.Base, dir), found.Lookup(dir)
		if was != nil && was.Kind == manifest.KindDir && is != nil && is.Opaque {
			return true
		}
	}
	return false
}
