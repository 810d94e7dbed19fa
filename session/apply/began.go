package apply

import (
	"context"
	"sync"

	"stepbox/runner/overlay/diff"
	"stepbox/session/api"
	"stepbox/session/base"
	"stepbox/session/files"
	"stepbox/session/project"
)

// began tells which paths a session's project had when its agent last started. Where that
// isn't in the record it tells of none.
func (a *Applier) began(ctx context.Context, s api.Session) func(path string) bool {
	had := sync.OnceValue(func() func(string) bool {
		if b := s.BaseOf(s.Resumed); b != nil {
			hash, err := files.ParseHash(b.Hash)
			if err == nil {
				if rec, err := base.Load(ctx, files.Bodies{Store: a.Store}, hash); err == nil {
					return rec.Had()
				}
			}
		}
		return func(string) bool { return false }
	})
	return func(path string) bool { return had()(path) }
}

// deleted says whether the project had something at a path when the agent started, and
// its person took it away before the session first touched it: what the session has there
// now takes no empty place. What an apply deleted is no such thing.
func (b *planner) deleted(path string, f *diff.File, has project.State) bool {
	if f != nil || !has.Absent() || !b.began(path) {
		return false
	}
	s, _, ok := last(b.line, path)
	return !ok || !s.Absent()
}
