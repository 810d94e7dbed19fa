package seal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"

	"stepbox/session/api"
)

// Change has another key sign from now on: a new one, or one that the ssh-agent has.
// The key before it signs it, so that it can be told that its owner did this, and
// stays listed with the time until which it counts.
func (r Ring) Change(ctx context.Context, to api.KeyRequest) (out api.Key, err error) {
	// An ssh-agent may be asking its person, for which nobody else waits.
	before, err := r.list()
	if err != nil {
		return out, err
	}
	if err := r.timely(ctx, before); err != nil {
		return out, err
	}
	next, err := r.next(ctx, to)
	if err != nil {
		return out, err
	}
	if n := len(before); n > 0 {
		if before[n-1].Public == next.Public {
			return out, fmt.Errorf("cannot change to the key %s: it signs already", to.Use)
		}
		if !to.Lost {
			if next.Endorsed, err = r.endorse(ctx, before[n-1], next); err != nil {
				return out, errors.Join(fmt.Errorf("cannot have the key before it sign the new key; --lost goes on without, if that key is lost: %w", err), r.forget(next))
			}
		}
	}
	err = r.change(func(list []key) ([]key, error) {
		if !slices.Equal(list, before) {
			return nil, errors.Join(errors.New("cannot change the key: it was changed meanwhile; stepbox key lists what there is"), r.forget(next))
		}
		if n := len(list); n > 0 {
			list[n-1].Until = next.From
		}
		return append(list, next), nil
	})
	if err != nil {
		return out, err
	}
	return next.api()
}

// timely says that the clock is behind what was signed or made by it: that would count no
// more, for good, once the key is retired at the time that it shows.
func (r Ring) timely(ctx context.Context, list []key) error {
	if len(list) == 0 {
		return nil
	}
	what, at, rm := "the key that signs now", list[len(list)-1].From, ""
	if r.Newest != nil {
		session, sealed, err := r.Newest(ctx)
		if err != nil {
			return err
		}
		if sealed.After(at) {
			session = api.Escape(session)
			what, at, rm = "a seal of session "+session, sealed, ", or remove that session (stepbox rm "+session+")"
		}
	}
	if now := time.Now(); at.After(now) {
		return fmt.Errorf("cannot change the key at %s: %s is of %s, and would count no more. Set the clock right, or wait until then%s",
			now.UTC().Format(time.DateTime), what, at.UTC().Format(time.DateTime), rm)
	}
	return nil
}

// forget removes the file of a key that was made and isn't listed.
func (r Ring) forget(k key) error {
	if k.File == "" {
		return nil
	}
	return os.Remove(filepath.Join(r.Dir, k.File))
}

func (r Ring) next(ctx context.Context, to api.KeyRequest) (key, error) {
	if to.Use == "" {
		return r.make()
	}
	s, done, err := r.fromAgent(ctx, func(pub ssh.PublicKey) bool { return ssh.FingerprintSHA256(pub) == to.Use }, to.Use)
	if err != nil {
		return key{}, err
	}
	defer done()
	return key{Public: line(s.PublicKey()), From: time.Now().UTC()}, nil
}

// endorsement is what a key signs of the one that follows it.
func (k key) endorsement() []byte {
	return fmt.Appendf(nil, "stepbox key 1\nkey %s\nfrom %s\n", k.Public, k.From.UTC().Format(time.RFC3339Nano))
}

func (r Ring) endorse(ctx context.Context, was, next key) (string, error) {
	s, done, err := r.open(ctx, was)
	if err != nil {
		return "", err
	}
	defer done()
	return sign(s, next.endorsement())
}

// trusted says when each key counted, by its line, and what is odd about the list.
func trusted(list []key) (when map[string][]key, remarks []string, err error) {
	when = make(map[string][]key)
	for i, k := range list {
		pub, bad := k.public()
		if bad != nil {
			err = errors.Join(err, fmt.Errorf("key %d of the list can't be read: %w", i+1, bad))
			continue
		}
		name := ssh.FingerprintSHA256(pub)
		when[line(pub)] = append(when[line(pub)], k)
		if i == 0 {
			continue
		}
		if k.Endorsed == "" {
			remarks = append(remarks, fmt.Sprintf("no key before it has signed the key %s", name))
			continue
		}
		by, bad := check(k.endorsement(), k.Endorsed)
		if bad == nil && line(by) != list[i-1].Public {
			bad = errors.New("another key did")
		}
		if bad == nil && !list[i-1].Until.Equal(k.From) {
			bad = errors.New("the time until which that counts was changed")
		}
		if bad != nil {
			err = errors.Join(err, fmt.Errorf("the key %s isn't signed by the one before it: %w", name, bad))
		}
	}
	return when, remarks, err
}
