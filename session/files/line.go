package files

import (
	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
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
	// Last is the state that all changes so far are accounted for up to; nil
	// before the first.
	Last *Checkpoint
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
	return &Checkpoint{ID: l.newest, Root: root, Manifest: m}
}

// There are the checkpoints that the state of the files goes on from: what was
// changed up to one of them is there.
func (l *Line) There() map[int64]bool {
	there := make(map[int64]bool)
	for id := l.Last.ID; id != 0 && !there[id]; id = l.from[id] {
		there[id] = true
	}
	return there
}

// Span is two checkpoints, of which one goes on from the other directly or over
// others in between.
type Span struct{ From, To int64 }
