package blame

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/ledger"
	"stepbox/store"
)

// walk follows files of one session back through its states. One goroutine has it.
type walk struct {
	*ledger.Past
	files  *files.Files
	bodies files.Bodies

	*files.Course
	texts   map[place]*text
	authors [][]int // whoever is behind a number of a text, the first is 1: actions that may have written the same
	paths   map[string]*path
}

// place is a path at a checkpoint; 0 is the project as the session first saw it.
type place struct {
	checkpoint int64
	path       string
}

// path is what a path was at each checkpoint of all files, in their order: upper's
// entry if it has one, else what was below it.
type path []*manifest.Entry

func newWalk(st *store.Store, past *ledger.Past) *walk {
	w := &walk{
		Past: past, files: files.Recorded(st, past.Session.ID), bodies: files.Bodies{Store: st},
		Course: files.NewCourse(past), texts: make(map[place]*text), paths: make(map[string]*path),
	}
	return w
}

// follow reads what a path was at all checkpoints. What is below an upper is what the
// first base from there on knows: a base has what the session saw when it came there.
func (w *walk) follow(ctx context.Context, name string) (*path, error) {
	if p := w.paths[name]; p != nil {
		return p, nil
	}
	p := make(path, len(w.All)+1)
	var below *manifest.Entry
	var m *manifest.Manifest
	for i := len(w.All) - 1; i >= 0; i-- {
		if i == len(w.All)-1 || w.All[i].Root != w.All[i+1].Root {
			b, err := hex.DecodeString(w.All[i].Root)
			if err != nil || len(b) != len(content.Hash{}) {
				return nil, fmt.Errorf("cannot read the root of checkpoint %d", w.All[i].ID)
			}
			if m, err = manifest.LoadPath(ctx, w.bodies, content.Hash(b), name); err != nil {
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
	w.paths[name] = &p
	return &p, nil
}

// entry is what a path was at a checkpoint; nil: nothing, or it isn't known.
func (w *walk) entry(ctx context.Context, at place) (*manifest.Entry, error) {
	p, err := w.follow(ctx, at.path)
	if err != nil {
		return nil, err
	}
	i := w.Index(at.checkpoint)
	if at.checkpoint != 0 && i < 0 {
		return nil, fmt.Errorf("cannot find checkpoint %d", at.checkpoint)
	}
	if e := (*p)[i+1]; e != nil && e.Kind == manifest.KindFile {
		return e, nil
	}
	return nil, nil
}

// at is a file at a checkpoint with who wrote its lines; nil when no state of the
// record has a file there.
func (w *walk) at(ctx context.Context, checkpoint int64, name string) (*text, error) {
	if checkpoint == 0 && len(w.All) > 0 {
		checkpoint = w.All[0].ID // before it nothing had changed
	}
	return w.blame(ctx, place{checkpoint, name})
}

func (w *walk) blame(ctx context.Context, at place) (*text, error) {
	e, err := w.entry(ctx, at)
	if err != nil || e == nil {
		return nil, err
	}
	// The states of which it is the same file as in the one before, down to where it changed.
	var was *manifest.Entry
	for at.checkpoint != 0 {
		before := place{w.From(at.checkpoint), at.path}
		if was, err = w.entry(ctx, before); err != nil {
			return nil, err
		}
		if was == nil || was.Hash != e.Hash || was.Size != e.Size {
			break
		}
		at, e = before, was
	}
	if t := w.texts[at]; t != nil {
		return t, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if e.Unsaved != "" {
		return w.keep(at, &text{note: "not kept: " + api.Escape(e.Unsaved)}), nil
	}
	t, err := w.read(ctx, e.Hash, e.Size)
	if err != nil {
		return nil, err
	}
	if t.note != "" || at.checkpoint == 0 {
		return w.keep(at, t.give(projects)), nil
	}
	from, err := w.sources(ctx, at, was != nil)
	if err != nil {
		return nil, err
	}
	for _, p := range from {
		earlier, err := w.blame(ctx, p)
		if err != nil {
			return nil, err
		}
		t.inherit(earlier)
	}
	return w.keep(at, t.give(w.numberOf(w.Made(at.checkpoint)))), nil
}

// numberOf is what stands for some actions in a text.
func (w *walk) numberOf(actions []int) int32 {
	if len(actions) == 0 {
		return projects
	}
	i := slices.IndexFunc(w.authors, func(set []int) bool { return slices.Equal(set, actions) })
	if i < 0 {
		i, w.authors = len(w.authors), append(w.authors, actions)
	}
	return int32(i + 1)
}

func (w *walk) keep(at place, t *text) *text {
	w.texts[at] = t
	return t
}

// sources are where the lines of a file may come from that aren't new at a checkpoint:
// the file in the state before, under the name that it had, and for a roll back the
// states that it takes things from.
func (w *walk) sources(ctx context.Context, at place, there bool) ([]place, error) {
	from := w.From(at.checkpoint)
	before := place{from, at.path}
	out := []place{before}
	if !there && from != 0 {
		a, err := w.files.At(ctx, from)
		if err != nil {
			return nil, err
		}
		b, err := w.files.At(ctx, at.checkpoint)
		if err != nil {
			return nil, err
		}
		old, err := w.files.Origin(ctx, a, b, at.path)
		if err != nil {
			return nil, err
		}
		if old != "" {
			out[0].path = old
		}
	}
	r := w.Back(at.checkpoint)
	if r == nil {
		return out, nil
	}
	if r.Checkpoint != 0 {
		out = append(out, place{r.Checkpoint, at.path})
	}
	if i := slices.IndexFunc(w.Rollbacks, func(o api.Rollback) bool { return r.Redo != 0 && o.ID == r.Redo }); i >= 0 && w.Rollbacks[i].Before != 0 {
		out = append(out, place{w.Rollbacks[i].Before, at.path})
	}
	for _, a := range w.Actions {
		if r.Selection != nil && (slices.Contains(r.Actions, a.N) || slices.Contains(r.Selection.Actions, a.N)) {
			for _, s := range w.Spans(a) {
				out = append(out, place{s.From, at.path})
			}
		}
	}
	return slices.DeleteFunc(out, func(p place) bool { return p.checkpoint != 0 && w.Index(p.checkpoint) < 0 }), nil
}

// read reads a content of the record.
func (w *walk) read(ctx context.Context, h content.Hash, size int64) (*text, error) {
	if size > maxBytes {
		return &text{note: fmt.Sprintf("too large: it has %d bytes", size)}, nil
	}
	r, err := content.Open(ctx, w.bodies, h, size)
	if err == nil {
		defer r.Close()
		var all []byte
		if all, err = io.ReadAll(io.LimitReader(r, maxBytes+1)); err == nil {
			return textOf(all), nil
		}
	}
	if errors.Is(err, store.ErrNotFound) {
		return &text{note: "lost from the record"}, nil
	}
	return nil, err
}

// author is who is behind a number: the newest of the actions that may have written
// it, and the others.
func (w *walk) author(n int32) api.Author {
	by := w.authors[n-1]
	a := w.Actions[slices.IndexFunc(w.Actions, func(a api.Action) bool { return a.N == by[len(by)-1] })]
	out := api.Author{Session: w.Session.ID, Name: w.Session.Name, Action: a.N, Kind: a.Kind, Title: a.Title, At: a.StartedAt}
	out.With = append(slices.Clone(by[:len(by)-1]), a.SharedWith...)
	if a.Said != nil {
		out.Said = a.Said.Text
	}
	return out
}
