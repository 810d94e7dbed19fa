package blame

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"stepbox/runner/overlay/lower"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/files"
	"stepbox/store"
)

// rig is a session whose files a test writes, and whose record it makes, or a fork of
// it, or a fork of that.
type rig struct {
	t     *rapid.T
	st    *store.Store
	files *files.Files
	dir   string

	id      string
	upper   string
	path    string   // the file
	lines   []string // of it; each is said once only, by whom it tells
	last    int64    // checkpoint
	actions []api.Action
	rolled  []api.Rollback
	states  map[int64]state
	count   int
	done    []moment
}

// moment is a state of some session.
type moment struct {
	id string
	state
}

type state struct {
	path  string
	lines []string
	seq   uint64
}

func (r *rig) check(err error) {
	must.OK(r.t, err)
}

func (r *rig) append(kind store.Kind, event string, key int64, v any) uint64 {
	doc, err := json.Marshal(v)
	r.check(err)
	es, err := r.st.Append(context.Background(), r.id, store.Fact{Kind: kind, Event: event, Key: key, Doc: doc})
	r.check(err)
	return es[len(es)-1].Seq
}

// write makes the session's file be what it is by now, and a checkpoint of it.
func (r *rig) write(from int64) {
	for _, name := range []string{"a", "b", "c"} {
		at := filepath.Join(r.upper, name)
		if err := os.Remove(at); err != nil && !errors.Is(err, os.ErrNotExist) {
			r.t.Fatal(err)
		}
		switch name {
		case r.path:
			r.check(os.WriteFile(at, []byte(strings.Join(r.lines, "")), 0o644))
		case "a": // the project has it
			r.check(unix.Mknod(at, unix.S_IFCHR, 0))
		}
	}
	cp, err := r.files.Look(context.Background())
	r.check(err)
	r.last++
	seq := r.append(store.KindCheckpoint, "checkpoint", r.last, api.Checkpoint{ID: r.last, At: time.Now(), From: from, Root: cp.Root.String()})
	r.states[r.last] = state{r.path, slices.Clone(r.lines), seq}
	r.done = append(r.done, moment{r.id, r.states[r.last]})
}

// begin begins a session, or a fork of the one there is.
func (r *rig) begin(parent *api.Parent) {
	if r.files != nil {
		r.files.Close()
	}
	r.id = fmt.Sprintf("session%d", len(r.done))
	r.last, r.actions, r.rolled, r.states = 0, nil, nil, make(map[int64]state)
	folder := filepath.Join(r.dir, "project")
	doc, err := json.Marshal(api.Session{ID: r.id, Name: r.id, State: api.SessionEnded, Folder: folder, Parent: parent})
	r.check(err)
	_, err = r.st.CreateSession(context.Background(), r.id, doc)
	r.check(err)
	r.files, err = files.Open(r.st, r.id, folder, lower.Options{}, nil)
	r.check(err)
	r.upper = filepath.Join(r.dir, "upper of "+r.id)
	r.check(os.MkdirAll(r.upper, 0o755))
	r.check(r.files.Attach(r.upper, nil, func(string, bool) bool { return false }, time.Now()))
}

func (r *rig) line(by int) string {
	r.count++
	if by != 0 {
		return fmt.Sprintf("by %s %d: the line with number %d, long enough to be known again\n", r.id, by, r.count)
	}
	return fmt.Sprintf("by %d: the line with number %d, long enough to be known again\n", by, r.count)
}

// edit changes some lines in so many places, as somebody: an action's number, or 0 for
// the person.
func (r *rig) edit(by, most int) {
	for range rapid.IntRange(1, most).Draw(r.t, "edits") {
		at := rapid.IntRange(0, len(r.lines)).Draw(r.t, "at")
		gone := min(rapid.IntRange(0, 2).Draw(r.t, "gone"), len(r.lines)-at, max(len(r.lines)-8, 0))
		var fresh []string
		for range rapid.IntRange(0, 2).Draw(r.t, "new") {
			fresh = append(fresh, r.line(by))
		}
		r.lines = slices.Replace(r.lines, at, at+gone, fresh...)
	}
}

func (r *rig) act(kind string) {
	before := r.last
	switch {
	case kind == "fork":
		r.fork()
		return
	case kind == "person":
		r.edit(0, 3)
		r.write(before)
		return
	case kind == "back" && len(r.actions) > 0:
		a := r.actions[rapid.IntRange(0, len(r.actions)-1).Draw(r.t, "to before")]
		s := r.states[a.Before]
		r.path, r.lines = s.path, slices.Clone(s.lines)
		r.write(a.Before)
		r.rolledBack(api.Rollback{RollbackTarget: api.Before(a.N), Checkpoint: a.Before, Before: before, After: r.last})
		return
	case kind == "take" && len(r.actions) > 0 && r.actions[len(r.actions)-1].After == before:
		a := r.actions[len(r.actions)-1]
		s := r.states[a.Before]
		r.path, r.lines = s.path, slices.Clone(s.lines)
		r.write(before)
		r.rolledBack(api.Rollback{RollbackTarget: api.RollbackTarget{Selection: &api.Selection{Actions: []int{a.N}}}, Actions: []int{a.N}, Before: before, After: r.last})
		return
	case kind == "redo" && len(r.rolled) > 0 && r.rolled[len(r.rolled)-1].After == before:
		was := r.rolled[len(r.rolled)-1]
		s := r.states[was.Before]
		r.path, r.lines = s.path, slices.Clone(s.lines)
		r.write(before)
		r.rolledBack(api.Rollback{RollbackTarget: api.RollbackTarget{Redo: was.ID}, Before: before, After: r.last})
		return
	}
	n, most := len(r.actions)+1, 3
	if kind == "rename" { // with less than half of it left it were another file
		r.path, most = map[string]string{"a": "b", "b": "c", "c": "a"}[r.path], 1
	}
	r.edit(n, most)
	r.write(before)
	a := api.Action{N: n, State: api.ActionEnded, StartedAt: time.Now(), EndedAt: time.Now(), Before: before, After: r.last, Spans: []api.Span{{From: before, To: r.last}}}
	r.actions = append(r.actions, a)
	r.append(store.KindAction, "action.ended", int64(n), a)
}

