package files

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/ledger"
	"stepbox/store"
)

// Selected is a state of the files that has some of a session's changes and no
// others, on top of the project as the session first saw it.
type Selected struct {
	Scope                         // From is nil, the project; To has the changes
	Checkpoint int64              // the newest state of the session, which they are taken from; 0: there is none, and To is nil
	Now        *manifest.Manifest // that state
	Conflicts  []api.Conflict     // in which chosen changes meet others; To has such files as the project had them, or with the chosen changes so far

	// Over says of a path whether To has what was there before of SelectOver; nil: nothing was.
	Over func(path string) bool

	// Meant says of a path that is no change in Now whether that was chosen all the
	// same: what an apply wrote there may be.
	Meant func(path string) bool
}

// Select makes the state that a selection names, from what is recorded: of a live
// session up to its newest checkpoint. CodeStale says that a file whose hunks are
// chosen isn't what was shown.
func (h *History) Select(ctx context.Context, id string, in api.Selection) (Selected, error) {
	return h.SelectOver(ctx, id, in, nil)
}

// SelectOver makes the state that has what a selection names and, at the paths of that,
// what some actions changed before, which was chosen by somebody else: what they are is
// told for each path, not ok and none where that can't be told. Nil is nothing.
func (h *History) SelectOver(ctx context.Context, id string, in api.Selection, before func(path string) (actions []int, ok bool)) (Selected, error) {
	scope, err := h.recorded(ctx, id)
	out := Selected{Scope: scope}
	if err == nil {
		out.To, out.Checkpoint, err = h.newest(ctx, out.Files, id)
	}
	out.Now, out.Meant = out.To, func(string) bool { return true }
	if err != nil || out.To == nil || in.All() {
		return out, err
	}
	sel := selecting{Files: out.Files, now: out.To, some: len(in.Actions) > 0, before: before, had: make(map[string][]int)}
	if sel.filter, err = chooserOf(in); err != nil {
		return out, err
	}
	if sel.all, err = h.Actions(ctx, id); err != nil {
		return out, err
	}
	if sel.chosen, err = sel.named(in.Actions, in.Without); err == nil {
		sel.without, err = sel.named(in.Without, nil)
	}
	if err != nil {
		return out, err
	}
	switch {
	case sel.some:
		err = sel.actions(ctx)
	default:
		err = sel.rest(ctx)
	}
	if err == nil {
		err = sel.filter.missing()
	}
	out.To, out.Conflicts, out.Meant, out.Over = sel.to, sel.conflicts, sel.meant, sel.over
	return out, err
}

// selecting makes a state of chosen changes.
type selecting struct {
	*Files
	now             *manifest.Manifest
	all             []api.Action
	some            bool         // actions were chosen
	chosen, without []api.Action // in order
	filter          *chooser
	by              map[string][]int // who touched each path; see touched
	before          func(path string) (actions []int, ok bool)
	had             map[string][]int // what that told

	carried
}

// meant is Selected.Meant: of chosen actions one was the last that touched the path,
// and none that is left out did.
func (s *selecting) meant(path string) bool {
	by := s.by[path]
	return len(s.filter.choices) == 0 && s.filter.matches(path) &&
		!slices.ContainsFunc(by, func(n int) bool { return among(s.without, n) }) &&
		(!s.some || len(by) > 0 && among(s.chosen, by[len(by)-1]))
}

// among says whether an action is one of some.
func among(some []api.Action, n int) bool {
	return slices.ContainsFunc(some, func(a api.Action) bool { return a.N == n })
}

// there says whether an action's change of a path is there before.
func (s *selecting) there(path string, n int) bool {
	if s.before == nil {
		return false
	}
	had, known := s.had[path]
	if !known {
		had, _ = s.before(path)
		s.had[path] = had
	}
	return slices.Contains(had, n)
}

func (s *selecting) over(path string) bool {
	if s.before == nil {
		return true
	}
	_, ok := s.before(path)
	return ok && (s.some || len(s.filter.choices[path].Hunks) == 0)
}

// named are the actions of these numbers but for others, in order, each once.
// What was taken back has no changes.
func (s *selecting) named(numbers, but []int) ([]api.Action, error) {
	var out []api.Action
	for _, n := range slices.Compact(slices.Sorted(slices.Values(numbers))) {
		switch {
		case n < 1 || n > len(s.all):
			return nil, api.Problemf(api.CodeNotFound, "there is no #%d", n)
		case s.all[n-1].State == api.ActionRunning:
			return nil, api.Problemf(api.CodeBusy, "#%d still runs: its changes can be chosen when it has ended", n)
		case !slices.Contains(but, n) && s.all[n-1].Review != api.ReviewRolledBack:
			out = append(out, s.all[n-1])
		}
	}
	return out, nil
}

// touched finds out which actions changed each path.
func (s *selecting) touched(ctx context.Context) error {
	s.by = make(map[string][]int)
	for _, a := range s.all {
		if a.Files == 0 && a.State != api.ActionRunning {
			continue
		}
		from, to, err := s.OfAction(ctx, a, s.now)
		if err != nil {
			return err
		}
		changed, err := s.differs(ctx, from, to)
		if err != nil {
			return err
		}
		for path := range byPath(changed) {
			s.by[path] = append(s.by[path], a.N)
		}
	}
	return nil
}

// others says in words which actions changed a path too.
func (s *selecting) others(path string, but []api.Action) string {
	var ns []string
	for _, n := range s.by[path] {
		if !among(but, n) {
			ns = append(ns, "#"+strconv.Itoa(n))
		}
	}
	if len(ns) == 0 {
		return ""
	}
	return strings.Join(ns[:min(len(ns), 10)], ", ") + " changed it too"
}

