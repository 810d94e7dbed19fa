package apply

import (
	"context"
	"errors"

	"stepbox/session/api"
	"stepbox/session/ledger"
	"stepbox/store"
)

// Ended is the Owner of a session that no supervisor has any more.
type Ended struct {
	Store *store.Store
	ID    string
	Live  func(id string) bool // a supervisor has it after all
}

// Hold is Owner's: it locks the session.
func (e Ended) Hold(context.Context) (func(), error) {
	release, err := e.Store.Own(e.ID)
	switch {
	case errors.Is(err, store.ErrOwned):
		return nil, api.Problemf(api.CodeBusy, "another stepbox is at session %s just now; try again when it is through", e.ID)
	case err != nil:
		return nil, err
	case e.Live(e.ID):
		return nil, errors.Join(release(), api.Problemf(api.CodeBusy, "session %s has just begun to run again; try again", e.ID))
	}
	return func() { _ = release() }, nil // the lock goes with the file
}

// Settle is Owner's: the last checkpoint has all of it.
func (Ended) Settle(context.Context) error { return nil }

// Record is Owner's.
func (e Ended) Record(ctx context.Context, event string, a api.Apply, count func(*api.Session)) error {
	s, err := ledger.Doc[api.Session](ctx, e.Store, e.ID, store.KindSession, 0)
	if err != nil {
		return err
	}
	count(&s)
	return ledger.Append(ctx, e.Store, e.ID, api.Event{Kind: event, Apply: &a}, api.Event{Kind: "session.counted", Session: &s})
}
