package seal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/crypto/ssh"

	"stepbox/session/api"
)

// Change has another key sign from now on: a new one, or one that the ssh-agent has.
// The key before it signs it, so that it can be told that its owner did this, and
// stays listed with the time until which it counts.
func (r Ring) Change(ctx context.Context, to api.KeyRequest) (out api.Key, err error) {
	err = r.change(func(list []key) ([]key, error) {
		next, err := r.next(ctx, to, len(list))
		if err != nil {
			return nil, err
		}
		if n := len(list); n > 0 {
			was := &list[n-1]
			if was.Public == next.Public {
				return nil, fmt.Errorf("cannot change to the key %s: it signs already", to.Use)
			}
			if was.Until = next.From; !to.Lost {
				if next.Endorsed, err = r.endorse(ctx, *was, next); err != nil {
					return nil, fmt.Errorf("cannot have the key before it sign the new key; --lost goes on without, if that key is lost: %w", err)
				}
			}
		}
		out, err = next.api()
		return append(list, next), err
	})
	return out, err
}

func (r Ring) next(ctx context.Context, to api.KeyRequest, n int) (key, error) {
	if to.Use == "" {
		return r.make(n + 1)
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
		if bad != nil {
			err = errors.Join(err, fmt.Errorf("the key %s isn't signed by the one before it: %w", name, bad))
		}
	}
	return when, remarks, err
}
