package session

import (
	"context"
	"encoding/hex"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/diff"
	"stepbox/session/api"
	"stepbox/session/base"
	"stepbox/session/effects"
	"stepbox/session/files"
)

// effects says in words what an action did. What it returns runs outside the
// loop.
func (s *Session) effects(a *action) func(*files.Told) {
	var hash content.Hash
	if s.info.Base != nil {
		_, _ = hex.Decode(hash[:], []byte(s.info.Base.Hash)) // it was written as such
	}
	var folders []string
	for _, c := range a.commands {
		if !c.Unclear {
			folders = append(folders, c.Cwd)
		}
	}
	ctx := context.Background()
	return func(t *files.Told) {
		if len(t.Changed) == 0 {
			return
		}
		in := effects.Input{
			Changed: t.Changed, More: t.More, From: t.From, To: t.Until, Project: s.cfg.Workspace, Folders: folders, Ignored: s.ignores.Ignored,
			Open: func(f *diff.File, most int64) ([]byte, bool) { return s.files.Read(ctx, f, most) },
		}
		if !hash.IsZero() {
			rec, err := base.Load(ctx, files.Bodies{Store: s.store}, hash)
			if err != nil {
				s.log.Warn("what the project was can't be read", "error", err)
			}
			in.Base = rec
		}
		t.Effects = effects.Of(in)
	}
}

// baseKnown says again what actions did that ended before it was known what the
// project was: of those nothing could be said to be lost.
func (s *Session) baseKnown() {
	for _, a := range s.actions.all {
		if a.State == api.ActionEnded && a.Effects != nil {
			s.told(a, func(t files.Told) {
				if t.Err == nil && t.To >= a.toldTo {
					a.Effects = t.Effects
					s.record(nil, s.actionEvent(a, "counted"))
				}
			})
		}
	}
}
