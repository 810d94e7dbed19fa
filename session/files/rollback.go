package files

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zeebo/blake3"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/restore"
	"stepbox/session/api"
	"stepbox/session/project"
)

// A plan is carried out as it was shown, however much was written since: under
// the freeze the files are compared with what was shown. Those that it names may
// have changed, gone or come again, else whoever does that all the time could not
// be rolled back: what they are now is in a checkpoint before it is written over.
// Everything else that changed since stays; if it is in the way of what goes back,
// the plan is stale.

// ErrStale says that the files have changed since a plan was made, where it matters.
var ErrStale = api.Problemf(api.CodeStale, "the files have changed since the plan was made; look at it again (while the session is paused they stay as they are)")

// Past is what a roll back needs to know of an action.
type Past struct {
	N         int
	State     api.ActionState
	Apart     bool // housekeeping, or an agent of its own: no plan ends it or takes it back
	Lingers   bool // it left something running
	TakenBack bool // by an earlier roll back
	Files     int  // that it changed

	Was           bool  // something of it was in the state that a Redo's roll back found
	Before, After int64 // checkpoints
	Spans         []Span
}

// ends says whether a roll back to before the action ends it.
func (p *Past) ends() bool { return p.State == api.ActionRunning || p.Lingers }

// Standing is how the session stands when a roll back is planned.
type Standing struct {
	ToBefore   int     // the action to go back to before
	Checkpoint int64   // the one that this is
	Newest     int64   // checkpoint
	Rollbacks  int64   // begun so far
	Actions    []Past  // from ToBefore on, or all
	Turned     []int64 // checkpoints since ToBefore, or all: see Line.Turns

	// Of other targets than ToBefore: the selection, or the roll back that comes
	// again, and how conflicts are resolved.
	Selection *api.Selection
	Redo      *api.Rollback
	Resolve   []api.Resolution
}

// Target is what the roll back was asked for as.
func (s *Standing) Target() api.RollbackTarget {
	out := api.RollbackTarget{ToBefore: s.ToBefore, Selection: s.Selection}
	if s.Redo != nil {
		out.Redo = s.Redo.ID
	}
	return out
}

// PutsIn is api.Rollback's: to redo one that puts in takes out, and the other way round.
func (s *Standing) PutsIn() bool { return s.Redo != nil && !s.Redo.PutsIn() }

// Plan is a roll back as it is shown to a person, with what carries it out. It
// isn't changed once made.
type Plan struct {
	Standing
	Shown api.RollbackPlan

	target  *manifest.Manifest
	source  *manifest.Manifest // what there was when it was made
	changed []diff.Change      // from source to target
	whole   []int              // of a selection: the actions of which nothing is left, or something is there again
	stays   []string           // what can't be had, sorted
	merged  map[string]bool    // of a selection: paths that keep what others changed in them
	kept    []string           // where others changed what would go back
}

// Files is how many files a plan writes.
func (p *Plan) Files() int { return len(p.changed) }

// Changed is what a plan writes.
func (p *Plan) Changed() []diff.Change { return p.changed }

// Plan compares the files as they are with what they are to go back to.
func (r *Restorer) Plan(ctx context.Context, now Standing) (*Plan, error) {
	if now.ToBefore == 0 {
		source, err := r.scanToShow(ctx)
		if err != nil {
			return nil, err
		}
		return r.planSome(ctx, now, source)
	}
	return r.planBefore(ctx, now)
}

