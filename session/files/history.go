package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"

	"stepbox/policy/git"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/ledger"
	"stepbox/store"
)

// History reads sessions, their files too: those that this process doesn't own
// from the record alone. It is safe for concurrent use.
type History struct {
	ledger.History

	// Now gives a scope of the session that this process owns, as it is now; nil
	// without one. ErrOver sends who asks to the record.
	Now func(ctx context.Context, in api.Scope) (Scope, error)

	// Person is whose git configuration says which files are ignored, of sessions
	// that this process doesn't own; nil asks nobody. Nothing but how changes are
	// listed depends on it.
	Person *git.Person

	// Applied tells what an apply last wrote to the project folder at a path of a
	// session; nil: nobody knows.
	Applied func(ctx context.Context, id string) (as func(path string, f *diff.File) bool, err error)

	// Returned lists what applies of a session wrote and it has as it first saw it
	// again; nil: nobody knows.
	Returned func(ctx context.Context, s api.Session, f *Files, now *manifest.Manifest, checkpoint int64) ([]string, error)

	// Git says how the git of a session's project, which isn't live, is another than the
	// session's by now, in words; nil: nobody does.
	Git func(ctx context.Context, s *api.Session) string

	// Unfetched says in words what such a session has committed that the person hasn't; nil:
	// nobody does.
	Unfetched func(ctx context.Context, s *api.Session) string

	// Undone says in words what such a session put back of what it had committed, and didn't commit; nil:
	// nobody does.
	Undone func(ctx context.Context, s *api.Session) string

	opening sync.Mutex
	opened  memo[string, *Files] // of the sessions that were looked at last
	counted memo[string, int]    // see unapplied
}

// ErrOver says that a session has ended, so that the record has all of it.
var ErrOver error = &api.Problem{Code: api.CodeNotLive, Message: "the session has ended"}

// NewHistory reads what is in a store. Live says whether a supervisor owns a
// session.
func NewHistory(st *store.Store, live func(id string) bool) *History {
	return &History{History: ledger.History{Store: st, Live: live}}
}

// Scope is the two states of the files that an answer compares.
type Scope struct {
	Files    *Files
	From, To *manifest.Manifest // From nil: the project folder; To nil: nothing has changed
	Version  int64              // of a live session: as of when this is
	Newest   int64              // the checkpoint of all files that was the newest before
	Final    bool
}

// Changes is a page of what differs in a scope.
func (h *History) Changes(ctx context.Context, id string, in api.Scope, p api.Page) (api.Changes, error) {
	out := api.Changes{Files: []api.Change{}}
	s, err := h.Scope(ctx, id, in)
	now := in.To == "" || in.To == "end"        // else what became of the files since isn't told
	var as func(path string, f *diff.File) bool // nil: nobody knows
	if err == nil && s.To != nil && now {
		as, err = h.applied(ctx, id)
	}
	if err == nil && s.To != nil {
		out, err = s.Files.Page(ctx, s.From, s.To, p, func(changes []diff.Change, listed []api.Change) {
			if in.Action == 0 && now {
				h.onHost(ctx, id, s, as, changes, listed)
			}
			if s.From == nil {
				h.Inherited(ctx, id, s.Files, s.To, changes, listed)
			}
			for i := 0; as != nil && i < len(listed); i++ {
				listed[i].Applied = as(changes[i].Path, changes[i].New)
			}
		})
	}
	if err == nil && s.To != nil && in == (api.Scope{}) && out.Next == "" && h.Returned != nil {
		out.Returned = h.returned(ctx, id, s)
	}
	out.Version, out.Final, out.Scope, out.Checkpoint = s.Version, s.Final, "session", s.Newest
	switch {
	case in.Action != 0:
		out.Scope = "action " + strconv.Itoa(in.Action)
	case in.Since != 0:
		out.Scope = "since " + strconv.FormatInt(in.Since, 10)
	case in.From != "" || in.To != "":
		out.Scope = string(cmp.Or(in.From, "start") + ".." + cmp.Or(in.To, "end"))
	}
	return out, err
}

