package session

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/judge"
)

// quietTime is how long the files must rest before changes become an action's
// or an edit.
const quietTime = 200 * time.Millisecond

// stretch is two checkpoints, of which one goes on from the other directly or
// over others in between.
type stretch struct{ from, to int64 }

// account records a checkpoint and says whose the changes since the last one
// are; see whose.
func (s *Session) account(t taken, then func(*checkpoint, error)) {
	var who map[*action]bool // nil: anyone
	if t.until != nil {
		who = ran(s.watch.base, s.owners(t.until))
	}
	var events []api.Event
	cp := s.lastFiles
	switch {
	case !t.same:
		last := cp
		cp = s.newCheckpoint(t.root, t.manifest, last.id)
		s.lastFiles = cp
		events = append(events, checkpointEvent(cp, 0))
		if len(t.changed) > 0 {
			events = append(events, s.assign(last, cp, t.changed, who)...)
		}
	case t.manifest != cp.manifest: // read again, to the same end
		cp = &checkpoint{id: cp.id, root: cp.root, manifest: t.manifest}
		s.lastFiles = cp
	}
	if t.since == nil {
		s.watch.base = nil
	} else {
		s.watch.base = s.owners(t.since)
		events = append(events, s.survivors(s.watch.base)...)
	}
	s.keepLooking()
	if len(events) == 0 {
		then(cp, nil)
		return
	}
	s.record(func(err error) { then(cp, err) }, events...)
}

// newCheckpoint gives a state its number. From is the one that it goes on from:
// the one before it, or the one that a roll back restored.
func (s *Session) newCheckpoint(root content.Hash, m *manifest.Manifest, from int64) *checkpoint {
	s.newest++
	s.line[s.newest] = from
	cp := &checkpoint{id: s.newest, root: root, manifest: m}
	s.files.remember(cp)
	return cp
}

// checkpointEvent tells of a new checkpoint. Of is the action whose changes
// alone it holds; 0: it is the state of all files.
func checkpointEvent(cp *checkpoint, of int) api.Event {
	return api.Event{Kind: "checkpoint", Checkpoint: &api.Checkpoint{
		ID: cp.id, At: time.Now().UTC(), Root: cp.root.String(), Files: cp.manifest.Len(), Bytes: cp.manifest.Bytes(), Action: of,
	}}
}

// assign gives changes to those who made them.
func (s *Session) assign(last, cp *checkpoint, changed []diff.Change, who map[*action]bool) []api.Event {
	// What a roll back ended wrote nothing since.
	may := slices.DeleteFunc(s.alive(), func(a *action) bool { return a.undone })
	theirs, shared := whose(may, who, time.Now())
	if len(theirs) == 0 {
		return s.edited(last, cp, changed, shared)
	}
	for _, a := range theirs {
		a.Shared = a.Shared || len(theirs) > 1
		a.made(last.id, cp.id)
		if a.State == api.ActionEnded {
			s.grow(a)
		}
	}
	return nil
}

// made notes that what changed between two checkpoints is the action's.
func (a *action) made(from, to int64) {
	if n := len(a.spans); n > 0 && a.spans[n-1].to == from {
		a.spans[n-1].to = to
		return
	}
	a.spans = append(a.spans, stretch{from, to})
}

// survivors notes which ended actions still have processes, and which have none
// any more.
func (s *Session) survivors(l *glance) []api.Event {
	left := make(map[*action]int)
	for _, a := range s.alive() {
		if a.lingers {
			left[a] = 0
		}
	}
	for _, o := range l.owners {
		if o != nil && o.State == api.ActionEnded {
			left[o]++
		}
	}
	var events []api.Event
	for a, n := range left {
		if a.LeftRunning != n {
			a.LeftRunning, a.lingers = n, n > 0
			events = append(events, s.actionEvent(a, "left"))
		}
	}
	return events
}

// edited makes an edit action out of changes that are the agent's own, or may
// be: shared are the actions that may have made them as well.
func (s *Session) edited(before, after *checkpoint, changed []diff.Change, shared []*action) []api.Event {
	a := &action{profile: s.profile}
	now := time.Now().UTC()
	a.N, a.Kind, a.StartedAt, a.EndedAt = len(s.actions)+1, api.KindEdit, now, now
	a.Before, a.After = before.id, after.id
	a.made(before.id, after.id)
	a.Verdict, a.By = api.Allow, "rule"
	a.Files = len(changed)
	for _, o := range shared {
		a.Shared, o.Shared = true, true
		a.SharedWith = append(a.SharedWith, o.N)
	}
	var names []string
	for _, c := range changed[:min(len(changed), 4)] {
		names = append(names, api.Escape(c.Path))
	}
	a.Title = "edit " + listed(names, len(changed), 3)
	if err := a.to(api.ActionEnded); err != nil {
		s.fail(err)
		return nil
	}
	if err := a.review(api.ReviewOpen); err != nil {
		s.fail(err)
		return nil
	}
	s.actions = append(s.actions, a)
	s.count(a, before.manifest, after.manifest)
	events := []api.Event{s.actionEvent(a, "edited"), s.changed("counted")}
	if s.info.Mode == api.ModeStep {
		s.review(a, changed, true, false)
	}
	return events
}

