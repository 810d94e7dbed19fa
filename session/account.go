package session

import (
	"cmp"
	"context"
	"slices"
	"time"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/loop"
)

// quietTime is how long the files must rest before changes become an action's
// or an edit.
const quietTime = 200 * time.Millisecond

// restless is how long they may go on moving without that, where no command runs whose
// changes they could be.
const restless = 2 * time.Second

// maxHalfway bounds how often, at a rest, a file is waited for that has nothing in it, or only a
// temporary name yet.
const maxHalfway = 10

// account records a checkpoint and says whose the changes since the last one
// are, of those that can have run; see files.Whose.
func (s *Session) account(t files.Taken, ran map[int]bool, settles bool, then func(*files.Checkpoint, error)) {
	s.overOthers(t, func(over map[int]bool) { s.accounted(t, ran, settles, over, then) })
}

// overOthers says in step mode which of the commands that live would be given changes of what others have changed since they began, or of
// what of their own a person is shown. Told with what a command changes since it began, it could be nothing, or look like
// something else.
func (s *Session) overOthers(t files.Taken, then func(over map[int]bool)) {
	alive := s.actions.alive()
	if s.info.Mode != api.ModeStep || len(t.Changed) == 0 || len(alive) == 0 {
		then(nil)
		return
	}
	unshown, tells := make(map[int]files.Past, len(alive)), make(map[*action]int64, len(alive))
	for _, a := range alive {
		unshown[a.N], tells[a] = files.Past{Before: a.Before, Spans: a.since(a.tells)}, a.tells
	}
	last := s.line.Last.Manifest
	s.loop.Aside(func() func() {
		over := make(map[int]bool)
		for n, p := range unshown {
			over[n] = s.files.OverOthers(context.Background(), t.Changed, last, p.Before, p.Spans)
		}
		return func() {
			for a, to := range tells {
				if a.tells != to { // more is being shown by now
					s.overOthers(t, then)
					return
				}
			}
			then(over)
		}
	})
}

// since are the spans after a checkpoint of an action's changes that are no other's as well.
func (a *action) since(checkpoint int64) (out []files.Span) {
	for _, s := range a.alone {
		if s.From = max(s.From, checkpoint); s.From < s.To {
			out = append(out, s)
		}
	}
	return out
}

func (s *Session) accounted(t files.Taken, ran map[int]bool, settles bool, over map[int]bool, then func(*files.Checkpoint, error)) {
	s.moved = false
	var events []api.Event
	cp := s.line.Last
	switch {
	case !t.Same:
		last := cp
		cp = s.newCheckpoint(t.Root, t.Manifest, last.ID)
		s.line.Last = cp
		events = append(events, s.line.Event(cp, 0))
		if len(t.Changed) > 0 {
			events = append(events, s.assign(last, cp, t.Changed, ran, settles, over)...)
		}
	case t.Manifest != cp.Manifest: // read again, to the same end
		cp = &files.Checkpoint{ID: cp.ID, Root: cp.Root, Manifest: t.Manifest}
		s.line.Last = cp
	}
	s.accountant.Begin(t.Since, s.roster.ownerOf)
	events = append(events, s.survivors()...)
	s.keepLooking()
	if len(events) == 0 {
		then(cp, nil)
		return
	}
	s.record(func(err error) { then(cp, err) }, events...)
}

// newCheckpoint gives a state its number. From is the one that it goes on from:
// the one before it, or the one that a roll back restored.
func (s *Session) newCheckpoint(root content.Hash, m *manifest.Manifest, from int64) *files.Checkpoint {
	cp := s.line.Number(root, m, from)
	s.files.Remember(cp)
	return cp
}

// assign gives changes to those who made them. Ran is who can have run since the
// last checkpoint; nil for anyone. What the agent may have made is asked about in step mode, unless that only
// settles for a person what there is, and so is what is over others' changes.
func (s *Session) assign(last, cp *files.Checkpoint, changed []diff.Change, ran map[int]bool, settles bool, over map[int]bool) []api.Event {
	theirs, shared := files.Whose(s.writers(), ran, time.Now(), s.info.Mode == api.ModeStep && !settles)
	alone := len(theirs) == 1
	if len(theirs) > 0 { // those of which it could be told what they changed; else it is an edit
		all := slices.Concat(theirs, shared)
		if theirs = slices.DeleteFunc(theirs, func(n int) bool { return over[n] }); len(theirs) == 0 {
			shared = all
		}
	}
	if len(theirs) == 0 {
		return s.edited(last, cp, changed, shared)
	}
	for _, n := range theirs {
		a := s.actions.at(n)
		a.made(last.ID, cp.ID)
		a.Shared = a.Shared || len(theirs) > 1
		if alone {
			a.alone = extended(a.alone, last.ID, cp.ID)
		}
		s.wrote(a, changed)
		if a.State == api.ActionEnded && !a.untold {
			s.grow(a)
		}
	}
	return nil
}

