package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/zeebo/blake3"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/merge"
	"stepbox/session/project"
	"stepbox/session/scratch"
)

// plan is an apply as it is shown, with what carries it out. It isn't changed
// once made.
type plan struct {
	api.ApplyPlan
	session api.Session
	sel     files.Selected
	steps   []project.Step
	all     *manifest.Manifest // the session's newest state, when commits are asked for
	state   *manifest.Manifest // that checks run on: the project with the steps made
	checks  []string           // exact
	merged  []string           // keys of the files that were merged with the project's
	settled int                // changes that it makes
	turned  map[string]string  // by path, what applied changes were changed back, in words
	both    map[string]both    // by path, of texts that both changed
}

// both puts two changes of a text together, with the session's side where they meet.
type both = func() (*manifest.Entry, error)

// planner makes a plan. It belongs to one goroutine.
type planner struct {
	ctx     context.Context
	a       *Applier
	folder  *project.Folder
	sel     files.Selected
	resolve map[string]api.Resolution // by key
	hidden  []string                  // what the agent didn't see
	rules   ruled                     // what policies say of files
	began   func(path string) bool    // what the project had when the agent started
	apart   func(path string) bool    // what its git has otherwise by now, and not in the folder
	partial bool                      // only some of the changes of a file may be selected
	chosen  bool                      // by their paths
	lineage []wrote                   // the applies that stand, newest first
	line    []wrote                   // those of what the plan's state goes on from

	p       *plan
	looked  map[string]project.State // what the project has
	steps   map[string]project.Step
	renamed map[string]string // by the path of what was renamed, the one that goes for it
	applied []diff.Change     // what the plan lists
	words   map[string]string // that are said of a change, by path
	unmade  []diff.Change     // what applies made and is to be deleted again
	git     int               // changes below .git
	ignored int               // changes of what git ignores
}

func (a *Applier) planner(ctx context.Context, s api.Session, folder *project.Folder, sel files.Selected) *planner {
	return &planner{
		ctx: ctx, a: a, folder: folder, sel: sel, resolve: map[string]api.Resolution{}, hidden: s.HiddenPaths,
		p:      &plan{session: s, sel: sel, turned: map[string]string{}, both: map[string]both{}, ApplyPlan: api.ApplyPlan{Files: []api.ApplyFile{}, Checkpoint: sel.Checkpoint, Conflicts: slices.Clone(sel.Conflicts), Git: s.Git}},
		looked: map[string]project.State{}, steps: map[string]project.Step{}, renamed: map[string]string{}, words: map[string]string{},
	}
}

func (a *Applier) planOf(ctx context.Context, s api.Session, sel files.Selected, r api.ApplyRequest) (*plan, error) {
	folder, err := a.open(s)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	b := a.planner(ctx, s, folder, sel)
	b.began, b.apart = a.began(ctx, s)
	if b.rules, err = a.rules(s); err != nil {
		return nil, err
	}
	if err := b.recall(); err != nil {
		return nil, err
	}
	b.partial = len(r.Actions)+len(r.Without) > 0 || slices.ContainsFunc(r.Files, func(c api.Choice) bool { return len(c.Hunks) > 0 })
	for _, x := range r.Resolve {
		b.resolve[x.Key] = x
	}
	for _, c := range sel.Conflicts { // within the session: it has no state with the one and without the other
		if x, ok := b.resolve[c.Key]; ok && x.Way != api.WayThere {
			return nil, api.Problemf(api.CodeInvalid, "%s can't be resolved here, since the session changed it again: choose what did so as well", c.Path)
		}
	}
	var d diff.Difference
	if sel.To != nil {
		if d, err = sel.Files.Difference(ctx, sel.From, sel.To); err != nil {
			return nil, err
		}
	}
	b.chosen = len(r.Globs)+len(r.Files) > 0
	made := &trees{
		planner: b,
		known:   map[string]bool{},
		left:    map[string]int{},
	}
	for i := range d.Changes {
		c := &d.Changes[i]
		if !b.chosen && project.Never(c.Path) == "" && sel.Files.Ignored(c.Path) {
			b.ignored++ // builds' outputs and the like, which a person would make again
			continue
		}
		if err := made.change(c); err != nil {
			return nil, err
		}
	}
	if err := b.takeBack(&d); err != nil {
		return nil, err
	}
	made.say()
	for _, n := range r.Without {
		b.left("…", fmt.Sprintf("what #%d changed, as it was asked for", n))
	}
	if b.ignored > 0 {
		b.left("…", fmt.Sprintf("git ignores %d of the changed files; chosen by their paths they come along", b.ignored))
	}
	if err := b.finish(d, r); err != nil {
		return nil, err
	}
	return b.p, nil
}

