package apply

import (
	"context"
	"errors"
	"time"

	"stepbox/session/api"
	"stepbox/session/ledger"
	"stepbox/store"
)

// Ended is the Owner of a session that no supervisor has any more.
type Ended struct {
	Store *store.Store
	ID    string
	Live  func(id string) bool // a supervisor has it after all

	// Foretell is told what is recorded, before it is; nil: nobody wants to know.
	Foretell func(ctx context.Context, events []store.Event) error
	// Seal signs what was recorded since the record was sealed last; nil: nobody does.
	Seal func(ctx context.Context, id string)
}

// A supervisor whose session has ended takes a moment to go away: patience while
// its clients fetch the end, and exiting when nothing says that it lives.
const (
	patience = 5 * time.Second
	exiting  = 300 * time.Millisecond
)

// Hold is Owner's: it locks the session.
func (e Ended) Hold(ctx context.Context) (func(), error) {
	release, err := e.own()
	for begun := time.Now(); errors.Is(err, store.ErrOwned) && ctx.Err() == nil; {
		if waited := time.Since(begun); waited > patience || waited > exiting && !e.Live(e.ID) {
			break
		}
		time.Sleep(10 * time.Millisecond)
		release, err = e.own()
	}
	switch {
	case errors.Is(err, store.ErrOwned):
		return nil, api.Problemf(api.CodeBusy, "another stepbox is at session %s just now; try again when it is through", e.ID)
	case err != nil:
		return nil, err
	}
	return func() {
		if e.Seal != nil {
			e.Seal(context.WithoutCancel(ctx), e.ID)
		}
		_ = release() // the lock goes with the file
	}, nil
}

// own locks the session, if no supervisor has it: one that starts has its note
// before it has the lock.
func (e Ended) own() (func() error, error) {
	release, err := e.Store.Own(e.ID)
	if err == nil && e.Live(e.ID) {
		return nil, errors.Join(store.ErrOwned, release())
	}
	return release, err
}

// Settle is Owner's: the last checkpoint has all of it.
func (Ended) Settle(context.Context) error { return nil }

// Record is Owner's.
func (e Ended) Record(ctx context.Context, event string, a api.Apply, count func(*api.Session)) error {
	s, err := ledger.Session(ctx, e.Store, e.ID)
	if err != nil {
		return err
	}
	count(&s)
	var tell func([]store.Event) error
	if e.Foretell != nil {
		tell = func(events []store.Event) error { return e.Foretell(ctx, events) }
	}
	return ledger.Append(ctx, e.Store, e.ID, tell, api.Event{Kind: event, Apply: &a}, api.Event{Kind: "session.counted", Session: &s})
}
