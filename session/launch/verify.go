package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/seal"
	"stepbox/store"
)

// keyIn is the key that seals records.
func keyIn(dir string, st *store.Store) seal.Key {
	return seal.Key{Dir: filepath.Join(dir, "keys"), Used: func(ctx context.Context) (bool, error) { return st.Any(ctx, store.KindSeal) }}
}

func verifierOf(st *store.Store, k seal.Key, live registry) seal.Verifier {
	return seal.Verifier{
		Store: st, Key: k, Live: func(id string) bool { return live.live(id) || st.Owned(id) },
		References: func() store.References { return files.References(st) },
	}
}

// sound keeps what follows on a session from being made of a record that isn't what was
// recorded: it would be signed.
func sound(ctx context.Context, v seal.Verifier, verb, id string) error {
	err := v.Sound(ctx, id)
	var wrong *api.Problem
	if errors.As(err, &wrong) {
		return &Error{Code: 1, Message: fmt.Sprintf("cannot %s: %s. Without that, %s", verb, wrong.Message, elsewhere(api.Session{ID: id}))}
	}
	return err
}

// sealAfter seals what was recorded of a session since it was sealed last. One that can't
// be sealed says so when it is verified.
func sealAfter(ctx context.Context, st *store.Store, k seal.Key, id string) error {
	last, err := st.LastEvent(ctx, id)
	if err != nil || last == 0 {
		return err
	}
	head, err := st.Events(ctx, id, last, 1)
	if err != nil || len(head) > 0 && head[0].Kind == store.KindSeal {
		return err
	}
	return seal.Later(ctx, st, k, id, false)
}

// undertaker seals what sessions whose supervisors died left, and takes their notes away
// only then: whoever comes next sees by the note that it is still to be done.
type undertaker struct {
	store *store.Store
	key   seal.Key
	live  registry
	clean bool // nothing else is left of any
}

// bury packs what the sessions have of their terminals and seals what is recorded of them,
// as who finds it. One that goes on already isn't touched.
func (u undertaker) bury(ctx context.Context, dead map[string]note) error {
	var failures []error
	for id, n := range dead {
		if err := u.one(ctx, id, n); err != nil && ctx.Err() == nil {
			fmt.Fprintf(os.Stderr, "stepbox: %s; the next command tries again\n", api.Escape(err.Error()))
			if failures = append(failures, err); errors.Is(err, store.ErrBusy) { // so would be the others
				break
			}
		}
	}
	return errors.Join(failures...)
}

func (u undertaker) one(ctx context.Context, id string, n note) error {
	if last, err := u.store.LastEvent(ctx, id); err != nil {
		return err
	} else if last > 0 { // else it died before it had a row
		release, err := u.store.Own(id)
		if errors.Is(err, store.ErrOwned) {
			return nil
		} else if err != nil {
			return err
		}
		defer func() { _ = release() }()
		if err := seal.Later(ctx, u.store, u.key, id, true); ctx.Err() != nil || err != nil && !seal.Stays(err) {
			return err
		} else if err != nil {
			fmt.Fprintf(os.Stderr, "stepbox: %s; stepbox verify %s says more\n", api.Escape(err.Error()), id)
		}
	}
	if !u.clean || u.live.forget(id) != nil { // it isn't over, or another command was quicker
		return nil
	}
	if n.Folder != "" { // it couldn't say so itself
		Tell(ctx, api.News{Kind: api.NewsEnded, From: api.Neighbour{ID: id, Name: n.Name, Folder: n.Folder}})
	}
	return nil
}