// finish completes a plan whose changes were all looked at.
func (b *planner) finish(d diff.Difference, r api.ApplyRequest) error {
	if b.git > 0 {
		how := "can be"
		if r.Commits {
			how = "are"
		}
		b.left(".git", fmt.Sprintf("%d changes in git's own folder; its commits %s fetched", b.git, how))
	}
	if d.More > 0 {
		b.left("…", fmt.Sprintf("%d more changes, too many at once: apply them by folder", d.More))
	}
	for _, f := range []func() error{b.bodies, b.makeFolders} {
		if err := f(); err != nil {
			return err
		}
	}
	if err := b.keepSources(d.Changes); err != nil {
		return err
	}
	if err := b.removeFolders(); err != nil {
		return err
	}
	b.applied = slices.DeleteFunc(b.applied, func(c diff.Change) bool {
		return !slices.ContainsFunc(c.Paths(), func(path string) bool { _, planned := b.steps[path]; return planned })
	})
	b.order()
	b.p.settled = len(b.applied)
	if err := b.list(); err != nil {
		return err
	}
	unreviewed, why, err := b.a.unreviewed(b.ctx, b.p.session, r.Selection, b.sel, b.applied)
	if err != nil {
		return err
	}
	unreviewed, asked := b.rules.also(unreviewed, b.applied)
	b.p.Unreviewed = b.open(unreviewed, why)
	if err := b.extras(r); err != nil {
		return err
	}
	for _, c := range b.p.checks {
		b.p.Checks = append(b.p.Checks, api.Escape(c))
	}
	b.p.state = b.checked()
	b.p.Hash = b.p.digest(len(unreviewed))
	switch {
	case len(b.p.steps)+len(b.p.Commits) == 0:
		b.p.Blocked = "there is nothing to be written"
	case asked == len(unreviewed) && asked > 0 && !r.Looked:
		b.p.Blocked = fmt.Sprintf("a policy wants %d of its changes looked at: look at them first, and say so (--looked)", asked)
	case len(unreviewed) > 0 && !r.Looked:
		b.p.Blocked = fmt.Sprintf("%d of its changes aren't reviewed: look at them first, and say so (--looked)", len(unreviewed))
	}
	return nil
}

// order puts the steps into the plan, by path.
func (b *planner) order() {
	for _, path := range slices.Sorted(maps.Keys(b.steps)) {
		b.p.steps = append(b.p.steps, b.steps[path])
	}
}

// extras are the checks and the commits of a plan.
func (b *planner) extras(r api.ApplyRequest) (err error) {
	switch {
	case r.NoChecks:
	case r.Checks != nil:
		b.p.checks = r.Checks
	default:
		if b.p.checks, err = scratch.Configured(b.p.session.Folder); err != nil {
			return err
		}
	}
	if !r.Commits {
		return nil
	}
	all, err := b.a.History.Select(b.ctx, b.p.session.ID, api.Selection{})
	if err != nil || all.To == nil {
		return err
	}
	b.p.all = all.To
	beside := b.p
	if len(beside.steps) == 0 && !r.Selection.All() { // it is about the commits alone
		if beside, err = b.a.planOf(b.ctx, b.p.session, all, api.ApplyRequest{NoChecks: true}); err != nil {
			return err
		}
	}
	return b.commits(scratch.Shown{Deletes: beside.goes, Writes: beside.writes, Paths: beside.paths})
}

// commits are those of a plan.
func (b *planner) commits(shown scratch.Shown) error {
	got, err := b.a.Sandbox(b.p.session).Commits(b.ctx, b.p.all, shown)
	b.p.Commits, b.p.Unfetched = got.List, got.Failed
	for _, c := range got.List {
		if c.Danger != "" {
			b.p.Dangerous++
		}
	}
	b.p.Left = append(b.p.Left, got.Notes...)
	return err
}

// goes says whether a plan deletes a file of the project, or has something else take its
// place or that of a folder which it is in.
func (p *plan) goes(file string) bool {
	for at := file; at != "."; at = path.Dir(at) {
		i, planned := slices.BinarySearchFunc(p.steps, at, func(s project.Step, at string) int { return strings.Compare(s.Path, at) })
		kept := manifest.KindDir
		if at == file {
			kept = manifest.KindFile
		}
		if planned {
			is := p.steps[i].New.Kind
			return is != kept && (at != file || is != manifest.KindSymlink)
		}
	}
	return false
}