// writers are the commands that can have made changes. What a roll back ended wrote nothing since.
func (s *Session) writers() []files.Command {
	return slices.DeleteFunc(s.actions.commands(), func(c files.Command) bool { return s.actions.at(c.N).undone })
}

// made notes that what changed between two checkpoints is the action's.
func (a *action) made(from, to int64) { a.spans = extended(a.spans, from, to) }

// extended are some spans and one that comes after them.
func extended(spans []files.Span, from, to int64) []files.Span {
	if n := len(spans); n > 0 && spans[n-1].To == from {
		spans[n-1].To = to
		return spans
	}
	return append(spans, files.Span{From: from, To: to})
}

// survivors notes which ended actions still have processes, and which have none
// any more.
func (s *Session) survivors() []api.Event {
	processes, known := s.accountant.Left()
	if !known {
		return nil
	}
	left := make(map[*action]int)
	for _, a := range s.actions.alive() {
		if a.lingers {
			left[a] = 0
		}
	}
	for n, count := range processes {
		if a := s.actions.at(n); a != nil && a.State == api.ActionEnded {
			left[a] = count
		}
	}
	var events []api.Event
	for a, n := range left {
		if a.LeftRunning == n {
			continue
		}
		// That look may be from when the action still ran.
		if n = len(s.roster.tree(a)); a.LeftRunning != n {
			a.LeftRunning, a.lingers = n, n > 0
			events = append(events, s.standing(a, "left")...)
		}
	}
	return events
}

// edited makes an edit action out of changes that are the agent's own, or may
// be: shared are the actions that may have made them as well.
func (s *Session) edited(before, after *files.Checkpoint, changed []diff.Change, shared []int) []api.Event {
	a := &action{profile: s.profile}
	now := time.Now().UTC()
	s.actions.add(a)
	a.Kind, a.StartedAt, a.EndedAt = api.KindEdit, now, now
	a.Before, a.After = before.ID, after.ID
	a.made(before.ID, after.ID)
	a.Verdict, a.By = api.Allow, "rule"
	a.Files = len(changed)
	for _, n := range shared {
		a.Shared, s.actions.at(n).Shared = true, true
		a.SharedWith = append(a.SharedWith, n)
	}
	a.Title = "edit " + fewOf(changed, func(c diff.Change) string { return c.Path })
	s.claimedEdit(a, changed)
	if err := a.to(api.ActionEnded); err != nil {
		s.fail(err)
		return nil
	}
	if err := a.review(api.ReviewOpen); err != nil {
		s.fail(err)
		return nil
	}
	if s.info.Mode == api.ModeStep {
		s.reviewEdit(a, changed)
	} else {
		s.told(a, func(t files.Told) { s.counted(a, t) })
	}
	s.countSoon()
	return []api.Event{s.actionEvent(a, "edited")}
}

// reviewEdit asks in step mode what becomes of an edit. The agent is frozen
// meanwhile: nothing else holds it.
func (s *Session) reviewEdit(a *action, changed []diff.Change) {
	s.frozen(a, func(thaw func() error) {
		listed := s.files.List(changed)
		s.told(a, func(t files.Told) {
			s.counted(a, t)
			q := s.sharedBy(reviewOf(a, listed, a.After))
			q.thaw = thaw
			if a.Review == api.ReviewOpen {
				s.open(q)
			} else { // a roll back came first
				s.unfreeze(q)
			}
			s.asksEdit()
		})
	})
}

// frozen goes on with the agent frozen, to ask about an action's changes. Then asks, and says so with asksEdit.
func (s *Session) frozen(a *action, then func(thaw func() error)) {
	s.edits++
	s.loop.Aside(func() func() {
		thaw, err := s.freezer.Freeze(context.Background())
		return func() {
			if err != nil && s.loop.Now() < loop.Stopping {
				s.note(true, "the agent runs on while #%d waits: it can't be frozen: %v", a.N, err)
			}
			then(thaw)
		}
	})
}

// asksEdit says that one of the edits that are about to be asked about now is.
func (s *Session) asksEdit() {
	s.edits--
	s.pastEdits()
}