// applied is what Applied tells, nil if nobody knows.
func (h *History) applied(ctx context.Context, id string) (as func(path string, f *diff.File) bool, err error) {
	if h.Applied == nil {
		return nil, nil
	}
	return h.Applied(ctx, id)
}

// Inherited marks what a fork began with and is as it was then: what it was forked from
// did it. Listed are the changes from the project to a state.
func (h *History) Inherited(ctx context.Context, id string, f *Files, to *manifest.Manifest, changes []diff.Change, listed []api.Change) {
	mark := h.inherited(ctx, id, f, to)
	for i := range listed {
		mark(changes[i], &listed[i])
	}
}

// inherited is what marks one of them.
func (h *History) inherited(ctx context.Context, id string, f *Files, to *manifest.Manifest) func(diff.Change, *api.Change) {
	var first *manifest.Manifest
	doc, err := ledger.Session(ctx, h.Store, id)
	if err == nil && doc.Parent != nil {
		first, _, err = h.stateAt(ctx, f, id, "start")
	}
	if err != nil || first == nil {
		return func(diff.Change, *api.Change) {} // the change is shown all the same
	}
	base := manifest.LaterBase(first, to)
	return func(c diff.Change, to *api.Change) {
		was, is := first.Has(base, c.Path), c.New
		if to.Inherited = is == nil && was == nil || is != nil && is.Same(was); to.Inherited {
			to.Words = strings.TrimPrefix(to.Words+", inherited", ", ")
		}
	}
}

// returned is what Returned lists. A folder that isn't there says nothing.
func (h *History) returned(ctx context.Context, id string, s Scope) (out []string) {
	doc, err := ledger.Session(ctx, h.Store, id)
	if err != nil {
		return nil
	}
	paths, _ := h.Returned(ctx, doc, s.Files, s.To, s.Newest)
	for _, path := range paths[:min(len(paths), maxReturned)] {
		out = append(out, api.Escape(path))
	}
	return out
}

// maxReturned is how many of these are told.
const maxReturned = 100

// onHost adds what the project folder has by now; wrote says whether an apply did that.
func (h *History) onHost(ctx context.Context, id string, s Scope, wrote func(path string, f *diff.File) bool, changes []diff.Change, listed []api.Change) {
	doc, err := ledger.Session(ctx, h.Store, id)
	if err != nil {
		return // nothing is known of the folder
	}
	s.Files.onHost(ctx, doc.Folder, s.To, wrote, changes, listed)
	if !s.Final {
		s.Files.hosts.follow(doc.Folder, changes, func() { s.Files.Bump() })
	}
}

// Diff is one changed file's difference in the scope that Changes has.
func (h *History) Diff(ctx context.Context, id, key string, in api.Scope) (api.FileDiff, error) {
	s, err := h.Scope(ctx, id, in)
	switch {
	case err != nil:
		return api.FileDiff{}, err
	case s.To == nil:
		return api.FileDiff{}, api.Problemf(api.CodeNotFound, "nothing has changed")
	}
	return s.Files.Diff(ctx, key, s.From, s.To)
}

// Diffs yields the differences of all changed files in that scope, by path.
func (h *History) Diffs(ctx context.Context, id string, in api.Scope) iter.Seq2[api.FileDiff, error] {
	return func(yield func(api.FileDiff, error) bool) {
		s, err := h.Scope(ctx, id, in)
		switch {
		case err != nil:
			yield(api.FileDiff{}, err)
		case s.To != nil:
			mark := func(diff.Change, *api.Change) {}
			if s.From == nil {
				mark = h.inherited(ctx, id, s.Files, s.To)
			}
			s.Files.diffs(ctx, s.From, s.To, mark)(yield)
		}
	}
}