// paths are those of what a plan does.
func (p *plan) paths(yield func(string) bool) {
	for _, s := range p.steps {
		if !yield(s.Path) {
			return
		}
	}
}

// writes is what a plan makes of a file of the project, or a merge if both changed it and nobody said
// what becomes of it; nil if neither does.
func (p *plan) writes(file string) (*manifest.Entry, error) {
	i, planned := slices.BinarySearchFunc(p.steps, file, func(s project.Step, at string) int { return strings.Compare(s.Path, at) })
	if planned && (p.steps[i].New.Kind == manifest.KindFile || p.steps[i].New.Kind == manifest.KindSymlink) {
		return &fileOf(file, p.steps[i].New).Entry, nil
	}
	if both := p.both[file]; both != nil && p.turned[file] == "" {
		return both()
	}
	return nil, nil
}

// fileOf is a state of the project as a side of a change.
func fileOf(path string, s project.State) *diff.File {
	if s.Absent() {
		return nil
	}
	_, name := manifest.Split(path)
	return &diff.File{Path: path, Entry: manifest.Entry{Name: name, Kind: s.Kind, Meta: manifest.Meta{Mode: s.Mode & 0o777}, Size: s.Size, Hash: s.Hash, Target: s.Target}}
}

// digest names all that a person was shown, and what would be written.
func (p *plan) digest(unreviewed int) string {
	h := blake3.New()
	shown := p.ApplyPlan
	shown.Checkpoint = 0 // a later state with the same changes is as good
	_ = json.NewEncoder(h).Encode(shown)
	_, _ = fmt.Fprintf(h, "%d %q", unreviewed, p.checks) // a hash never fails
	for _, s := range p.steps {
		for _, x := range []project.State{s.Old, s.New} {
			_, _ = fmt.Fprintf(h, " %q %d %o %d %x %q", s.Path, x.Kind, x.Mode&0o777, x.Size, x.Hash, x.Target)
		}
	}
	sum := h.Sum(nil)
	return fmt.Sprintf("%x", sum[:16])
}

// record is an apply as its record begins.
func (p *plan) record(r api.ApplyRequest, earlier []api.Apply) api.Apply {
	out := api.Apply{
		ID: 1, At: time.Now().UTC(), Selection: r.Selection, Checkpoint: p.Checkpoint, Files: p.settled, Commits: r.Commits,
		By: api.Escape(api.Trim(r.By, 64)), State: api.ApplyOpen, Merged: append([]string{}, p.merged...),
	}
	if n := len(earlier); n > 0 {
		out.ID = earlier[n-1].ID + 1
	}
	for _, f := range p.Files[:min(len(p.Files), maxPaths)] {
		out.Paths = append(out.Paths, f.Path)
	}
	if len(out.Selection.Files) > maxPaths { // the record says what was written by its checkpoint and journal
		out.Selection.Files = out.Selection.Files[:maxPaths]
	}
	if len(p.steps) > 0 {
		out.Journal = fmt.Sprintf("%s-%d", p.session.ID, out.ID)
	}
	return out
}

// left notes what isn't applied.
func (b *planner) left(path, why string) {
	if len(b.p.Left) < maxListed {
		b.p.Left = append(b.p.Left, api.Trouble{Path: api.Escape(path), Why: api.Escape(api.Trim(why, maxReason))})
	}
}

// look is what the project has at a path.
func (b *planner) look(path string) (project.State, error) {
	if s, ok := b.looked[path]; ok {
		return s, nil
	}
	s, err := b.folder.Look(b.ctx, path)
	if err == nil {
		b.looked[path] = s
	}
	return s, err
}

// fatal are errors of looking that aren't about the one path.
func (b *planner) fatal(err error) bool {
	return b.ctx.Err() != nil || errors.Is(err, project.ErrMoved)
}

// change decides what becomes of one change. Of a rename that can't be made as
// such, the two halves are changes of their own.
func (b *planner) change(c *diff.Change) error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	if c.Status == diff.Renamed {
		done, err := b.rename(c)
		if done || err != nil {
			return err
		}
		gone := diff.Change{Path: c.From, Status: diff.Deleted, Old: c.Old, Content: true}
		made := diff.Change{Path: c.Path, Status: diff.Added, New: c.New, Content: true}
		if err := b.change(&gone); err != nil {
			return err
		}
		return b.change(&made)
	}
	want, ok := b.want(c)
	if !ok {
		return nil
	}
	has, err := b.look(c.Path)
	switch {
	case err != nil && b.fatal(err):
		return err
	case err != nil:
		b.left(c.Path, err.Error())
	case has.Same(want):
		b.p.There++
	case b.deleted(c.Path, c.Old, has):
		return b.conflict(c, c.Path, has, want)
	case c.Old != nil && c.Old.Kind == has.Kind && special(has.Kind):
		b.left(c.Path, "the "+has.Kind.String()+" in the project stays: only files, folders and links are taken away or replaced")
	case (files.Still(c.Old, has) || b.ours(c.Path, has)) && !b.takenBack(c.Path, has, want):
		b.step(c, has, want)
	case !files.Still(c.Old, has) && !b.chosen && b.unchanged(c.Path, want):
		b.left(c.Path, "it was changed in the project since it was applied, and the session has it as it was then")
	default:
		return b.conflict(c, c.Path, has, want)
	}
	return nil
}

