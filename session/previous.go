package session

import (
	"context"
	"strconv"

	"stepbox/session/api"
	"stepbox/session/ledger"
	"stepbox/store"
)

// maxPrevious bounds how many sessions are looked at for the one before.
const maxPrevious = 16

// tellPrevious says what the agent remembers and doesn't find, if it takes up a
// conversation: the session before changed files that nobody applied, and this one
// begins with the project folder as it is.
func (s *Session) tellPrevious(before *api.Session) {
	if before == nil || before.Unapplied == 0 {
		return
	}
	what, isnt, it := "1 file", "isn't", "it"
	if n := before.Unapplied; n > 1 {
		what, isnt, it = strconv.Itoa(n)+" files", "aren't", "them"
	}
	s.note(true, "%s that session %d (%s) changed %s in this folder, so the agent doesn't find %s: stepbox apply %d writes %s there, stepbox resume %d goes on with %s",
		what, before.Number, before.Name, isnt, it, before.Number, it, before.Number, it)
}

// before is the newest session of this agent over this folder that has ended; nil when
// there is none, or when this one goes on with another's files.
func (s *Session) before(ctx context.Context) *api.Session {
	if s.past != nil || s.fork != nil || !s.profile.Agent() {
		return nil
	}
	found, err := s.store.Choose(ctx, store.Choice{Agent: s.profile.Name, Folder: s.cfg.Workspace, NotIn: []string{s.cfg.ID}, Limit: maxPrevious})
	if err != nil {
		return nil // it is only told
	}
	for _, doc := range found.Docs {
		if b, err := ledger.Decode(doc); err == nil && !b.Live() && b.Workspace == s.info.Workspace {
			return &b
		}
	}
	return nil
}