// pastEdits has what waits for edits to be asked about, or answered, look again. The agent goes on after that:
// what it waits for has begun by then, or asks about what is there, and not about what is changed in between.
func (s *Session) pastEdits() {
	if s.edits > 0 {
		return
	}
	behind := s.behind
	s.behind = nil
	if s.loop.Now() < loop.Draining {
		for _, then := range behind {
			then()
		}
	}
	if len(s.thaws) > 0 {
		s.loop.Alone(func() error { return nil }, func(_ error, next func()) {
			if s.edits == 0 {
				s.thawAll()
			}
			next()
		})
	}
}

// thawAll lets the agent go on, unless a question still waits.
func (s *Session) thawAll() {
	thaws := s.thaws
	s.thaws = nil
	for _, thaw := range thaws {
		if err := thaw(); err != nil && s.loop.Now() < loop.Stopping {
			s.note(true, "cannot let the agent go on: %v", err)
		}
	}
	s.advance() // all have run a little, to be thawed
}

// touched is the wake-up of the watcher: files moved. Once they rest it is found
// out whose doing it was.
func (s *Session) touched() {
	s.files.Bump()
	s.lastMove = time.Now()
	if now := s.lastMove; !s.moved || len(s.actions.alive()) > 0 && (s.info.Mode != api.ModeStep || files.Undecided(s.writers(), nil, now) > 0) {
		s.movedAt = now
	}
	s.moved = true
	wait := max(0, min(quietTime, restless-time.Since(s.movedAt)))
	if s.quiet == nil {
		s.quiet = time.AfterFunc(quietTime, func() {
			s.loop.Submit(func() {
				if s.loop.Now() == loop.Running {
					s.checkpoint(nil) // a failure ends the session
				}
			})
		})
		return
	}
	s.quiet.Reset(wait)
}

// finish ends an action whose leaders have exited: what it changed is known
// before it is shown as done.
func (s *Session) finish(a *action, exit *api.Exit) {
	s.notBeyond(a)
	if a.Housekeeping {
		a.EndedAt, a.Exit = time.Now().UTC(), exit
		if err := a.to(api.ActionEnded); err != nil {
			s.fail(err)
			return
		}
		a.shed(&s.roster)
		s.record(nil, s.actionEvent(a, "ended"))
		return
	}
	s.limitEnded(a, exit)
	ended := time.Now().UTC()
	done := func(cp *files.Checkpoint, err error) {
		if err != nil || a.State != api.ActionRunning {
			return // the session ends, and ends the action with it
		}
		if a.leaders > 0 { // something has joined it meanwhile
			a.exiting = false
			return
		}
		left := len(s.roster.tree(a))
		if err := a.to(api.ActionEnded); err != nil {
			s.fail(err)
			return
		}
		s.trapped(a)
		a.EndedAt, a.Exit, a.After, a.LeftRunning, a.lingers, a.untold = ended, exit, cp.ID, left, left > 0, true
		s.edits++
		s.told(a, func(t files.Told) {
			s.recordEnd(a, t)
			s.asksEdit()
		})
	}
	if a.atExit != nil {
		done(a.atExit, nil)
		return
	}
	a.exiting = true
	s.checkpoint(done)
}

// limitEnded says of an action that has exited so that it was a limit that ended it.
func (s *Session) limitEnded(a *action, exit *api.Exit) {
	if exit == nil || a.Reason != "" {
		return
	}
	if why := s.starvation(exit.Code, exit.Signal); why != "" {
		s.endedByLimit(a, why)
		s.note(true, "#%d is ended: %s", a.N, why)
	}
}

// recordEnd records the end of an action whose changes are known.
func (s *Session) recordEnd(a *action, t files.Told) {
	if t.Err != nil {
		s.note(true, "cannot tell what #%d changed: %v", a.N, t.Err)
	}
	s.own(a, t)
	a.untold = false
	s.keepByRule(a, t)
	a.Housekeeping = a.upkeep()
	a.shed(&s.roster)
	s.record(nil, s.actionEvent(a, "ended"))
	s.countSoon()
	s.advance() // its parent has run, to notice its end
	s.askReview(a, t)
	if n := len(a.spans); n > 0 && a.spans[n-1].To > t.To && t.Err == nil { // it left something running, which wrote meanwhile
		s.grow(a)
	}
}

// keepByRule marks what an action changed as reviewed where no person needs to be asked.
func (s *Session) keepByRule(a *action, t files.Told) {
	if why := a.keptByRule(s.info.Mode, t.Trust); why != "" { // recorded and shown as any other
		a.Kept, a.KeptTo = why, t.To
		if err := a.review(api.ReviewKept); err != nil {
			s.fail(err)
		}
	}
}

// askReview asks in step mode about what an action changed, once what it is asked about already is answered.
func (s *Session) askReview(a *action, t files.Told) {
	if a.Review != api.ReviewOpen || s.info.Mode != api.ModeStep || s.loop.Now() != loop.Running {
		return
	}
	if s.questions.edits(a) != nil {
		a.unseen = true
		return
	}
	s.open(reviewOf(a, t.Listed, t.To))
}

