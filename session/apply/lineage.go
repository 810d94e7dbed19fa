package apply

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/ledger"
	"stepbox/session/project"
	"stepbox/store"
)

// point is a state of a session.
type point struct {
	session    string
	checkpoint int64
}

// kinship is what is known of the sessions of two states.
type kinship int

const (
	unknown   kinship = iota // what one of them began as is gone: it may be of the other's line
	strangers                // they have nothing to do with each other
	kindred                  // they are forks of one, or the same
)

// kin is what the state that an apply took has in common with a plan's.
type kin struct {
	kinship
	files *files.Files // of the session in which their ways part
	until int64        // the newest checkpoint of it that both go on from
	plan  int64        // the newest that the plan's does
	own   bool         // the plan's goes on from all of the apply's
}

// family are the sessions that there are, when one is planned for.
type family struct {
	store    *store.Store
	sessions map[string]api.Session
	files    map[string]*files.Files // of those that were asked for
	line     []point                 // what the plan's state goes on from
	whole    bool                    // all of that is there
}

// way is what a state goes on from: itself, then what each fork began as; not whole if
// the last of these is gone.
func (f *family) way(at point) (out []point, whole bool) {
	for range len(f.sessions) + 1 {
		out = append(out, at)
		s, there := f.sessions[at.session]
		if s.Parent == nil {
			return out, there
		}
		at = point{s.Parent.ID, s.Parent.Checkpoint}
	}
	return out, false
}

// kin compares the ways of an apply's state and the plan's.
func (f *family) kin(of point) kin {
	way, whole := f.way(of)
	for i, p := range way {
		for _, q := range f.line {
			if p.session == q.session {
				return kin{kindred, f.of(p.session), min(p.checkpoint, q.checkpoint), q.checkpoint, i == 0 && p.checkpoint <= q.checkpoint}
			}
		}
	}
	if whole && f.whole {
		return kin{kinship: strangers}
	}
	return kin{}
}

// of is what is recorded of a session's files.
func (f *family) of(session string) *files.Files {
	if f.files[session] == nil {
		f.files[session] = files.Recorded(f.store, session)
	}
	return f.files[session]
}

// lineage lists the applies that stand of a session's project folder, of whichever
// session, newest first, but for those of sessions that aren't its kin from before it, or
// what it is a fork of, began: it saw what became of them. What a session applied that was
// removed, or can't be read, is told by its journals, though not from which state: that may
// be one of the plan's own line, if that isn't whole.
func (a *Applier) lineage(ctx context.Context, s api.Session, newest int64) ([]wrote, *family, error) {
	all, damaged := a.History.History.Sessions(ctx)
	if all == nil {
		return nil, nil, damaged
	}
	there, err := a.Journals.List() // those of what is removed just now are there still
	if err != nil {
		return nil, nil, err
	}
	f := family{store: a.Store, sessions: map[string]api.Session{s.ID: s}, files: map[string]*files.Files{}}
	for _, o := range all {
		f.sessions[o.ID] = o
	}
	f.line, f.whole = f.way(point{s.ID, newest})
	began := f.sessions[f.line[len(f.line)-1].session].StartedAt // unless that was removed
	in, told := &bounds{room: maxWritten}, map[string]bool{}
	out, err := a.recorded(ctx, s.ID, there, in)
	if err != nil {
		return nil, nil, err
	}
	for _, o := range all {
		if o.ID == s.ID || o.Folder != s.Folder {
			continue
		}
		if in.since = began; f.kin(point{session: o.ID}).kinship == kindred {
			in.since = time.Time{}
		}
		more, _ := a.recorded(ctx, o.ID, there, in) // of one that is damaged, or removed just now, the journals tell
		for _, w := range more {
			w.of = named(o)
			out = append(out, w)
		}
	}
	for i := range out {
		w := &out[i]
		w.kin, w.then, told[w.journal] = f.kin(w.point), f.of(w.session), true
	}
	in.since = began
	for name, l := range there {
		o, known := f.sessions[SessionOf(name)]
		if told[name] || l.Phase != project.Done || known && o.Folder != s.Folder && o.Folder != "" {
			continue
		}
		if folder, err := l.Project(); err == nil && folder != s.Folder {
			continue // what isn't known may be this one
		}
		w := a.wroteBy(name, l)
		switch {
		case known && o.ID != s.ID:
			w.of = named(o)
		case !known && damaged == nil:
			w.of = " of a removed session (" + w.session + ")"
		case !known:
			w.of = " of a session that was removed or is damaged (" + w.session + ")"
		}
		out = in.add(out, w)
	}
	slices.SortStableFunc(out, newestFirst)
	return out, &f, nil
}

// line lists the applies that stand of what a state of a session goes on from: its own, and
// those of what it is a fork of up to there; newest first.
func (a *Applier) line(ctx context.Context, s api.Session, newest int64) (out []wrote, err error) {
	there, err := a.Journals.List()
	if err != nil {
		return nil, err
	}
	in, at, seen := &bounds{room: maxWritten}, point{s.ID, newest}, map[string]bool{}
	for !seen[at.session] {
		all, err := a.recorded(ctx, at.session, there, in)
		if err != nil {
			return nil, err
		}
		then := files.Recorded(a.Store, at.session)
		for _, w := range all {
			if w.then, w.kin = then, (kin{kindred, then, w.checkpoint, at.checkpoint, true}); w.checkpoint <= at.checkpoint {
				out = append(out, w)
			}
		}
		seen[at.session] = true
		if s.Parent == nil {
			break
		}
		at = point{s.Parent.ID, s.Parent.Checkpoint}
		if s, err = ledger.Session(ctx, a.Store, at.session); err != nil {
			break // it was removed
		}
	}
	slices.SortStableFunc(out, newestFirst)
	return out, nil
}

