// Package blame says which action wrote each line of a file: at a moment of a session,
// or today in the project, by what was applied there.
//
// A file's lines are followed back over the checkpoints that its state goes on from.
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
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/ledger"
	"stepbox/session/merge"
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
	// first, and the checkpoint that it was taken from.
	Applied func(ctx context.Context, id, path string, each func(checkpoint int64, s project.State)) error
}

// At says who wrote each line of a file as it was at a moment.
func (b *Blamer) At(ctx context.Context, id, path string, m api.Moment) (api.Blame, error) {
	out := newBlame(path)
	at, err := b.History.At(ctx, id, m)
	if err != nil {
		return out.Blame, err
	}
	w, err := b.walk(ctx, id)
	if err != nil {
		return out.Blame, err
	}
	t, err := w.at(ctx, at.Checkpoint, path)
	if err != nil {
		return out.Blame, err
	}
	if t == nil { // no state of the record has it: the session never changed it, or it isn't there
		r, err := b.Open(ctx, id, path, m)
		if err != nil {
			return out.Blame, err
		}
		defer r.Close()
		all, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
		if err != nil {
			return out.Blame, fmt.Errorf("cannot read %q: %w", api.Escape(path), err)
		}
		t = textOf(all)
	}
	return out.of(t, w.author), nil
}

// Today says who wrote each line of a file of a project as it is now: the actions of
// all sessions that applied something of it, as far as the lines are still theirs.
func (b *Blamer) Today(ctx context.Context, name string) (api.Blame, error) {
	out := newBlame(name)
	all, err := b.History.Sessions(ctx)
	if err != nil {
		return out.Blame, err
	}
	all = slices.DeleteFunc(all, func(s api.Session) bool {
		return !strings.HasPrefix(name, strings.TrimSuffix(s.Folder, "/")+"/") || s.Folder == ""
	})
	if len(all) == 0 {
		return out.Blame, api.Problemf(api.CodeNotFound, "no session was in the folder of %q, so no action wrote it", api.Escape(name))
	}
	today, err := read(all[0].Folder, name[len(strings.TrimSuffix(all[0].Folder, "/"))+1:])
	if err != nil {
		return out.Blame, err
	}
	t := textOf(today)
	var authors []api.Author // the first is 1 in t.by
	for _, s := range all[:min(len(all), maxSessions)] {
		if err := b.applied(ctx, s, name[len(strings.TrimSuffix(s.Folder, "/"))+1:], t, &authors); err != nil {
			return out.Blame, fmt.Errorf("cannot tell what session %s applied: %w", s.ID, err)
		}
	}
	return out.of(t, func(n int32) api.Author { return authors[n-1] }), nil
}

// applied gives those lines of today's file that nobody has yet to the actions of a
// session that wrote them.
func (b *Blamer) applied(ctx context.Context, s api.Session, path string, today *text, authors *[]api.Author) error {
	var failed error
	var w *walk
	known := make(map[int32]int32)
	err := b.Applied(ctx, s.ID, path, func(checkpoint int64, as project.State) {
		if failed != nil || today.note != "" {
			return
		}
		if w == nil {
			if w, failed = b.walk(ctx, s.ID); failed != nil {
				return
			}
		}
		then, err := w.at(ctx, checkpoint, path)
		if err != nil || then == nil {
			failed = err
			return
		}
		wrote, err := w.read(ctx, as.Hash, as.Size)
		if err != nil {
			failed = err
			return
		}
		wrote.inherit(then)
		for i, n := range wrote.by {
			if n <= projects {
				wrote.by[i] = nobodys // of this session: an earlier one may have written it
				continue
			}
			if known[n] == 0 {
				*authors = append(*authors, w.author(n))
				known[n] = int32(len(*authors))
			}
			wrote.by[i] = known[n]
		}
		today.inherit(wrote)
	})
	return errors.Join(failed, err)
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
	if info, err := root.Lstat(name); err != nil || !info.Mode().IsRegular() {
		return nil, bad(errors.Join(err, errors.New("it is no regular file of the project")))
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
type answer struct{ api.Blame }

func newBlame(path string) answer {
	return answer{api.Blame{Path: api.Escape(path), Lines: []api.BlameLine{}, By: []api.Author{{}}}}
}

// of fills a Blame in. Author names who is behind a number of a text.
func (a answer) of(t *text, author func(int32) api.Author) api.Blame {
	if a.Note = t.note; a.Note != "" {
		return a.Blame
	}
	at := map[int32]int{projects: 0}
	for i, line := range t.give(projects).lines {
		n := t.by[i]
		if _, ok := at[n]; !ok {
			at[n] = len(a.By)
			a.By = append(a.By, author(n))
		}
		a.Lines = append(a.Lines, api.BlameLine{Text: api.EscapeLine(line), NoEnd: !strings.HasSuffix(line, "\n"), By: at[n]})
	}
	return a.Blame
}

// Whose a line is, where no action wrote it.
const (
	projects int32 = 0  // the project's
	nobodys  int32 = -1 // not known yet
)

// text is a file's lines and who wrote each.
type text struct {
	whole string
	lines []string
	by    []int32
	note  string // why it has no lines
}

func textOf(b []byte) *text {
	t := &text{}
	switch {
	case len(b) > maxBytes:
		t.note = fmt.Sprintf("too large: it has more than %d bytes", maxBytes)
	case merge.Binary(b):
		t.note = "binary"
	default:
		t.whole = string(b)
		t.lines = slices.Collect(strings.Lines(t.whole))
		t.by = slices.Repeat([]int32{nobodys}, len(t.lines))
	}
	if len(t.lines) > maxLines {
		*t = text{note: fmt.Sprintf("too long: it has more than %d lines", maxLines)}
	}
	return t
}

// give has lines that are nobody's yet be somebody's.
func (t *text) give(to int32) *text {
	for i := range t.by {
		if t.by[i] == nobodys {
			t.by[i] = to
		}
	}
	return t
}

// inherit has lines that are nobody's yet, and that are as in an earlier text, be
// whose they were there.
func (t *text) inherit(from *text) {
	if from == nil || from.note != "" || t.note != "" {
		return
	}
	i, j, at := 0, 0, 0 // lines of from and of t, and the byte of from
	same := func(until int) {
		for ; at < until; i, j = i+1, j+1 {
			if at += len(from.lines[i]); t.by[j] == nobodys {
				t.by[j] = from.by[i]
			}
		}
	}
	for _, e := range merge.Edits(from.whole, t.whole) {
		same(e.Start)
		for ; at < e.End; i++ {
			at += len(from.lines[i])
		}
		j += strings.Count(e.New, "\n")
		if e.New != "" && !strings.HasSuffix(e.New, "\n") {
			j++
		}
	}
	same(len(from.whole))
}

// walk begins to follow the files of a session.
func (b *Blamer) walk(ctx context.Context, id string) (*walk, error) {
	past, err := ledger.Recall(ctx, b.History.Store, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, api.Problemf(api.CodeNotFound, "there is no session %q", api.Escape(api.Trim(id, 80)))
	}
	if err != nil {
		return nil, err
	}
	return newWalk(b.History.Store, past), nil
}
