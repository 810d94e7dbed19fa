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
	"stepbox/session/project"
)

// point is a state of a session.
type point struct {
	session    string
	checkpoint int64
}

// way is what a state goes on from: itself, then what each fork began as.
func way(sessions map[string]api.Session, at point) (out []point) {
	for range len(sessions) + 1 {
		out = append(out, at)
		p := sessions[at.session].Parent
		if p == nil {
			break
		}
		at = point{p.ID, p.Checkpoint}
	}
	return out
}

// kin is what the state that an apply took has in common with a plan's.
type kin struct {
	none  bool         // nothing: they are of sessions that have nothing to do with each other
	files *files.Files // of the session in which their ways part; nil: that was removed
	until int64        // the newest checkpoint of it that both go on from
	plan  int64        // the newest that the plan's does
	own   bool         // the plan's goes on from all of the apply's
}

// kinship compares the ways of an apply's state and a plan's.
func (a *Applier) kinship(of, plan []point) kin {
	for i, p := range of {
		for _, q := range plan {
			if p.session == q.session {
				return kin{files: files.Recorded(a.Store, p.session), until: min(p.checkpoint, q.checkpoint), plan: q.checkpoint, own: i == 0 && p.checkpoint <= q.checkpoint}
			}
		}
	}
	return kin{none: true}
}

// lineage lists the applies that stand of a session's project folder, of whichever session,
// newest first, but for those of sessions that have nothing to do with it from before it,
// or what it is a fork of, began: it saw what became of them. What a removed session applied is told by its journals, though
// not from which state: that may be one of the plan's own line.
func (a *Applier) lineage(ctx context.Context, s api.Session, newest int64) ([]wrote, error) {
	all, err := a.History.History.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	there, err := a.Journals.List() // those of what is removed just now are there still
	if err != nil {
		return nil, err
	}
	sessions := map[string]api.Session{s.ID: s}
	for _, o := range all {
		sessions[o.ID] = o
	}
	line := way(sessions, point{s.ID, newest})
	began := sessions[line[len(line)-1].session].StartedAt // unless that was removed
	in, told := &bounds{room: maxWritten}, map[string]bool{}
	out, err := a.recorded(ctx, s.ID, there, in)
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		if o.ID == s.ID || o.Folder != s.Folder {
			continue
		}
		if in.since = began; !a.kinship(way(sessions, point{session: o.ID}), line).none {
			in.since = time.Time{}
		}
		more, _ := a.recorded(ctx, o.ID, there, in) // of one that is damaged, or removed just now, the journals tell
		for _, w := range more {
			w.of = " of session " + api.Escape(api.Trim(o.Name, 80))
			out = append(out, w)
		}
	}
	for i := range out {
		w := &out[i]
		w.kin, w.then, told[w.journal] = a.kinship(way(sessions, w.point), line), files.Recorded(a.Store, w.session), true
	}
	in.since = began
	for name, l := range there {
		if told[name] || l.Phase != project.Done {
			continue
		}
		if w := a.wroteBy(name, l); w.lost != nil || w.project == s.Folder {
			w.of = " of a removed session (" + w.session + ")"
			out = in.add(out, w)
		}
	}
	slices.SortStableFunc(out, func(x, y wrote) int { return cmp.Or(y.at.Compare(x.at), cmp.Compare(y.id, x.id)) })
	return out, nil
}

// goesOn says whether a plan's state goes on from what an apply took at a path: it had
// that by then, and didn't let go of it since, so that the agent saw the project's. Then
// the base has the file of the project that took its place. Where the ways parted before
// the apply it does if the path had been changed by then: that went into it.
func (w *wrote) goesOn(ctx context.Context, path string) bool {
	k := w.kin
	if k.none || k.files == nil {
		return !k.none // nothing is known against it
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
		case (w.then == nil || w.kin.none) && b.sawSince(path, w.at):
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
		b.turned[path] = fmt.Sprintf(why, w)
		return true
	}
	return false
}

// sawSince says whether the file of the project that the session saw is from after a moment.
func (b *planner) sawSince(path string, at time.Time) bool {
	e := (*manifest.Manifest)(nil).Has(b.sel.Now.Base, path)
	return e != nil && time.Unix(e.MTime.Sec, int64(e.MTime.Nsec)).After(at)
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

// recall reads which applies stand.
func (b *planner) recall() (err error) {
	b.lineage, err = b.a.lineage(b.ctx, b.p.session, b.sel.Checkpoint)
	for _, w := range b.lineage {
		if w.session == b.p.session.ID {
			b.applies = append(b.applies, w)
		}
		if w.lost != nil {
			b.left("…", fmt.Sprintf("nobody can tell what %s wrote: %v", &w, w.lost))
		}
	}
	return err
}

// String names an apply.
func (w *wrote) String() string { return fmt.Sprintf("apply %d%s", w.id, w.of) }

// SessionOf is the session that a journal is of, by its name.
func SessionOf(journal string) string { return journal[:max(strings.LastIndexByte(journal, '-'), 0)] }
