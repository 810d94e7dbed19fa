package files

import (
	"slices"
	"time"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
)

// Checkpoint is the state of the session's files at a moment. It is never
// changed: many goroutines read it.
type Checkpoint struct {
	ID       int64
	Root     content.Hash
	Manifest *manifest.Manifest
}

// Line is a session's checkpoints in the order in which they go on from each
// other, which a roll back turns back. The session's loop owns it.
type Line struct {
	newest int64
	from   map[int64]int64 // the checkpoint that each goes on from
	turned []turn          // in order
	// Last is the state that all changes so far are accounted for up to; nil
	// before the first.
	Last *Checkpoint
}

// turn is a checkpoint with other files of the project below it, and the one before.
type turn struct{ at, before int64 }

func turns(m *manifest.Manifest) uint64 {
	if m == nil || m.Base == nil {
		return 0
	}
	return m.Base.Turns
}

// Newest is the number of the newest checkpoint.
func (l *Line) Newest() int64 { return l.newest }

// Number makes a state a checkpoint. From is the one that it goes on from: the
// one before it, or the one that a roll back restored; 0 is none.
func (l *Line) Number(root content.Hash, m *manifest.Manifest, from int64) *Checkpoint {
	if l.from == nil {
		l.from = make(map[int64]int64)
	}
	l.newest++
	l.from[l.newest] = from
	if l.Last != nil && turns(m) > turns(l.Last.Manifest) {
		l.turned = append(l.turned, turn{l.newest, l.Last.ID})
	}
	return &Checkpoint{ID: l.newest, Root: root, Manifest: m}
}

// Turns are the checkpoints since one that know what was below the files then, where
// the next one doesn't any more, in order: see api.Checkpoint.
func (l *Line) Turns(since int64) (out []int64) {
	for _, t := range l.turned {
		if t.at > since {
			out = append(out, t.before)
		}
	}
	return out
}

// turnedAt is the checkpoint before the one with that number, if it knows more.
func (l *Line) turnedAt(id int64) int64 {
	for _, t := range slices.Backward(l.turned) {
		if t.at == id {
			return t.before
		}
	}
	return 0
}

// Event tells of a new checkpoint. Of is the action whose changes alone it holds; 0:
// it is the state of all files.
func (l *Line) Event(cp *Checkpoint, of int) api.Event {
	return api.Event{Kind: "checkpoint", Checkpoint: &api.Checkpoint{
		ID: cp.ID, At: time.Now().UTC(), From: l.from[cp.ID], Root: cp.Root.String(), Files: cp.Manifest.Len(), Bytes: cp.Manifest.Bytes(), Action: of,
		Turned: l.turnedAt(cp.ID),
	}}
}

// From is the checkpoint that one goes on from; 0: none.
func (l *Line) From(id int64) int64 { return l.from[id] }

// Recall takes up the line of a session that goes on. Of checkpoints that were
// recorded without what they go on from, that is the one before, but for those
// that a roll back left. Last is the session's to find.
func (l *Line) Recall(checkpoints []api.Checkpoint, rollbacks []api.Rollback) {
	l.from = make(map[int64]int64)
	last := int64(0)
	for _, cp := range checkpoints {
		l.newest = max(l.newest, cp.ID)
		if cp.Turned != 0 {
			l.turned = append(l.turned, turn{cp.ID, cp.Turned})
		}
		if cp.Action != 0 { // it holds an action's changes alone
			l.from[cp.ID] = 0
			continue
		}
		l.from[cp.ID] = cp.From
		if cp.From == 0 {
			l.from[cp.ID] = last
		}
		for len(rollbacks) > 0 && !cp.At.Before(rollbacks[0].At) {
			if r := rollbacks[0]; cp.From == 0 && r.Home == nil && r.Failure == "" && !r.Open {
				l.from[cp.ID] = r.Checkpoint
			}
			rollbacks = rollbacks[1:]
		}
		last = cp.ID
	}
}

// There are the checkpoints that the state of the files at one goes on from: what was
// changed up to one of them is there.
func (l *Line) There(id int64) map[int64]bool {
	there := make(map[int64]bool)
	for ; id != 0 && !there[id]; id = l.from[id] {
		there[id] = true
	}
	return there
}

// Span is two checkpoints, of which one goes on from the other directly or over
// others in between.
type Span struct{ From, To int64 }