// actions makes the state that has what the chosen actions changed: as it is now,
// where nobody else did; else their changes one after the other.
func (s *selecting) actions(ctx context.Context) error {
	if err := s.touched(ctx); err != nil {
		return err
	}
	alone := func(path string) bool {
		return len(s.by[path]) > 0 && len(s.filter.choices[path].Hunks) == 0 &&
			!slices.ContainsFunc(s.by[path], func(n int) bool { return !among(s.chosen, n) && !s.there(path, n) })
	}
	meant, steps := make(map[string]bool), make(map[int]step)
	for _, a := range s.chosen {
		from, to, err := s.OfAction(ctx, a, s.now)
		if err != nil {
			return err
		}
		only, hunks, err := s.filter.of(ctx, s.Files, from, to, false)
		if err != nil {
			return err
		}
		changed, err := s.differs(ctx, from, to)
		if err != nil {
			return err
		}
		for path := range byPath(changed) {
			meant[path] = meant[path] || only(path)
		}
		steps[a.N] = step{from, to, func(path string) bool { return only(path) && !alone(path) }, hunks}
	}
	if err := s.beforehand(ctx, steps, func(path string) bool { return meant[path] && !alone(path) }); err != nil {
		return err
	}
	if err := s.carry(ctx, nil, s.now, func(path string) bool { return meant[path] && alone(path) }, nil, nil); err != nil {
		return err
	}
	for _, n := range slices.Sorted(maps.Keys(steps)) {
		st := steps[n]
		if err := s.carry(ctx, st.from, st.to, st.only, st.hunks, s.chosen); err != nil {
			return err
		}
	}
	return nil
}

// step is what an action changed, as far as it is carried over.
type step struct {
	from, to *manifest.Manifest
	only     func(string) bool
	hunks    map[string]*diff.File
}

// beforehand adds the steps of actions that weren't chosen, at the paths where what they
// changed is there before.
func (s *selecting) beforehand(ctx context.Context, steps map[int]step, meant func(path string) bool) error {
	if s.before == nil {
		return nil
	}
	at := make(map[int]map[string]bool) // the paths, by action
	for path, by := range s.by {
		if !meant(path) {
			continue
		}
		for _, n := range by {
			if _, chosen := steps[n]; !chosen && s.there(path, n) {
				if at[n] == nil {
					at[n] = make(map[string]bool)
				}
				at[n][path] = true
			}
		}
	}
	for n, paths := range at {
		from, to, err := s.OfAction(ctx, s.all[n-1], s.now)
		if err != nil {
			return err
		}
		steps[n] = step{from, to, func(path string) bool { return paths[path] }, nil}
	}
	return nil
}

// rest makes the state without what some actions changed, of the files that are
// meant.
func (s *selecting) rest(ctx context.Context) error {
	s.to = s.now
	if len(s.without) > 0 {
		if err := s.touched(ctx); err != nil {
			return err
		}
	}
	for _, a := range slices.Backward(s.without) {
		from, to, err := s.OfAction(ctx, a, s.now)
		if err == nil {
			err = s.carry(ctx, to, from, func(path string) bool { return !s.there(path, a.N) }, nil, s.without)
		}
		if err != nil {
			return err
		}
	}
	if s.filter.all() {
		return nil
	}
	whole := s.to
	only, hunks, err := s.filter.of(ctx, s.Files, nil, whole, false)
	if err != nil {
		return err
	}
	s.to = nil
	return s.carry(ctx, nil, whole, only, hunks, nil)
}

// carry carries a change over to what has been chosen so far. A conflict leaves
// the file as that has it.
func (s *selecting) carry(ctx context.Context, from, to *manifest.Manifest, only func(string) bool, hunks map[string]*diff.File, of []api.Action) error {
	_, err := s.carried.carry(ctx, carrying{
		Files: s.Files, from: from, to: to, only: only, hunks: hunks, why: func(path string) string { return s.others(path, of) },
	})
	for _, p := range s.problems {
		s.conflicts = append(s.conflicts, api.Conflict{Key: key(p.Path), Path: api.Escape(p.Path), Why: api.Escape(api.Trim(p.Text, maxReason))})
	}
	s.problems = nil
	return err
}

// recorded is what the record has of a session's files, sorted by what its project
// folder says of them.
func (h *History) recorded(ctx context.Context, id string) (Scope, error) {
	session, err := ledger.Session(ctx, h.Store, id)
	if err != nil {
		return Scope{}, api.NoSession(id)
	}
	s := Scope{Files: h.filesOf(id), Final: !h.Live(id)}
	if h.Person != nil && session.Folder != "" {
		s.Files.Sort(&folderRules{folder: session.Folder, person: *h.Person})
	}
	return s, nil
}

// newest is the newest recorded state of a session's files and its checkpoint;
// nil when it ended before its first.
func (h *History) newest(ctx context.Context, f *Files, id string) (*manifest.Manifest, int64, error) {
	last, found, err := ledger.Last[api.Checkpoint](ctx, h.Store, id, store.KindCheckpoint)
	if err != nil || !found {
		return nil, 0, err
	}
	for err == nil && last.Action != 0 && last.ID > 1 { // what one action alone changed
		last, err = ledger.Doc[api.Checkpoint](ctx, h.Store, id, store.KindCheckpoint, last.ID-1)
	}
	if err != nil {
		return nil, 0, err
	}
	m, err := f.At(ctx, last.ID)
	return m, last.ID, err
}
