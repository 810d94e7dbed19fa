package session

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
)

// Hear takes in what another live session over the same files tells. Nothing is
// done for it but that a person is told.
func (s *Session) Hear(ctx context.Context, n api.News) (api.Session, error) {
	known := func(o api.Neighbour) bool { return o.ID == n.From.ID }
	n.From.ID, n.From.Name = api.Escape(api.Trim(n.From.ID, 80)), api.Escape(api.Trim(n.From.Name, 80))
	how := overlap(s.cfg.Workspace, n.From.Folder)
	if how == "" || n.From.ID == s.cfg.ID {
		return api.Session{}, api.Problemf(api.CodeInvalid, "session %s doesn't work on the files of this one", n.From.ID)
	}
	return s.change(ctx, "beside", func() error {
		switch beside := slices.ContainsFunc(s.info.Beside, known); n.Kind {
		case api.NewsStarted:
			if beside {
				return nil
			}
			s.info.Beside = append(slices.Clone(s.info.Beside), n.From)
			s.note(true, "session %s (%s) also works on %s: neither sees what the other changes before that is applied", n.From.Name, n.From.ID, how)
		case api.NewsEnded:
			s.info.Beside = slices.DeleteFunc(slices.Clone(s.info.Beside), known)
			if beside {
				s.note(false, "session %s (%s), which also worked on %s, has ended", n.From.Name, n.From.ID, how)
			}
		case api.NewsApplied:
			if warn, words := appliedBeside(n, s.cfg.Workspace, s.files.Scanned()); words != "" {
				s.note(warn, "%s", words)
			}
		default:
			return api.Problemf(api.CodeInvalid, "there is no news %q", api.Escape(api.Trim(string(n.Kind), 40)))
		}
		return nil
	})
}

// appliedBeside tells what another session's apply means to this one: of files
// that it has changed itself it goes on to see its own.
func appliedBeside(n api.News, folder string, held *manifest.Manifest) (warn bool, words string) {
	var names, all []string
	for _, p := range n.Paths {
		rel, err := filepath.Rel(folder, filepath.Join(n.From.Folder, string(p)))
		if err != nil || !filepath.IsLocal(rel) {
			continue // a nested session's neighbour wrote elsewhere
		}
		if all = append(all, api.Escape(rel)); held.Lookup(rel) != nil {
			names = append(names, api.Escape(rel))
		}
	}
	switch {
	case len(names) > 0:
		return true, fmt.Sprintf("session %s wrote %s to the project, which this session has changed too and goes on to see as its own", n.From.Name, listed(names, len(names), 3))
	case len(all) > 0:
		words = fmt.Sprintf("session %s wrote %s to the project, which this session sees as it is there now", n.From.Name, listed(all, len(all)+n.More, 3))
	}
	return false, words
}

// Overlap says whether two sessions work on the same files.
func Overlap(one, other api.Neighbour) bool { return overlap(one.Folder, other.Folder) != "" }

// overlap says in words, to a session in one folder, where another works; "" when
// that is none of its files.
func overlap(folder, other string) string {
	switch {
	case folder == other:
		return "this folder"
	case strings.HasPrefix(other, strings.TrimSuffix(folder, "/")+"/"):
		return fmt.Sprintf("%s, inside this session's folder", api.Escape(other))
	case strings.HasPrefix(folder, strings.TrimSuffix(other, "/")+"/"):
		return fmt.Sprintf("%s, which holds this session's folder", api.Escape(other))
	}
	return ""
}