// planBefore plans going back to the checkpoint before an action.
func (r *Restorer) planBefore(ctx context.Context, now Standing) (*Plan, error) {
	p := &Plan{Standing: now, Shown: api.RollbackPlan{RollbackTarget: api.Before(now.ToBefore), Actions: []int{}, Files: []api.Change{}}}
	for i := range now.Actions {
		switch a := &now.Actions[i]; {
		case a.Apart || a.TakenBack:
		case a.ends():
			p.Shown.Ends = append(p.Shown.Ends, a.N)
			p.Shown.Actions = append(p.Shown.Actions, a.N)
		case a.State == api.ActionEnded && a.Files > 0:
			p.Shown.Actions = append(p.Shown.Actions, a.N)
		}
	}
	var err error
	if p.target, err = r.Files.At(ctx, now.Checkpoint); err != nil {
		return nil, err
	}
	if p.source, err = r.scanToShow(ctx); err != nil {
		return nil, err
	}
	if p.target, err = r.Files.pinned(ctx, p.target, p); err != nil {
		return nil, err
	}
	if p.changed, err = r.Files.Between(ctx, p.source, p.target); err != nil {
		return nil, err
	}
	var problems []manifest.Problem
	var stay []manifest.Piece
	git := ofGit{r.Git, len(p.Turned) > 0}
	for i := range p.changed {
		if c := &p.changed[i]; git.stays(c) {
			for _, path := range c.Paths() {
				stay = append(stay, manifest.Piece{Path: path, From: p.source})
			}
			if git.past && problems == nil {
				problems = []manifest.Problem{{Path: ".git", Text: gitGoesOn}}
			}
		}
	}
	others, err := r.Files.others(ctx, p, git)
	if err != nil {
		return nil, err
	}
	for _, o := range others {
		p.kept = append(p.kept, o.Path)
		problems = append(problems, manifest.Problem{Path: o.Path, Text: "others have changed it in the project since it was applied: it goes back to theirs and no further (roll back single actions to keep both)"})
	}
	stay = append(stay, others...)
	if len(stay) > 0 {
		p.target = manifest.Transplant(p.target, stay)
		if p.changed, err = r.Files.Between(ctx, p.source, p.target); err != nil {
			return nil, err
		}
	}
	return p, r.describe(ctx, p, problems)
}

// others are the files that go back no further than to what the project had when the session
// was resumed: it let go of what it had there, which had been applied, and others had put
// work of theirs into that. What git keeps has a rule of its own.
func (f *Files) others(ctx context.Context, p *Plan, git ofGit) (stay []manifest.Piece, err error) {
	after, found := p.source, map[string]bool{}
	for i, id := range slices.Backward(p.Turned) {
		before, err := f.At(ctx, id)
		if err != nil {
			return nil, err
		}
		had := &manifest.Manifest{Root: &manifest.Node{Entry: after.Root.Entry, Sub: manifest.NewDir(nil, nil)}, Base: after.Base}
		if i+1 < len(p.Turned) { // else that is what shows through
			had = manifest.Pin(had, after)
		}
		look := func(path string) {
			if kept, _ := git.keeps(path); !kept && !found[path] && movedOn(before, after, path) {
				found[path] = true
				stay = append(stay, manifest.Piece{Path: path, From: had})
			}
		}
		for path := range before.All() {
			look(path)
		}
		for path := range byPath(p.changed) {
			look(path) // in a folder of the session's own
		}
		after = before
	}
	return stay, nil
}

// movedOn says whether, between the last state before a resume and one after it, the project
// got something at a path that neither the session had there, nor what lay below it.
func movedOn(before, after *manifest.Manifest, path string) bool {
	under := func(m *manifest.Manifest) *manifest.Entry { return (*manifest.Manifest)(nil).Has(m.Base, path) }
	had, lay, has := project.Of(before.Has(nil, path)), project.Of(under(before)), project.Of(under(after))
	return before.Knows(nil, path) && !has.Same(lay) && !has.Same(had)
}

// pinned is an earlier state of the files that says itself what it is wherever something
// else has come to show through since.
func (f *Files) pinned(ctx context.Context, m *manifest.Manifest, p *Plan) (*manifest.Manifest, error) {
	for _, id := range p.Turned {
		before, err := f.At(ctx, id)
		if err != nil {
			return nil, err
		}
		m = manifest.Pin(m, before)
	}
	return m, nil
}

