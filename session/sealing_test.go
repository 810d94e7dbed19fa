package session_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"stepbox/session"
	"stepbox/session/api"
	"stepbox/session/ledger"
	"stepbox/session/seal"
	"stepbox/store"
)

// A session is sealed while it lives and, when all else is recorded, at its end. That it
// can't be is said once and holds nothing up.
func TestSealedWhileItLives(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]bool{"with a key": false, "without one": true} {
		t.Run(name, func(t *testing.T) {
			w := start(t, api.ModeWatch, "sleep 600")
			var mu sync.Mutex
			var asked []string
			var ended bool // when the last was asked for
			first := make(chan struct{})
			st, id := w.store, w.ID()
			w.config.Seal = func(ctx context.Context, by string) (uint64, error) {
				mu.Lock()
				defer mu.Unlock()
				if asked = append(asked, by); len(asked) == 1 {
					close(first)
				}
				row, err := ledger.Session(ctx, st, id)
				ended = row.State == api.SessionEnded
				last, lerr := st.LastEvent(ctx, id)
				err = errors.Join(err, lerr)
				if fails {
					err = errors.New("there is no key")
				}
				return last, err
			}
			w.again(func(string) {})
			<-first
			if fails {
				w.happened("the warning", func(e api.Event) bool {
					return e.Note != nil && e.Note.Warn && strings.Contains(e.Note.Text, "isn't sealed: there is no key")
				})
			}
			_, err := w.Kill(t.Context())
			w.must(err)
			if s := w.over(); s.EndedBy != api.ByPerson {
				t.Errorf("it ended by %s: %s", s.EndedBy, s.Reason)
			}
			mu.Lock()
			defer mu.Unlock()
			if want := []string{seal.Going, seal.Final}; !slices.Equal(asked, want) || !ended {
				t.Errorf("seals were asked for %q, want %q; at the last the end was recorded: %v", asked, want, ended)
			}
			notes, err := w.store.Docs(t.Context(), w.ID(), store.KindNote, 0, 0)
			w.must(err)
			said := 0
			for _, n := range notes {
				if strings.Contains(string(n), "isn't sealed") {
					said++
				}
			}
			if (said == 1) != fails {
				t.Errorf("%d notes tell of it", said)
			}
		})
	}
}

// Of a session that is over before its first seal could be made it is said, too, that it
// isn't sealed.
func TestUnsealedInAHurry(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeWatch, "read x")
	begun, over := make(chan struct{}), make(chan struct{})
	w.config.Seal = func(ctx context.Context, by string) (uint64, error) {
		if by == seal.Going {
			close(begun)
			select {
			case <-over:
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		return 0, errors.New("there is no key")
	}
	w.again(func(string) {})
	<-begun
	w.enter()
	for err := error(nil); !errors.Is(err, session.ErrEnded); { // then its end is under way
		_, err = w.Keep(t.Context(), 1)
	}
	close(over)
	w.happened("the warning", func(e api.Event) bool {
		return e.Note != nil && e.Note.Warn && strings.Contains(e.Note.Text, "isn't sealed: there is no key")
	})
	if s := w.over(); s.State != api.SessionEnded || s.EndedBy != api.ByAgent {
		t.Errorf("it is %s, ended by %s", s.State, s.EndedBy)
	}
}
