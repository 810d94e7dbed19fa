package files

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/project"
)

// Session fetches one session. What an interrupted one changed and nobody applied is
// counted here, since its supervisor couldn't.
func (h *History) Session(ctx context.Context, id string) (api.Session, error) {
	s, err := h.History.Session(ctx, id)
	h.Today(ctx, &s)
	if s.State == "" || s.Live() {
		return s, err
	}
	if h.Unfetched != nil {
		s.Unfetched = h.Unfetched(ctx, &s)
	}
	if h.Undone != nil {
		if s.Undone = h.Undone(ctx, &s); s.Undone != "" {
			s.Git = strings.TrimPrefix(s.Git+"; it put back "+s.Undone+", and didn't commit that", "; ")
		}
	}
	return s, err
}

// Sessions lists all sessions, newest first, as Session has them but for what was never
// fetched: a person's git is asked that, which takes longer than all else.
func (h *History) Sessions(ctx context.Context) ([]api.Session, error) {
	all, err := h.History.Sessions(ctx)
	for i := range all {
		h.Today(ctx, &all[i])
	}
	return all, err
}

// Today brings up to date what becomes another without the session.
func (h *History) Today(ctx context.Context, s *api.Session) {
	h.unapplied(ctx, s)
	if s.State != "" && !s.Live() {
		if s.Git, s.Unfetched, s.Undone = "", "", ""; h.Git != nil {
			s.Git = h.Git(ctx, s)
		}
	}
}

// unapplied counts what an interrupted session changed and no apply wrote, unless an
// apply has counted since. Of a record that can't be read nothing is counted: whoever
// looks at its changes hears why.
func (h *History) unapplied(ctx context.Context, s *api.Session) {
	if s.State != api.SessionInterrupted {
		return
	}
	applies, err := h.Applies(ctx, s.ID)
	began := s.StartedAt
	if s.Resumed > 0 {
		began = s.ResumedAt
	}
	if err != nil || slices.ContainsFunc(applies, func(a api.Apply) bool {
		return a.UndoneAt.After(began) || a.State == api.ApplyDone && a.At.After(began)
	}) {
		return
	}
	key := fmt.Sprint(s.ID, s.Resumed)
	n, known := h.counted.get(key)
	if !known {
		if n, err = h.count(ctx, *s); err != nil {
			return
		}
		h.counted.put(key, n, maxCounted)
	}
	s.Unapplied = n
}

// maxCounted is of how many sessions it is remembered.
const maxCounted = 1000

func (h *History) count(ctx context.Context, session api.Session) (n int, err error) {
	s, err := h.Scope(ctx, session.ID, api.Scope{})
	if err != nil || s.To == nil {
		return 0, err
	}
	wrote, err := h.applied(ctx, session.ID)
	if err != nil {
		return 0, err
	}
	n, err = s.Files.Unapplied(ctx, s.To, func(_ context.Context, path string, f *diff.File) (bool, error) {
		return wrote != nil && wrote(path, f), nil
	})
	if err != nil || h.Returned == nil {
		return n, err
	}
	if more, err := h.Returned(ctx, session, s.Files, s.To, s.Newest); err == nil { // the folder may be gone
		n += len(more)
	}
	return n, nil
}

// Unapplied counts what a session changed up to a state and the project doesn't have.
// Has says whether it has a file as it is then, nil for one that is gone; without it
// the project has none.
func (f *Files) Unapplied(ctx context.Context, to *manifest.Manifest, has func(context.Context, string, *diff.File) (bool, error)) (n int, err error) {
	all, err := f.Between(ctx, nil, to)
	if err != nil {
		return 0, err
	}
	for _, c := range all {
		there := project.Never(c.Path) != "" || f.Ignored(c.Path) // a repository's own, whose commits are fetched; or what only the machine needs
		if !there && has != nil {
			if there, err = has(ctx, c.Path, c.New); err != nil {
				return 0, err
			}
		}
		if !there {
			n++
		}
	}
	return n, nil
}

// InProject says whether the project folder has a file as it is.
func (f *Files) InProject(ctx context.Context, path string, now *diff.File) (bool, error) {
	has, err := f.lower.Lookup(ctx, path)
	return err == nil && project.Of(has).Same(StateOf(now)), err
}

// StateOf is a side of a change as a state of the project; of nil, nothing.
func StateOf(f *diff.File) project.State {
	if f == nil {
		return project.State{}
	}
	return project.Of(&f.Entry)
}

// AsSeen says whether the project folder has a file as the session first saw it.
func (f *Files) AsSeen(ctx context.Context, path string, was *diff.File) (bool, error) {
	has, err := f.lower.Lookup(ctx, path)
	return err == nil && Still(was, project.Of(has)), err
}

// Still says whether the project has what a session first saw, nil for nothing. Of files
// whose content wasn't kept there may be no hash: then length and time of change tell, as
// for git.
func Still(f *diff.File, has project.State) bool {
	switch {
	case f == nil:
		return has.Absent()
	case f.Kind == manifest.KindFile && f.Hash.IsZero() && (f.Size > 0 || f.Unsaved != ""):
		return has.Kind == manifest.KindFile && has.Size == f.Size && has.MTime == f.MTime && has.Mode&0o777 == f.Mode&0o777 && f.MTime != manifest.Time{}
	case f.Kind == manifest.KindFile && f.Size == 0 && f.Unsaved == "":
		return has.Kind == manifest.KindFile && has.Size == 0 && has.Mode&0o777 == f.Mode&0o777
	}
	return has.Same(StateOf(f))
}