// askRunning asks in step mode what becomes of what commands that run have changed so far, and says whether there
// is such a command: something else is about to start, and may obey what they wrote. They stand meanwhile.
func (s *Session) askRunning() (asks bool) {
	for _, a := range s.actions.alive() {
		if !a.hasMore() {
			continue
		}
		asks = true
		s.frozen(a, func(thaw func() error) {
			s.checkpoint(func(*files.Checkpoint, error) { // of what it wrote until it stood; a failure ends the session
				s.told(a, func(t files.Told) {
					s.soFar(a, t)
					if q := s.questions.edits(a); q != nil && q.thaw == nil {
						q.thaw = thaw
					} else if thaw != nil {
						s.thaws = append(s.thaws, thaw)
					}
					s.asksEdit()
				})
			})
		})
	}
	return asks
}

// hasMore says whether the action runs and has changed more than was looked at.
func (a *action) hasMore() bool {
	n := len(a.spans)
	return a.State == api.ActionRunning && n > 0 && a.spans[n-1].To > a.toldTo
}

// soFar is what a command that runs has changed.
func (s *Session) soFar(a *action, t files.Told) {
	if t.Err != nil {
		s.note(true, "cannot tell what #%d changed so far: %v", a.N, t.Err)
		a.toldTo = max(a.toldTo, a.tells)
	}
	s.own(a, t)
	s.keepByRule(a, t)
	s.record(nil, s.actionEvent(a, "counted"))
	s.askReview(a, t)
}

// upkeep says whether an action that has just ended was the agent's own upkeep, which is folded away: its
// own program started it and not a shell, nobody was asked, and it changed and reached nothing.
func (a *action) upkeep() bool {
	return a.itself && a.By == "rule" && a.agent == nil && a.question == nil && a.Review == "" && a.Files == 0 && a.LeftRunning == 0 && !a.reached
}

// keptByRule says why nobody needs to be asked about the changes of an action that
// has just ended; "": somebody does, or nothing waits for a review.
func (a *action) keptByRule(m api.Mode, t files.Trust) string {
	if a.Review != api.ReviewOpen || !a.ruled(m) || m == api.ModeStep && !a.person {
		return "" // and of what passed by a rule nobody has seen that it may change anything
	}
	return files.KeptByRule(&a.Action, a.keeps, a.lingers, t)
}

// ruled says whether a rule may keep an action's changes. Nobody is asked about
// any when nothing is held and they weren't approved ahead.
func (a *action) ruled(m api.Mode) bool {
	return a.Kind == api.KindCommand && (m == api.ModeStep || a.keeps)
}

// own gives an action its changes, which then wait for a review: again, when
// those before were kept.
func (s *Session) own(a *action, t files.Told) {
	if t.Err != nil || t.To < a.toldTo {
		return // what is known is newer
	}
	a.toldTo, a.After = t.To, t.After
	if a.agent != nil || a.Review == api.ReviewRolledBack && !a.untold {
		return
	}
	a.Files, a.Added, a.Removed, a.Effects = len(t.Changed), t.Added, t.Removed, t.Effects
	switch {
	case len(t.Changed) == 0 || a.reviewed(t.To):
	case a.Review == api.ReviewRolledBack: // before it was told
		a.Reviewed = cmp.Or(a.Reviewed, api.ReviewOpen)
	default:
		if err := a.review(api.ReviewOpen); err != nil {
			s.fail(err)
		}
	}
}

// reviewed says whether what an action changed until a checkpoint waits for a review already, or was kept.
func (a *action) reviewed(until int64) bool {
	return a.Review == api.ReviewOpen || a.Review == api.ReviewKept && until <= a.KeptTo
}

// grow counts what an ended action's processes have changed by now, and asks
// about it.
func (s *Session) grow(a *action) {
	s.edits++
	s.told(a, func(t files.Told) {
		defer s.asksEdit()
		if t.Err != nil {
			s.note(true, "cannot tell what #%d left running changed: %v", a.N, t.Err)
			return
		}
		s.own(a, t)
		s.record(nil, s.actionEvent(a, "counted"))
		s.countSoon()
		s.askReview(a, t)
	})
}

// counted fills in an edit's line counts and words; they may stay uncounted.
func (s *Session) counted(a *action, t files.Told) {
	if t.Err == nil {
		a.Added, a.Removed, a.Effects = t.Added, t.Removed, t.Effects
		s.record(nil, s.actionEvent(a, "counted"))
	}
}
