package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"stepbox/session/api"
	"stepbox/session/project"
)

// The events of an apply's life. An Event holds the apply as it is after it.
const (
	eventStarted = "apply.started"
	eventDone    = "apply.done"
	eventFailed  = "apply.failed"
	eventUndoing = "apply.undoing"
	eventStays   = "apply.stays" // it couldn't be undone
	eventUndone  = "apply.undone"
)

// Recover finishes what killed processes left half-way in project folders, or
// takes it back, and records what became of it. It says so in words, a line each.
// What other processes are at is left alone.
func (a *Applier) Recover(ctx context.Context) (said []string, err error) {
	mended, err := a.Journals.Recover(ctx)
	for _, m := range mended {
		if m.Err != nil {
			said = append(said, fmt.Sprintf("an apply to %s was interrupted and can't be mended yet: %s", api.Escape(m.Project), api.Escape(m.Err.Error())))
		}
		for _, l := range m.Left {
			said = append(said, fmt.Sprintf("in %s, %s: %s", api.Escape(m.Project), api.Escape(l.Path), api.Escape(l.Text)))
		}
	}
	failures := []error{err}
	ids, err := a.Store.Unsettled(ctx)
	failures = append(failures, err)
	for _, id := range ids {
		o, release, err := a.own(ctx, id)
		if err != nil {
			continue // somebody is at it, or it isn't sound, which who applies more of it is told
		}
		words, err := a.settle(ctx, id, o)
		release()
		said, failures = append(said, words...), append(failures, err)
	}
	return said, errors.Join(failures...)
}

// settle records what became of a session's applies whose process was killed.
// The session is held.
func (a *Applier) settle(ctx context.Context, id string, o Owner) (said []string, err error) {
	all, err := a.History.Applies(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, rec := range all {
		if rec.State != api.ApplyOpen && rec.State != api.ApplyUndoing {
			continue
		}
		j, err := a.Journals.Read(rec.Journal)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return said, err
		}
		event, how := "", ""
		switch undoing := rec.State == api.ApplyUndoing; {
		case err != nil && !undoing: // it ended before anything was written
			j.Phase = project.Failed
			fallthrough
		case j.Phase == project.Failed:
			rec.State, rec.Failure = api.ApplyFailed, "it was interrupted; the project folder is as it was"
			event, how = eventFailed, "was undone: the project folder is as it was before it"
		case undoing && j.Phase == project.Undone:
			rec.State, rec.UndoneAt = api.ApplyUndone, time.Now().UTC()
			event, how = eventUndone, "was being undone, which is finished now"
		case j.Phase == project.Done && undoing:
			rec.State = api.ApplyDone
			event, how = eventStays, "was being undone, which was given up: it stands"
		case j.Phase == project.Done:
			rec.State = api.ApplyDone
			event, how = eventDone, "is finished now"
			if rec.Commits { // fetching comes last, so that they may be there
				rec.Failure = "it was interrupted before it was known that its commits are fetched: ask for them again (--commits)"
				how += ", but for its commits: ask for them again (--commits)"
			}
		default:
			continue // Recover couldn't mend it yet, and said so
		}
		if err := o.Record(ctx, event, rec, a.counting(ctx, id, event)); err != nil {
			return said, err
		}
		said = append(said, fmt.Sprintf("apply %d of session %s, which was interrupted, %s", rec.ID, id, how))
	}
	return said, nil
}