func (r *rig) rolledBack(b api.Rollback) {
	b.ID, b.At = int64(len(r.rolled)+1), time.Now()
	r.rolled = append(r.rolled, b)
	r.append(store.KindRollback, "rollback.done", b.ID, b)
}

// fork begins a fork of the session, as it was at some checkpoint.
func (r *rig) fork() {
	at := int64(rapid.IntRange(1, int(r.last)).Draw(r.t, "fork at"))
	s := r.states[at]
	r.begin(&api.Parent{ID: r.id, Name: r.id, Checkpoint: at})
	r.path, r.lines = s.path, slices.Clone(s.lines)
	r.write(0)
}

// Every line is told to be whose it is, at every moment, whatever was edited, renamed,
// rolled back, taken back, had come again or was forked in between.
func TestBlameProperty(t *testing.T) {
	dir := t.TempDir()
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		r := begun(t, filepath.Join(dir, fmt.Sprint(runs)))
		defer r.st.Close()
		defer r.files.Close()
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			r.act(rapid.SampledFrom([]string{"edit", "edit", "edit", "rename", "person", "back", "take", "redo", "fork"}).Draw(t, "step"))
		}
		h := files.NewHistory(r.st, func(string) bool { return false })
		r.firstChanges(h)
		for _, m := range r.done {
			b := &Blamer{History: h, Open: func(context.Context, string, string, api.Moment) (io.ReadCloser, error) {
				return io.NopCloser(strings.NewReader(strings.Join(m.lines, ""))), nil
			}}
			got, err := b.At(context.Background(), m.id, m.path, api.MomentOf(m.seq))
			r.check(err)
			if len(got.Lines) != len(m.lines) {
				t.Fatalf("%s had %d lines, not %d (%s)", m.id, len(got.Lines), len(m.lines), got.Note)
			}
			for i, l := range got.Lines {
				by := "by 0:"
				if a := got.By[l.By]; a.Action != 0 {
					by = fmt.Sprintf("by %s %d:", a.Session, a.Action)
				}
				if l.Text+"\n" != m.lines[i] || !strings.HasPrefix(l.Text, by) {
					t.Fatalf("%s, %s at event %d: line %d is told to be %s %s", m.id, m.path, m.seq, i+1, by, m.lines[i])
				}
			}
		}
	})
}

// firstChanges asks when the project's file first was another, in each session.
func (r *rig) firstChanges(h *files.History) {
	want := make(map[string]uint64)
	for _, m := range r.done {
		if _, known := want[m.id]; !known || want[m.id] == 0 {
			if want[m.id] = 0; m.path != "a" || !slices.Equal(m.lines, r.done[0].lines) {
				want[m.id] = m.seq
			}
		}
	}
	for id, seq := range want {
		at, err := h.FirstChange(context.Background(), id, "a")
		if p := (*api.Problem)(nil); seq == 0 && errors.As(err, &p) && p.Code == api.CodeNotFound {
			continue
		}
		if r.check(err); at.Seq != seq {
			r.t.Fatalf("%s changed the file at event %d, and it is said to be %d", id, seq, at.Seq)
		}
	}
}

// begun is a session over a project with a file of ten lines, that nothing was done in.
func begun(t *rapid.T, dir string) *rig {
	r := &rig{t: t, dir: dir, path: "a"}
	folder := filepath.Join(dir, "project")
	r.check(os.MkdirAll(folder, 0o755))
	for range 10 {
		r.lines = append(r.lines, r.line(0))
	}
	r.check(os.WriteFile(filepath.Join(folder, "a"), []byte(strings.Join(r.lines, "")), 0o644))
	var err error
	r.st, err = store.Open(context.Background(), filepath.Join(dir, "data"))
	r.check(err)
	r.begin(nil)
	first, err := r.files.Look(context.Background())
	r.check(err)
	r.last = 1
	seq := r.append(store.KindCheckpoint, "checkpoint", 1, api.Checkpoint{ID: 1, At: time.Now(), Root: first.Root.String()})
	r.states[1] = state{"a", slices.Clone(r.lines), seq}
	r.done = append(r.done, moment{r.id, r.states[1]})
	return r
}
