package session

import (
	"slices"

	"stepbox/session/api"
)

// lost is what couldn't be recorded. The session stops at the first of it, so
// there is never much; at the end, when there may be room again, it is told
// anew as it stands then. Owned by the loop.
type lost struct {
	actions     []int
	checkpoints []api.Event
}

// maxLost bounds what is told anew, in events.
const maxLost = 4096

func (l *lost) add(events []api.Event) {
	for _, e := range events {
		switch {
		case len(l.actions)+len(l.checkpoints) >= maxLost:
			return
		case e.Action != nil && !slices.Contains(l.actions, e.Action.N):
			l.actions = append(l.actions, e.Action.N)
		case e.Checkpoint != nil:
			l.checkpoints = append(l.checkpoints, e)
		}
	}
}

// events tells it anew. Actions that still run or wait are told by the end.
func (l *lost) events(s *Session) []api.Event {
	events := l.checkpoints
	for _, n := range l.actions {
		if a := s.actions.at(n); a != nil && a.State != api.ActionHeld && a.State != api.ActionRunning {
			events = append(events, s.actionEvent(a, "counted"))
		}
	}
	return events
}
