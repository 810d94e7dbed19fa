package files

import (
	"context"
	"slices"

	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/ledger"
)

// Course is how the states of a recorded session's files went on from each other, and
// by whom. It is only read.
type Course struct {
	All []api.Checkpoint // of all files, by number

	// By checkpoint: the actions in whose time its changes were made, by number, none of
	// what a person or a roll back did; and the roll back that left it.
	Made map[int64][]int
	Back map[int64]*api.Rollback

	line Line
}

// NewCourse finds out a session's course.
func NewCourse(past *ledger.Past) *Course {
	c := &Course{Made: make(map[int64][]int), Back: make(map[int64]*api.Rollback)}
	c.line.Recall(past.Checkpoints, past.Rollbacks)
	for _, cp := range past.Checkpoints {
		if cp.Action == 0 {
			c.All = append(c.All, cp)
		}
	}
	for _, a := range past.Actions {
		for _, s := range a.Spans {
			for at := s.To; at > s.From; at = c.From(at) {
				c.Made[at] = append(c.Made[at], a.N)
			}
		}
	}
	for i := range past.Rollbacks {
		if r := &past.Rollbacks[i]; r.After != 0 {
			c.Back[r.After] = r
		}
	}
	return c
}

// From is the checkpoint that one goes on from; 0: the project as it was.
func (c *Course) From(id int64) int64 { return c.line.From(id) }

// Index is where a checkpoint is in All; negative when it isn't one of all files.
func (c *Course) Index(id int64) int {
	i, found := slices.BinarySearchFunc(c.All, id, func(cp api.Checkpoint, id int64) int { return int(cp.ID - id) })
	if !found {
		return -1
	}
	return i
}

// Path is what a path was at first and then at each of All, nil where nothing was:
// upper's entry if it has one, else what is below it, which is what the first base from
// there on knows: a base has what the session saw when it came there.
func (c *Course) Path(ctx context.Context, f *Files, name string) ([]*manifest.Entry, error) {
	p := make([]*manifest.Entry, len(c.All)+1)
	var below *manifest.Entry
	var m *manifest.Manifest
	for i := len(c.All) - 1; i >= 0; i-- {
		if i == len(c.All)-1 || c.All[i].Root != c.All[i+1].Root {
			var err error
			if m, err = f.Along(ctx, c.All[i].Root, name); err != nil {
				return nil, err
			}
			if none := (*manifest.Manifest)(nil); none.Knows(m.Base, name) {
				below = none.Has(m.Base, name)
			}
		}
		p[i+1] = below
		if m.Knows(nil, name) {
			p[i+1] = m.Has(nil, name)
		}
	}
	p[0] = below
	return p, nil
}