// review asks in step mode what becomes of an action's changes. The agent is
// frozen meanwhile when it made them by itself: nothing else holds it. What
// comes late, from what an ended action left running, doesn't hold up others.
func (s *Session) review(a *action, changed []diff.Change, freeze, late bool) {
	q := &question{
		Question: api.Question{
			Action: a.N, Subject: api.SubjectEdit, Title: a.Title,
			Rule: "step mode: changes are kept or rolled back before the agent's next command",
		},
		action: a, late: late,
	}
	if len(a.SharedWith) > 0 {
		var ns []string
		for _, n := range a.SharedWith {
			ns = append(ns, strconv.Itoa(n))
		}
		q.Rule += fmt.Sprintf("; action %s ran as well and may have made some of them", listed(ns, len(ns), len(ns)))
	}
	q.Changes = s.files.list(changed, maxListed)
	if !freeze {
		s.open(q)
		return
	}
	s.aside(func() func() {
		thaw, err := s.freezer.freeze(context.Background())
		return func() {
			if err != nil && s.life.now < phaseStopping {
				s.note(true, "the agent runs on while action %d waits: it can't be frozen: %v", a.N, err)
			}
			q.thaw = thaw
			if a.Review != api.ReviewOpen { // a roll back came first
				s.unfreeze(q)
				return
			}
			s.open(q)
		}
	})
}

// touched is the wake-up of the watcher: files moved. Once they rest it is found
// out whose doing it was.
func (s *Session) touched() {
	s.files.bump()
	if s.quiet == nil {
		s.quiet = time.AfterFunc(quietTime, func() { s.submit(s.rested) })
		return
	}
	s.quiet.Reset(quietTime)
}

func (s *Session) rested() {
	if s.life.now != phaseRunning {
		return
	}
	s.checkpoint(func(*checkpoint, error) {}) // a failure ends the session
}

// finish ends an action whose leaders have exited: what it changed is settled
// before it is shown as done.
func (s *Session) finish(a *action, exit *api.Exit) {
	if a.Housekeeping {
		a.EndedAt, a.Exit = time.Now().UTC(), exit
		if a.script != "" {
			s.upkeep = append(s.upkeep[max(len(s.upkeep)-maxUpkeep, 0):], judge.Written{From: a.StartedAt, To: a.EndedAt, Script: a.script})
		}
		if err := a.to(api.ActionEnded); err != nil {
			s.fail(err)
			return
		}
		s.shed(a)
		s.record(nil, s.actionEvent(a, "ended"))
		return
	}
	ended := time.Now().UTC()
	done := func(cp *checkpoint, err error) {
		if err != nil || a.State != api.ActionRunning {
			return // the session ends, and ends the action with it
		}
		left := s.leftRunning(a)
		if err := a.to(api.ActionEnded); err != nil {
			s.fail(err)
			return
		}
		a.EndedAt, a.Exit, a.After, a.LeftRunning, a.lingers = ended, exit, cp.id, left, left > 0
		s.told(a, func(t told) { s.settled(a, t) })
	}
	if a.atExit != nil {
		done(a.atExit, nil)
		return
	}
	a.exiting = true
	s.checkpoint(done)
}

// settled records the end of an action whose changes are known.
func (s *Session) settled(a *action, t told) {
	if t.err != nil {
		s.note(true, "cannot tell what action %d changed: %v", a.N, t.err)
	}
	s.own(a, t)
	s.keepByRule(a, t.changed)
	s.shed(a)
	s.record(nil, s.actionEvent(a, "ended"), s.changed("counted"))
	s.advance() // its parent has run, to notice its end
	if a.Review == api.ReviewOpen && s.info.Mode == api.ModeStep && s.life.now == phaseRunning {
		s.review(a, t.changed, false, false)
	}
}

// own gives an action its changes, which then wait for a review: again, when
// those before were kept.
func (s *Session) own(a *action, t told) {
	if t.err != nil || t.to < a.toldTo {
		return // what is known is newer
	}
	a.toldTo, a.After = t.to, t.after
	if a.agent != nil || a.Review == api.ReviewRolledBack {
		return
	}
	a.Files, a.Added, a.Removed = len(t.changed), t.added, t.removed
	if len(t.changed) == 0 || a.Review == api.ReviewOpen {
		return
	}
	if err := a.review(api.ReviewOpen); err != nil {
		s.fail(err)
	}
}

// grow counts what an ended action's processes have changed by now, and asks
// about it.
func (s *Session) grow(a *action) {
	s.told(a, func(t told) {
		if t.err != nil {
			s.note(true, "cannot tell what action %d left running changed: %v", a.N, t.err)
			return
		}
		s.own(a, t)
		s.record(nil, s.actionEvent(a, "counted"), s.changed("counted"))
		if a.Review != api.ReviewOpen || s.info.Mode != api.ModeStep || s.life.now != phaseRunning {
			return
		}
		for _, q := range s.questions {
			if q.Subject == api.SubjectEdit && q.action == a && q.Open() {
				a.unseen = true // it is asked about once that one is answered
				return
			}
		}
		s.review(a, t.changed, false, true)
	})
}

// kept goes on after an action's changes were kept: what its processes changed
// since those were shown is asked about next.
func (s *Session) kept(a *action) {
	if a.unseen {
		a.unseen = false
		s.grow(a)
	}
}

// count fills in an edit's line counts, later.
func (s *Session) count(a *action, before, after *manifest.Manifest) {
	s.aside(func() func() {
		changed, err := s.files.between(context.Background(), before, after)
		if err != nil {
			return nil // they stay uncounted
		}
		added, removed := s.files.lines(context.Background(), changed)
		return func() {
			a.Added, a.Removed = added, removed
			s.record(nil, s.actionEvent(a, "counted"))
		}
	})
}