// rename makes a step for each name of a file that was renamed, if the project has
// the one as it was and nothing under the other. A file that was changed there
// meanwhile is a conflict under its new name.
func (b *planner) rename(c *diff.Change) (done bool, err error) {
	if project.Never(c.From) != "" || project.Never(c.Path) != "" || c.New.Unsaved != "" || b.rules.protects(c.From) != nil {
		return false, nil
	}
	made := *c
	made.Old = nil
	want, ok := b.want(&made)
	if !ok {
		return false, nil
	}
	has, err := b.look(c.From)
	if err != nil {
		return false, b.unless(err)
	}
	there, err := b.look(c.Path)
	if err != nil {
		return false, b.unless(err)
	}
	ours := b.ours(c.From, has)
	switch {
	case has.Absent() && there.Same(want):
		b.p.There++
		return true, nil
	case !there.Absent() || b.deleted(c.Path, nil, there):
		return false, nil
	case (ours || files.Still(c.Old, has) && !b.takenBack(c.From, has, project.State{})) && !b.takenBack(c.Path, there, want):
		b.step(c, project.State{}, want)
		b.goes(c.From, c.Path, has)
		return true, nil
	case ours || has.Kind != manifest.KindFile:
		return false, nil // it was renamed before, and what is under the new name is the person's by now
	}
	return true, b.conflict(c, c.From, has, want)
}

func (b *planner) unless(err error) error {
	if b.fatal(err) {
		return err
	}
	return nil
}

// step has a path of the project become what is wanted. The plan says the mode that is
// written.
func (b *planner) step(c *diff.Change, has, want project.State) {
	s := project.Step{Path: c.Path, Old: has, New: want}
	b.steps[c.Path] = s
	made := *c
	if mode := s.Written().Mode; c.New != nil && c.New.Kind != manifest.KindSymlink && c.New.Mode != mode {
		f := *c.New
		f.Mode = mode
		made.New, made.Mode = &f, c.Old != nil && c.Old.Mode != mode
		b.left(c.Path, fmt.Sprintf("mode %04o isn't carried over as it is: it gets %04o", c.New.Mode, mode))
	}
	b.applied = append(b.applied, made)
}

// goes has a file go from the path that it is renamed from, as long as its new name
// is written.
func (b *planner) goes(from, to string, has project.State) {
	b.steps[from] = project.Step{Path: from, Old: has}
	b.renamed[to] = from
}

// drop leaves a path as it is, and one that was renamed to it.
func (b *planner) drop(path, why string) {
	b.left(path, why)
	delete(b.steps, path)
	if from, ok := b.renamed[path]; ok {
		delete(b.steps, from)
	}
}

// want is what is wanted of a path; not ok when it can't be applied, which is noted.
func (b *planner) want(c *diff.Change) (want project.State, ok bool) {
	if project.Never(c.Path) != "" {
		b.git++
		return want, false
	}
	if r := b.rules.protects(c.Path); r != nil {
		b.left(c.Path, "a policy makes it read-only: "+standing(r))
		return want, false
	}
	n := c.New
	if n == nil {
		return want, true
	}
	switch {
	case special(n.Kind):
		b.left(c.Path, "a "+n.Kind.String()+" isn't carried over")
		return want, false
	case n.Unsaved != "":
		b.left(c.Path, strings.TrimPrefix(n.Unsaved, "not kept: ")+": its content isn't in the record")
		return want, false
	case c.Status == diff.Modified && !c.Content && !c.Mode:
		b.left(c.Path, "only its owner or attributes changed, which aren't carried over")
		return want, false
	}
	return files.StateOf(n), true
}

// special are kinds that are never written over.
func special(k manifest.Kind) bool {
	return k == manifest.KindFIFO || k == manifest.KindSocket || k == manifest.KindDevice
}

