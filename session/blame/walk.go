package blame

import (
	"context"
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
	texts map[content.Hash]*text       // those that were read last
	paths map[string][]*manifest.Entry // see files.Course
	lines map[place][]line             // of the file there, that are still to be looked at
}

// place is a path at a checkpoint; 0 is the project as the session first saw it.
type place struct {
	checkpoint int64
	path       string
}

func newWalk(st *store.Store, past *ledger.Past) *walk {
	return &walk{
		Past: past, files: files.Recorded(st, past.Session.ID), bodies: files.Bodies{Store: st}, Course: files.NewCourse(past),
		texts: make(map[content.Hash]*text), paths: make(map[string][]*manifest.Entry), lines: make(map[place][]line),
	}
}

// entry is what a path was at a checkpoint; nil: nothing, or it isn't known.
func (w *walk) entry(ctx context.Context, at place) (*manifest.Entry, error) {
	p := w.paths[at.path]
	if p == nil {
		var err error
		if p, err = w.Path(ctx, w.files, at.path); err != nil {
			return nil, err
		}
		w.paths[at.path] = p
	}
	i := w.Index(at.checkpoint)
	if at.checkpoint != 0 && i < 0 {
		return nil, fmt.Errorf("cannot find checkpoint %d: stepbox verify says what the record lost", at.checkpoint)
	}
	if e := p[i+1]; e != nil && e.Kind == manifest.KindFile {
		return e, nil
	}
	return nil, nil
}

// place is a path as a session had it at a checkpoint.
func (w *walk) place(checkpoint int64, name string) place {
	if checkpoint == 0 && len(w.All) > 0 {
		checkpoint = w.All[0].ID // before it nothing had changed
	}
	return place{checkpoint, name}
}

// trace follows lines of files back, each of which is as it was at a checkpoint, or
// made of that. It tells which lines some actions wrote, and gives back those that are
// as they were when the session began. However many states there are, it has but a few
// texts at once.
func (w *walk) trace(ctx context.Context, checkpoint int64, of []part, wrote func(actions []int, lines []line)) (left []part, err error) {
	for _, p := range of {
		at := w.place(checkpoint, p.path)
		if e, err := w.entry(ctx, at); err != nil {
			return nil, err
		} else if e == nil {
			left = append(left, p) // the session never touched it
		} else if _, err := w.follow(ctx, p, at); err != nil {
			return nil, err
		}
	}
	for len(w.lines) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var at place // the newest; all that it is made of is older
		for p := range w.lines {
			if p.checkpoint >= at.checkpoint {
				at = p
			}
		}
		p := part{path: at.path, lines: w.lines[at]}
		delete(w.lines, at)
		if p.text, err = w.text(ctx, at); err != nil {
			return nil, err
		}
		if at.checkpoint == 0 || at.checkpoint == w.All[0].ID && w.Session.Parent != nil {
			left = append(left, p)
		} else if err := w.step(ctx, p, at, wrote); err != nil {
			return nil, err
		}
	}
	return left, nil
}

// step follows lines of a file at a checkpoint to what that goes on from.
func (w *walk) step(ctx context.Context, p part, at place, wrote func(actions []int, lines []line)) error {
	before := place{w.From(at.checkpoint), at.path}
	is, err := w.entry(ctx, at)
	if err != nil {
		return err
	}
	was, err := w.entry(ctx, before)
	if err != nil {
		return err
	}
	if was != nil && was.Hash == is.Hash && was.Size == is.Size {
		w.lines[before] = append(w.lines[before], p.lines...)
		return nil
	}
	from, err := w.sources(ctx, at, was != nil)
	if err != nil {
		return err
	}
	for _, source := range from {
		if p.lines, err = w.follow(ctx, p, source); err != nil {
			return err
		}
	}
	wrote(w.Made[at.checkpoint], p.lines)
	return nil
}

// follow has those lines be looked at further that a place has too, and gives back the
// others.
func (w *walk) follow(ctx context.Context, p part, at place) ([]line, error) {
	t, err := w.text(ctx, at)
	if err != nil || t == nil || len(p.lines) == 0 {
		return p.lines, err
	}
	same, rest := p.in(t)
	if len(same) > 0 {
		w.lines[at] = append(w.lines[at], same...)
	}
	return rest, nil
}

// inherited are those lines of a file that a fork began with which the project didn't
// have.
func (w *walk) inherited(ctx context.Context, p part) ([]line, error) {
	if e, err := w.entry(ctx, w.place(0, p.path)); err != nil || e == nil {
		return nil, err
	}
	t, err := w.text(ctx, place{0, p.path})
	if err != nil || t == nil {
		return p.lines, err
	}
	_, rest := p.in(t)
	return rest, nil
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
	r := w.Back[at.checkpoint]
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
			for _, s := range a.Spans {
				out = append(out, place{s.From, at.path})
			}
		}
	}
	return slices.DeleteFunc(out, func(p place) bool { return p.checkpoint != 0 && w.Index(p.checkpoint) < 0 }), nil
}

// text is a file at a place; nil when no state of the record has a file there.
func (w *walk) text(ctx context.Context, at place) (*text, error) {
	e, err := w.entry(ctx, at)
	switch {
	case err != nil || e == nil:
		return nil, err
	case e.Unsaved != "":
		return &text{note: "not kept: " + api.Escape(e.Unsaved)}, nil
	case w.texts[e.Hash] != nil:
		return w.texts[e.Hash], nil
	}
	t, err := w.read(ctx, e.Hash, e.Size)
	if err != nil {
		return nil, err
	}
	if len(w.texts) == maxTexts {
		clear(w.texts)
	}
	w.texts[e.Hash] = t
	return t, nil
}

// maxTexts is how many texts a walk has at once: a state, and what it is made of.
const maxTexts = 4

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

// author is who wrote what some actions may have: the newest of them, with the others;
// the project without any.
func (w *walk) author(by []int) (out api.Author) {
	if len(by) == 0 {
		return out
	}
	a := w.Actions[slices.IndexFunc(w.Actions, func(a api.Action) bool { return a.N == by[len(by)-1] })]
	out = api.Author{Session: w.Session.ID, Name: w.Session.Name, Action: a.N, Kind: a.Kind, Title: a.Title, At: a.StartedAt, Said: a.Said()}
	out.With = append(slices.Clone(by[:len(by)-1]), a.SharedWith...)
	return out
}