// Scope finds the two states that are asked for.
func (h *History) Scope(ctx context.Context, id string, in api.Scope) (Scope, error) {
	moments := in.From != "" || in.To != ""
	if h.Now != nil && !moments {
		if s, err := h.Now(ctx, in); !errors.Is(err, ErrOver) {
			return s, err
		}
	}
	s, err := h.recorded(ctx, id)
	if err != nil {
		return s, err
	}
	s.Final = true
	if moments {
		if in.From != "" { // else the project, as without moments
			s.From, _, err = h.stateAt(ctx, s.Files, id, in.From)
		}
		if err == nil {
			s.To, s.Newest, err = h.stateAt(ctx, s.Files, id, in.To)
		}
		if err == nil && s.To == nil { // the project folder, as it was first seen
			s.From, s.To = nil, s.From
			if s.To != nil {
				err = api.Problemf(api.CodeUsage, "%s is before %s: name the earlier moment first", in.To, in.From)
			}
		}
		return s, err
	}
	if in.Action != 0 {
		a, err := ledger.Doc[api.Action](ctx, h.Store, id, store.KindAction, int64(in.Action))
		if err != nil {
			return s, api.Problemf(api.CodeNotFound, "there is no #%d", in.Action)
		}
		s.From, s.To, err = s.Files.OfAction(ctx, a, nil)
		return s, err
	}
	s.To, s.Newest, err = h.newest(ctx, s.Files, id)
	if err == nil && s.To != nil && in.Since != 0 {
		s.From, err = s.Files.Since(ctx, in.Since)
	}
	return s, err
}

// stateAt is the state of all files at a moment; nil is the project folder as the
// session first saw it.
func (h *History) stateAt(ctx context.Context, f *Files, id string, m api.Moment) (*manifest.Manifest, int64, error) {
	at, err := h.At(ctx, id, m)
	if err != nil || at.Checkpoint == 0 {
		return nil, 0, err
	}
	state, err := f.At(ctx, at.Checkpoint)
	return state, at.Checkpoint, err
}

// maxOpened is of how many sessions a History holds files in memory.
const maxOpened = 4

// FirstChange is the moment at which a path first wasn't any more what the session
// first saw there.
func (h *History) FirstChange(ctx context.Context, id, path string) (api.At, error) {
	past, err := ledger.Recall(ctx, h.Store, id)
	if err != nil {
		return api.At{}, err
	}
	c := NewCourse(past)
	was, err := c.Path(ctx, Recorded(h.Store, id), path)
	if err != nil {
		return api.At{}, err
	}
	i := slices.IndexFunc(was[1:], func(e *manifest.Entry) bool { return !e.Same(was[0]) })
	if i < 0 {
		return api.At{}, api.Problemf(api.CodeNotFound, "%q never changed in this session", api.Escape(path))
	}
	m, err := h.Taken(ctx, id, c.All[i].ID)
	if err != nil {
		return api.At{}, err
	}
	return h.At(ctx, id, m)
}

// Taken is the moment at which a checkpoint was taken.
func (h *History) Taken(ctx context.Context, id string, checkpoint int64) (api.Moment, error) {
	told, err := h.Store.Told(ctx, id, store.KindCheckpoint, checkpoint)
	if err != nil || len(told) == 0 {
		return "", errors.Join(err, fmt.Errorf("cannot find checkpoint %d: stepbox verify %s says what the record lost", checkpoint, id))
	}
	return api.MomentOf(told[0].Seq), nil
}

// filesOf is what the record has of a session's files. A checkpoint never
// changes, so what was read of one serves until others push it out.
func (h *History) filesOf(id string) *Files {
	h.opening.Lock()
	defer h.opening.Unlock()
	f, known := h.opened.get(id)
	if !known {
		f = Recorded(h.Store, id)
	}
	h.opened.put(id, f, maxOpened)
	return f
}