// describe says what a plan does, and what it can't.
func (r *Restorer) describe(ctx context.Context, p *Plan, problems []manifest.Problem) error {
	steps, err := restore.NewPlan(ctx, r.Files.lower, p.source, p.target, restore.Options{Only: p.lists()})
	if err != nil {
		return fmt.Errorf("cannot plan the rollback: %w", err)
	}
	problems = append(problems, steps.Problems...)
	p.unlist(steps)
	p.Shown.Files = r.Files.List(p.changed)
	p.Shown.More = len(p.changed) - len(p.Shown.Files)
	for _, c := range byPath(p.changed) {
		if c.then == nil {
			p.Shown.Removes++
		} else {
			p.Shown.Restores++
		}
	}
	remain := slices.Concat(steps.Lost, p.kept)
	if p.whole, err = r.Files.gone(ctx, p.whole, p.Actions, remain); err != nil {
		return err
	}
	if p.Shown.Actions, err = r.Files.gone(ctx, p.Shown.Actions, p.Actions, remain); err != nil {
		return err
	}
	r.sayHost(ctx, p)
	if len(p.Shown.Actions) > 0 {
		n := slices.Min(p.Shown.Actions)
		i := slices.IndexFunc(p.Actions, func(a Past) bool { return a.N == n })
		if i >= 0 && r.committed(ctx, p.Actions[i].Before) {
			problems = append(problems, manifest.Problem{Path: ".git", Text: "what git wrote since then to the repository, which lies outside of the project, stays there: no checkpoint has it"})
		}
	}
	p.Shown.Problems = Troubles(problems)
	p.Shown.Hash = p.digest()
	return nil
}

// scanToShow takes the state of the files for a plan. What is written while it
// looks may be missed altogether (a folder that becomes a file and a folder again):
// then the agent is frozen for a second look, if it can be.
func (r *Restorer) scanToShow(ctx context.Context) (*manifest.Manifest, error) {
	m, err := r.Files.Scan(ctx)
	if err != nil {
		return nil, err
	}
	if moved, err := r.Files.Moved(ctx); err != nil || !moved {
		return m, err
	}
	thaw, err := r.Freezer.Freeze(ctx)
	if err != nil {
		return r.Files.Scan(ctx)
	}
	m, err = r.Files.ScanStill(ctx, r.Box.OpenFiles().Shared, nil, false)
	return m, errors.Join(err, thaw())
}

