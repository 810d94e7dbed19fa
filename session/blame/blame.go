// Package blame says which action wrote each line of a file: at a moment of a session,
// or today in the project, by what was applied there.
//
// A file's lines are followed back over the checkpoints that its state goes on from, and
// from a fork's first one on in the session that it is a fork of.
// What a step has added is written by the action in whose time the step falls; what a
// roll back has come again is whoever's it was in the state that it comes from; and
// what no action wrote is the project's: what was there first, and what a person
// changed there or had merged in.
//
// Everything is read from the record, and today's file from the project. What a
// sandbox wrote is bounded here, and escaped. A Blamer is safe for concurrent use.
package blame

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/ledger"
	"stepbox/session/project"
	"stepbox/store"
)

// Bounds of a file whose lines are told apart.
const (
	maxBytes = 1 << 20
	maxLines = 20_000
)

// maxSessions is how many sessions of a folder are asked what they applied of a file.
const maxSessions = 256

// Blamer answers from the record.
type Blamer struct {
	History *files.History
	// Open opens a file of the project as a session saw it.
	Open func(ctx context.Context, id, path string, at api.Moment) (io.ReadCloser, error)
	// Applied gives what each apply of a session that stands made of a file, newest
	// first, of which part of its changes, and the checkpoint that it was taken from.
	Applied func(ctx context.Context, id, path string, each func(checkpoint int64, of api.Selection, s project.Step)) error
}

// maxForks is how many sessions lines are followed through, each a fork of the next.
const maxForks = 64

// At says who wrote each line of a file as it was at a moment.
func (b *Blamer) At(ctx context.Context, id, path string, m api.Moment) (api.Blame, error) {
	at, err := b.History.At(ctx, id, m)
	if err != nil {
		return api.Blame{}, err
	}
	w, err := b.walk(ctx, id)
	if err != nil {
		return api.Blame{}, err
	}
	t, err := w.text(ctx, w.place(at.Checkpoint, path))
	if err != nil {
		return api.Blame{}, err
	}
	if t == nil { // no state of the record has it: the session never changed it, or it isn't there
		r, err := b.Open(ctx, id, path, m)
		if err != nil {
			return api.Blame{}, err
		}
		defer r.Close()
		all, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
		if err != nil {
			return api.Blame{}, fmt.Errorf("cannot read %q: %w", api.Escape(path), err)
		}
		t = textOf(all)
	}
	a := newAnswer(path, t)
	a.Session = w.Session.ID
	if err := b.trace(ctx, w, at.Checkpoint, part{t, path, a.open()}, a); err != nil {
		return api.Blame{}, err
	}
	return a.done(), nil
}

// Today says who wrote each line of a file of a project as it is now: the actions of
// all sessions that applied something of it, as far as the lines are still theirs.
func (b *Blamer) Today(ctx context.Context, name string) (api.Blame, error) {
	all, err := b.History.Sessions(ctx)
	if err != nil {
		return api.Blame{}, err
	}
	last := int64(0) // sessions are numbered, each one more than those that there were
	for _, s := range all {
		last = max(last, s.Number)
	}
	removed := last > int64(len(all))
	all = slices.DeleteFunc(all, func(s api.Session) bool {
		return !strings.HasPrefix(name, strings.TrimSuffix(s.Folder, "/")+"/") || s.Folder == ""
	})
	if len(all) == 0 {
		return api.Blame{}, api.Problemf(api.CodeNotFound, "no session of the folder of %q is in the record, so it isn't known whether one wrote it: one that was removed may have", api.Escape(name))
	}
	today, err := read(all[0].Folder, name[len(strings.TrimSuffix(all[0].Folder, "/"))+1:])
	if err != nil {
		return api.Blame{}, err
	}
	a := newAnswer(name, textOf(today))
	a.Removed = removed
	for _, s := range all[:min(len(all), maxSessions)] {
		if err := b.applied(ctx, s.ID, name[len(strings.TrimSuffix(s.Folder, "/"))+1:], a); err != nil {
			return api.Blame{}, fmt.Errorf("cannot tell what session %s applied: %w", s.ID, err)
		}
	}
	return a.done(), nil
}

// applied gives those lines of today's file that nobody has yet to the actions of a
// session that wrote them.
func (b *Blamer) applied(ctx context.Context, id, path string, a *answer) error {
	var failed error
	var w *walk
	err := b.Applied(ctx, id, path, func(checkpoint int64, of api.Selection, s project.Step) {
		open := a.open()
		if failed != nil || len(open) == 0 {
			return
		}
		if w == nil {
			if w, failed = b.walk(ctx, id); failed != nil {
				return
			}
		}
		wrote, err := w.read(ctx, s.New.Hash, s.New.Size)
		if err == nil {
			same, _ := part{a.text, path, open}.in(wrote)
			err = b.trace(ctx, w, checkpoint, part{wrote, path, same}, a)
		}
		if err == nil && len(of.Actions)+len(of.Without) > 0 {
			same, _ := part{a.text, path, a.open()}.in(wrote)
			err = b.chosen(ctx, w, checkpoint, of, s.Old, part{wrote, path, same}, a)
		}
		failed = err
	})
	return errors.Join(failed, err)
}

