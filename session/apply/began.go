package apply

import (
	"context"
	"strings"
	"sync"

	"stepbox/policy/git"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/base"
	"stepbox/session/files"
	"stepbox/session/project"
)

// began tells which paths a session's project had when its agent last started; and which are
// another file by now that git has, but not in the folder (git-sparse-checkout(1)). Where the
// first isn't in the record it tells of none.
func (a *Applier) began(ctx context.Context, s api.Session) (began, apart func(path string) bool) {
	rec := sync.OnceValue(func() *base.Record {
		if b := s.BaseOf(s.Resumed); b != nil {
			hash, err := files.ParseHash(b.Hash)
			if err == nil {
				if rec, err := base.Load(ctx, files.Bodies{Store: a.Store}, hash); err == nil {
					return rec
				}
			}
		}
		return &base.Record{}
	})
	had := sync.OnceValue(func() func(string) bool { return rec().Had() })
	sparse := sync.OnceValue(func() map[string]bool { return sparse(rec(), s.Folder) })
	return func(path string) bool { return had()(path) }, func(path string) bool {
		for at := path; at != ""; at, _ = manifest.Split(at) {
			if sparse()[at] {
				return true
			}
		}
		return false
	}
}

// sparse are the paths that the project's index has in another way than a
// record, and not in the folder.
func sparse(rec *base.Record, project string) map[string]bool {
	prefix, then, out := "", map[string]string{}, map[string]bool{}
	for _, r := range rec.Repositories {
		if r.Path == "" && r.Prefix != "" {
			prefix = r.Prefix + "/"
		}
		for _, t := range r.Tracked {
			then[manifest.Join(r.Path, t.Path)] = string(t.Hash)
		}
	}
	entries, _, _ := git.Open(project, git.Person{}).Index() // what can't be read tells of none
	for _, e := range entries {
		in, ok := strings.CutPrefix(e.Path, prefix)
		folder := strings.HasSuffix(in, "/") // of which it has what a tree is called, and no file
		if ok && e.Sparse && !folder && then[in] != string(e.Hash) {
			out[in] = true
		}
	}
	return out
}

// deleted says whether the project had something at a path when the agent started, and
// its person took it away before the session first touched it: what the session has there
// now takes no empty place. What an apply deleted is no such thing.
func (b *planner) deleted(path string, f *diff.File, has project.State) bool {
	switch {
	case f != nil || !has.Absent():
		return false
	case b.apart(path):
		b.p.turned[path] = "git has another there by now, which the sparse checkout leaves out"
	case !b.began(path):
		return false
	}
	s, _, ok := last(b.line, path)
	return !ok || !s.Absent()
}