// digest names the plan: which files are put back to what, and which actions end.
func (p *Plan) digest() string {
	h := blake3.New()
	resolved := make(map[string]bool)
	for _, r := range p.Resolve {
		if path, err := api.PathOf(r.Key); err == nil {
			resolved[path] = true
		}
	}
	_, _ = fmt.Fprintf(h, "%d %d %v", p.ToBefore, p.Checkpoint, p.Shown.Ends) // a hash never fails
	for _, c := range p.changed {
		_, _ = fmt.Fprintf(h, " %q %s %s %q", c.Path, c.Status, c.Kind(), c.From)
		if resolved[c.Path] && c.Old != nil { // a word on what was seen, not on what comes
			_, _ = fmt.Fprintf(h, " over %s %o %q", c.Old.Hash, c.Old.Mode, c.Old.Target)
		}
		if p.merged[c.Path] && !resolved[c.Path] {
			_, _ = fmt.Fprintf(h, " merged %o", c.New.Mode) // the lines of others stay, whatever they are
		} else if c.New != nil && p.ToBefore == 0 { // of a selection not known by where it comes from
			_, _ = fmt.Fprintf(h, " %s %o %q", c.New.Hash, c.New.Mode, c.New.Target)
		}
	}
	if p.ToBefore == 0 {
		conflicts := make([]string, len(p.Shown.Conflicts)) // nothing of them is written, so what stands there may move on
		for i, c := range p.Shown.Conflicts {
			conflicts[i] = c.Key
		}
		asked, _ := json.Marshal([]any{p.Target(), p.Resolve, conflicts, p.Shown.Lives}) // plain data
		_, _ = h.Write(asked)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Troubles are problems as they are told, the first of them.
func Troubles(ps []manifest.Problem) []api.Trouble {
	var out []api.Trouble
	for _, p := range ps[:min(len(ps), maxListed)] {
		out = append(out, api.Trouble{Path: api.Escape(p.Path), Why: api.Escape(api.Trim(p.Text, maxReason))})
	}
	return out
}

// maxReason bounds what is said of one file, in bytes.
const maxReason = 500

// shownPath is what a plan says about one path.
type shownPath struct {
	now  *diff.File // what there is; nil for nothing
	then *diff.File // what goes back; nil for nothing
}

// byPath lists what differs by path; a rename is two.
func byPath(changed []diff.Change) map[string]shownPath {
	m := make(map[string]shownPath, len(changed))
	for _, c := range changed {
		if c.Status != diff.Renamed {
			m[c.Path] = shownPath{c.Old, c.New}
			continue
		}
		m[c.From] = shownPath{c.Old, nil}
		m[c.Path] = shownPath{nil, c.New}
	}
	return m
}

// pathsOf are all the paths of some changes.
func pathsOf(changed []diff.Change) (paths []string) {
	for i := range changed {
		paths = append(paths, changed[i].Paths()...)
	}
	return paths
}

// leading has paths and the folders that lead to them, "" too.
func leading(paths []string) map[string]bool {
	set := map[string]bool{"": true}
	for _, path := range paths {
		for ; !set[path]; path = parent(path) {
			set[path] = true
		}
	}
	return set
}

func isFolder(f *diff.File) bool { return f.Kind == manifest.KindDir }

func parent(path string) string { return path[:max(strings.LastIndexByte(path, '/'), 0)] }

// meanwhile lists what changed since the plan was shown and stays, sorted. It is
// an error that what was shown has become something else.
func (p *Plan) meanwhile(ctx context.Context, f *Files, cur *manifest.Manifest) ([]string, error) {
	if cur == p.source {
		return nil, nil
	}
	shown := byPath(p.changed)
	differs, err := f.Between(ctx, cur, p.target)
	if err != nil {
		return nil, err
	}
	for path, now := range byPath(differs) {
		if was, ok := shown[path]; ok && (was.then == nil) != (now.then == nil) { // the person changed the project's file
			return nil, ErrStale
		}
	}
	since, err := f.Between(ctx, p.source, cur)
	if err != nil {
		return nil, err
	}
	holds, left := leading(pathsOf(p.changed)), byPath(since)
	maps.DeleteFunc(left, func(path string, _ shownPath) bool { _, ok := shown[path]; return ok })
	for path, l := range left {
		// What stays and what goes back must have room beside each other.
		if holds[path] && l.then != nil && !isFolder(l.then) {
			return nil, ErrStale
		}
		for path != "" {
			path = parent(path)
			if over, ok := shown[path]; ok && over.then != nil && !isFolder(over.then) {
				return nil, ErrStale
			}
		}
	}
	return slices.Sorted(maps.Keys(left)), nil
}

// takenBack says which actions a roll back takes back: those of the plan and
// those that began since and have ended, but for what made changes that stay.
// Holds says whether something that stays changed in a span.
func (p *Plan) takenBack(now []Past, holds func(Span) (bool, error)) ([]int, error) {
	actions := slices.Clone(p.Shown.Actions)
	stays := make(map[Span]bool)
	for i := range now {
		a := &now[i]
		planned := slices.Index(actions, a.N)
		if planned < 0 && (a.TakenBack || a.Apart || a.State != api.ActionEnded || a.Lingers) {
			continue
		}
		late, remains := false, false
		for _, s := range a.Spans {
			if s.To <= p.Newest {
				continue
			}
			late = true
			some, known := stays[s]
			if !known {
				var err error
				if some, err = holds(s); err != nil {
					return nil, err
				}
				stays[s] = some
			}
			remains = remains || some
		}
		switch {
		case late && remains && planned >= 0:
			actions = slices.Delete(actions, planned, planned+1)
		case late && !remains && planned < 0:
			actions = append(actions, a.N)
		}
	}
	slices.Sort(actions)
	return actions, nil
}

// holdsSome says whether one of some paths changed in one of some spans.
func (f *Files) holdsSome(ctx context.Context, in []Span, some []string) (bool, error) {
	if len(some) == 0 {
		return false, nil
	}
	for _, s := range in {
		from, err := f.At(ctx, s.From)
		if err != nil {
			return false, err
		}
		to, err := f.At(ctx, s.To)
		if err != nil {
			return false, err
		}
		changed, err := f.Between(ctx, from, to)
		if err != nil {
			return false, err
		}
		differs := byPath(changed)
		if slices.ContainsFunc(some, func(path string) bool { _, ok := differs[path]; return ok }) {
			return true, nil
		}
	}
	return false, nil
}