func newestFirst(x, y wrote) int { return cmp.Or(y.at.Compare(x.at), cmp.Compare(y.id, x.id)) }

// goesOn says whether a plan's state goes on from what an apply took at a path: it had
// that by then, and didn't let go of it since, so that the agent saw the project's. Then
// the base has the file of the project that took its place. Where the ways parted before
// the apply it does if the path had been changed by then: that went into it.
func (w *wrote) goesOn(ctx context.Context, path string) bool {
	k := w.kin
	if k.kinship != kindred {
		return k.kinship == unknown // nothing is known against it
	}
	m, err := k.files.At(ctx, k.until)
	if !k.own && (k.until == 0 || err == nil && !m.Knows(nil, path)) {
		return false
	}
	now, failed := k.files.At(ctx, k.plan)
	if err != nil || failed != nil {
		return true
	}
	was, is := (*manifest.Manifest)(nil).Has(m.Base, path), (*manifest.Manifest)(nil).Has(now.Base, path)
	if was == nil || is == nil {
		return was == is
	}
	return was.MTime == is.MTime && project.Of(was).Same(project.Of(is))
}

// took says whether an apply of which it isn't known what it wrote may have made of a
// path what is wanted, or what that goes on from.
func (w *wrote) took(ctx context.Context, path string, want project.State) bool {
	if w.then == nil {
		return true
	}
	m, err := w.then.At(ctx, w.checkpoint)
	return err != nil || m.Knows(nil, path) && (project.Of(m.Has(nil, path)).Same(want) || w.goesOn(ctx, path))
}

// takenBack says whether a person changed back what an apply wrote at a path, and why
// that is thought: the project has something else by now, though what is wanted is what
// was written, or goes on from it. That the project has again what was there before the
// apply doesn't mean then that nobody touched it.
func (b *planner) takenBack(path string, has, want project.State) bool {
	for i := range b.lineage {
		w := &b.lineage[i]
		s, ok := w.paths[path]
		why := "what %s wrote there was changed back in the project since"
		switch {
		case w.kin.kinship != kindred && b.sawSince(path, w.at):
			continue
		case w.lost != nil && w.took(b.ctx, path, want):
			why = "nobody can tell what %s wrote there, and whether it was changed back in the project since"
		case !ok:
			continue
		case s.Same(has) && w.kin.own:
			return false
		case !s.Same(has) && (s.Same(want) || w.goesOn(b.ctx, path)):
		default:
			continue
		}
		b.p.turned[path] = fmt.Sprintf(why, w)
		return true
	}
	return false
}

// sawSince says whether the file of the project that the session saw is from after a
// moment, by its time, which whoever wrote it may have set. One in the future tells nothing.
func (b *planner) sawSince(path string, at time.Time) bool {
	e := (*manifest.Manifest)(nil).Has(b.sel.Now.Base, path)
	if e == nil {
		return false
	}
	from := time.Unix(e.MTime.Sec, int64(e.MTime.Nsec))
	return from.After(at) && !from.After(time.Now())
}

// newest is what the newest apply of the plan's line wrote at a path, if the plan's state
// goes on from that; not ok where it isn't known.
func (b *planner) newest(path string) (s project.State, by wrote, ok bool) {
	for _, by = range b.lineage {
		if s, ok = by.paths[path]; by.kin.own && (ok || by.lost != nil) {
			return s, by, ok && by.goesOn(b.ctx, path)
		}
	}
	return s, by, false
}

// unchanged says whether what is wanted at a path is what was applied there.
func (b *planner) unchanged(path string, want project.State) bool {
	s, _, ok := b.newest(path)
	return ok && s.Same(want)
}

// recall reads which applies stand, and notes what isn't known of what the plan's state
// goes on from.
func (b *planner) recall() error {
	lineage, f, err := b.a.lineage(b.ctx, b.p.session, b.sel.Checkpoint)
	if err != nil {
		return err
	}
	b.lineage = lineage
	if !f.whole {
		b.left("…", "what this is a fork of was removed: what that had applied and this took away again, or made as it was at first, isn't undone")
	}
	for i := range lineage {
		w := &lineage[i]
		if w.kin.own {
			b.line = append(b.line, *w)
		}
		if w.lost != nil {
			b.left("…", fmt.Sprintf("nobody can tell what %s wrote: %v", w, w.lost))
		}
	}
	return nil
}

// named is whose an apply is, in words.
func named(s api.Session) string { return " of session " + api.Escape(api.Trim(s.Name, 80)) }

// String names an apply.
func (w *wrote) String() string { return fmt.Sprintf("apply %d%s", w.id, w.of) }

// SessionOf is the session that a journal is of, by its name.
func SessionOf(journal string) string { return journal[:max(strings.LastIndexByte(journal, '-'), 0)] }