// chosen gives lines that an apply of some actions wrote, and the session's state then
// didn't have, to those of these actions that had written them before. Nobody is given
// what the project had already, or what one that wasn't chosen may have written as well.
func (b *Blamer) chosen(ctx context.Context, w *walk, checkpoint int64, of api.Selection, had project.State, p part, a *answer) error {
	if !had.Absent() {
		before, err := w.read(ctx, had.Hash, had.Size)
		if err != nil || before.note != "" {
			return err
		}
		_, p.lines = p.in(before)
	}
	left := func(n int) bool {
		return slices.Contains(of.Without, n) || len(of.Actions) > 0 && !slices.Contains(of.Actions, n)
	}
	for at := w.place(checkpoint, p.path); at.checkpoint != 0 && len(p.lines) > 0; at.checkpoint = w.From(at.checkpoint) {
		t, err := w.text(ctx, at)
		if err != nil {
			return err
		}
		if t == nil {
			continue
		}
		same, _ := p.in(t)
		err = w.step(ctx, part{t, p.path, same}, at, func(by []int, fresh []line) {
			if !slices.ContainsFunc(by, func(n int) bool { return !left(n) }) {
				return
			}
			if !slices.ContainsFunc(by, left) {
				a.give(w.author(by), fresh)
			}
			p.lines = slices.DeleteFunc(slices.Clone(p.lines), func(l line) bool {
				return slices.ContainsFunc(fresh, func(f line) bool { return f.of == l.of })
			})
		})
		clear(w.lines) // the state before is looked at as a whole
		if err != nil {
			return errors.Join(err, ctx.Err())
		}
	}
	return ctx.Err()
}

// trace finds out whose some lines of a session's file are, which it had at a
// checkpoint. What a fork began with is followed on in the session it is a fork of.
func (b *Blamer) trace(ctx context.Context, w *walk, checkpoint int64, p part, a *answer) error {
	parts := []part{p}
	for forks := 0; ; forks++ {
		left, err := w.trace(ctx, checkpoint, parts, func(by []int, lines []line) { a.give(w.author(by), lines) })
		parent := w.Session.Parent
		if err != nil || len(left) == 0 || parent == nil {
			return err
		}
		next, err := b.walk(ctx, parent.ID)
		lost := api.Author{Session: parent.ID, Name: ledger.Called(ctx, b.History.Store, parent.ID, parent.Name)}
		switch {
		case forks == maxForks:
			lost.Title = "too many forks ago to be looked at"
		case errors.Is(err, store.ErrNotFound):
			lost.Title = "its record was removed"
		case err != nil:
			return err
		default:
			w, checkpoint, parts = next, parent.Checkpoint, left
			continue
		}
		for _, p := range left {
			lines, err := w.inherited(ctx, p)
			if err != nil {
				return err
			}
			a.give(lost, lines)
		}
		return nil
	}
}

// read reads a file of a project, which an agent's applied work may have put a link or
// a pipe near.
func read(folder, name string) ([]byte, error) {
	bad := func(err error) error {
		return fmt.Errorf("cannot read %q: %w", api.Escape(filepath.Join(folder, name)), err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, bad(err)
	}
	defer root.Close()
	switch info, err := root.Lstat(name); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, bad(errors.New("the project has no such file now; stepbox blame PATH SESSION shows one that a session has"))
	case err != nil:
		return nil, bad(err)
	case !info.Mode().IsRegular():
		return nil, bad(errors.New("it is no regular file of the project"))
	}
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, bad(err)
	}
	defer f.Close()
	all, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, bad(err)
	}
	return all, nil
}

// answer is a Blame that is made.
type answer struct {
	api.Blame
	text *text
	by   []int // whose each line is, in Blame.By; 0: the project's, or not known yet
	at   map[string]int
}

func newAnswer(path string, t *text) *answer {
	return &answer{
		Blame: api.Blame{Path: api.Escape(path), Lines: []api.BlameLine{}, By: []api.Author{{}}, Note: t.note},
		text:  t, by: make([]int, len(t.lines)), at: make(map[string]int),
	}
}

// open are the lines of which it isn't known yet whose they are.
func (a *answer) open() (out []line) {
	for i, by := range a.by {
		if by == 0 {
			out = append(out, line{i, i})
		}
	}
	return out
}

// give has lines be somebody's. What is nobody's stays the project's.
func (a *answer) give(to api.Author, lines []line) {
	if len(lines) == 0 || to.Session == "" {
		return
	}
	key := fmt.Sprint(to.Session, to.Action, to.With)
	if a.at[key] == 0 {
		a.at[key], a.By = len(a.By), append(a.By, to)
	}
	for _, l := range lines {
		a.by[l.of] = a.at[key]
	}
}

func (a *answer) done() api.Blame {
	for i, line := range a.text.lines {
		a.Lines = append(a.Lines, api.BlameLine{Text: api.EscapeLine(line), NoEnd: !strings.HasSuffix(line, "\n"), By: a.by[i]})
	}
	return a.Blame
}

// walk begins to follow the files of a session.
func (b *Blamer) walk(ctx context.Context, id string) (*walk, error) {
	past, err := ledger.Recall(ctx, b.History.Store, id)
	if err != nil {
		return nil, err
	}
	return newWalk(b.History.Store, past), nil
}