// bodies leaves out what can't be written, since the record lost its content, as far
// as that is known without reading all of it.
func (b *planner) bodies() error {
	kept := files.Bodies{Store: b.a.Store}
	for _, path := range slices.Sorted(maps.Keys(b.steps)) {
		s := b.steps[path].New
		if s.Kind != manifest.KindFile || s.Size == 0 {
			continue
		}
		r, err := content.Open(b.ctx, kept, s.Hash, s.Size)
		if err == nil {
			_ = r.Close() // nothing was read
			var refs, gone []content.Hash
			if refs, err = content.Refs(b.ctx, kept, s.Hash, s.Size); err == nil && len(refs) > 1 {
				if gone, err = kept.Missing(b.ctx, refs); len(gone) > 0 {
					err = fmt.Errorf("%d of its %d parts are gone", len(gone), len(refs))
				}
			}
		}
		if err != nil {
			b.drop(path, "its content isn't in the record any more, or not whole: "+err.Error())
		}
	}
	return b.ctx.Err()
}

// list describes what the plan would do, the dangerous changes first when there
// are too many.
func (b *planner) list() error {
	d := &dangers{
		hidden: b.hidden, redacted: b.p.session.Redacted, git: map[string]bool{}, folded: b.folded(),
		read: func(f *diff.File, most int64) ([]byte, error) { return b.read(files.StateOf(f), most) },
		there: func(path string) bool {
			if s, ok := b.steps[path]; ok {
				return !s.New.Absent()
			}
			has, err := b.look(path)
			return err != nil || !has.Absent() // what can't be looked at is there
		},
		target: func(path string) string {
			if s, ok := b.steps[path]; ok {
				return s.New.Target
			}
			has, _ := b.look(path) // what can't be looked at is no link that anyone could follow
			return has.Target
		},
		obeyed: obeys(b.p.session.Folder, b.a.Person), rules: b.rules,
	}
	shown := b.sel.Files.List(b.applied)
	if b.sel.To != nil {
		b.a.History.Inherited(b.ctx, b.p.session.ID, b.sel.Files, b.sel.To, b.applied, shown)
	}
	for i := range b.applied {
		c := &b.applied[i]
		f := api.ApplyFile{}
		if f.Dangers = d.of(c); len(f.Dangers) > 0 {
			b.p.Dangerous++
		}
		switch {
		case c.Status == diff.Renamed:
			b.p.Renamed++
		case c.Status == diff.Retyped:
			b.p.Retyped++
		case c.New == nil:
			b.p.Deleted++
		default:
			b.p.Written++
		}
		switch {
		case i < len(shown):
			f.Change = shown[i]
		case len(f.Dangers) > 0 && len(b.p.Files) < 2*maxListed:
			f.Change = b.sel.Files.List(b.applied[i : i+1])[0]
		default:
			b.p.More++
			continue
		}
		if said := b.words[c.Path]; said != "" {
			f.Words = strings.TrimPrefix(f.Words+", "+said, ", ")
			f.Undoes, f.Hunks = true, b.hunks(c)
		}
		b.p.Files = append(b.p.Files, f)
	}
	return nil
}

// hunks are a change's. Of what is no text, too large, too different or lost, there are none.
func (b *planner) hunks(c *diff.Change) []api.Hunk {
	var texts [2]string
	for i, f := range []*diff.File{c.Old, c.New} {
		s := files.StateOf(f)
		text, err := b.read(s, maxMerged)
		if f != nil && s.Kind != manifest.KindFile || err != nil || merge.Binary(text) {
			return nil
		}
		texts[i] = string(text)
	}
	out, _, _, _ := files.Hunks(texts[0], texts[1])
	return out
}

// folded lists what there will be by what it is in small letters: what is written,
// and what the project has in the folders that something new comes to.
func (b *planner) folded() map[string][]string {
	out := map[string][]string{}
	add := func(path string) {
		if k := strings.ToLower(path); !slices.Contains(out[k], path) {
			out[k] = append(out[k], path)
		}
	}
	listed := map[string]bool{}
	for i := range b.applied {
		c := &b.applied[i]
		if c.New == nil {
			continue
		}
		add(c.Path)
		dir, _ := manifest.Split(c.Path)
		if c.Old != nil && c.Status != diff.Renamed || listed[dir] {
			continue
		}
		listed[dir] = true
		names, _ := b.folder.Names(b.ctx, dir) // it may not be there yet
		for _, name := range names {
			path := manifest.Join(dir, name)
			if s, planned := b.steps[path]; !planned || !s.New.Absent() {
				add(path)
			}
		}
	}
	return out
}
