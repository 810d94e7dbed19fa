// Package seal signs records: the head of a session's chain of events, from time to
// time and at its end, with a key of the person's, and checks the record by it.
//
// Signatures are those of OpenSSH (PROTOCOL.sshsig), in the namespace "stepbox", so
// that ssh-keygen -Y verify checks them too. The key is in a folder that no sandbox
// sees. Whoever has the person's rights can use it: a seal shows what others changed,
// and by a head that was kept elsewhere anything.
//
// All of it may be called from any goroutine.
package seal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"stepbox/session/api"
	"stepbox/store"
)

// Namespace keeps a signature of ours from counting as one of something else.
const Namespace = "stepbox"

// Who asked for a seal.
const (
	Going = "going" // the supervisor, while the session lives
	Final = "final" // the supervisor, at the session's end
	After = "after" // who came later: the supervisor had died, or something was applied
	Late  = "late"  // as after, of an end that couldn't be signed by then, or an apply of which the folder doesn't know all
)

// Message is what a seal signs, to the letter.
func Message(session string, s api.Seal) []byte {
	return fmt.Appendf(nil, "stepbox seal 1\nsession %s\nevent %d\nhash %s\nby %s\nat %s\n", session, s.Of, s.Hash, s.By, s.At.UTC().Format(time.RFC3339Nano))
}

// Seal signs the newest event of a session and records that.
func Seal(ctx context.Context, st *store.Store, k Key, session, by string) (seq uint64, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot seal the record of session %s: %w", session, err)
		}
	}()
	ctx = context.WithoutCancel(ctx)
	last, err := st.LastEvent(ctx, session)
	if err != nil {
		return 0, err
	}
	head, err := st.Events(ctx, session, last, 1)
	if err != nil {
		return 0, err
	}
	if len(head) == 0 {
		return 0, store.ErrNotFound
	}
	s := api.Seal{N: 1, Of: head[0].Seq, Hash: head[0].Hash.String(), At: time.Now().UTC(), By: by}
	newest, err := st.Newest(ctx, session, store.KindSeal, 1)
	if err != nil {
		return 0, err
	}
	if len(newest) > 0 {
		var before api.Seal
		if err := json.Unmarshal(newest[0], &before); err != nil {
			return 0, err
		}
		s.N = before.N + 1
	}
	var unknown error // it is signed all the same
	if by != Going {  // what can't be signed now can be later: see Owed
		unknown = know(st, session, s.Hash)
	}
	signer, err := k.signer(ctx, by == Going || by == Final)
	if err == nil {
		s.Signer = ssh.FingerprintSHA256(signer.PublicKey())
		s.Signature, err = sign(signer, Message(session, s))
	}
	if err != nil && unknown == nil {
		return 0, &unsigned{err}
	} else if err != nil {
		return 0, errors.Join(err, unknown)
	}
	doc, err := json.Marshal(s)
	if err != nil {
		return 0, err
	}
	events, err := st.Append(ctx, session, store.Fact{Kind: store.KindSeal, Key: s.N, Event: "sealed", Doc: doc})
	if err != nil {
		return 0, err
	}
	return events[0].Seq, know(st, session, events[0].Hash.String())
}

// unsigned says that the key can't be used, by whatever session it is asked for. The
// session's folder knows then what would have been signed.
type unsigned struct{ error }

func (u *unsigned) Unwrap() error { return u.error }

// errWrong says that a record speaks against itself.
var errWrong = errors.New("nothing is signed of that")

// Stays says whether it isn't by trying again that a record is signed for which Later failed:
// nor can anything be added to it unnoticed.
func Stays(err error) bool {
	var u *unsigned
	return errors.As(err, &u) || errors.Is(err, errWrong)
}

// know tells a session's folder of its newest seal, or event: a record that is cut back to
// an older one agrees with itself. It is told only of what power loss doesn't take back.
func know(st *store.Store, session, what string) error {
	if err := st.Sync(); err != nil {
		return err
	}
	return store.WriteDurably(noteOf(st, session), []byte(what))
}

// noteOf is the file in a session's folder that holds what it knows.
func noteOf(st *store.Store, session string) string {
	return filepath.Join(st.SessionDir(session), "sealed")
}

// Foretell tells the folder of a session that is over which events its owner is about to
// record behind what it knows. Any others, by whoever writes the database alone, stay found,
// now and if these never come: nobody else makes events of that hash. It isn't told where
// something is recorded by then that it doesn't know.
func Foretell(ctx context.Context, st *store.Store, session string, events []store.Event) error {
	knows, err := readNote(noteOf(st, session))
	if err != nil || knows.newest.IsZero() {
		return err
	}
	for at, seq := events[0].Prev, events[0].Seq-1; at != knows.newest && at != knows.next; seq-- {
		before, err := st.Events(ctx, session, seq, 1)
		if err != nil || len(before) == 0 || before[0].Kind != store.KindSeal {
			return err
		}
		at = before[0].Prev
	}
	return know(st, session, events[0].Prev.String()+" "+events[len(events)-1].Hash.String())
}

// Later seals what nobody is at any more, if there is something new: what a killed
// supervisor left, whose output it packs, or an apply. The caller owns the session.
// What speaks against itself, or ended without a seal and isn't Owed one, it doesn't vouch
// for, unless nobody has looked since its supervisor died: it may have ended just then.
func Later(ctx context.Context, st *store.Store, k Key, session string, dead bool) error {
	return later(ctx, st, k, session, dead, func(phase) bool { return true })
}

// Owed is Later for a session whose end couldn't be signed, as its folder knows, and for
// no other. One that somebody else owns goes on, or is being applied: it waits.
func Owed(ctx context.Context, st *store.Store, k Key, session string) error {
	release, err := st.Own(session)
	if errors.Is(err, store.ErrOwned) {
		return nil
	} else if err != nil {
		return err
	}
	return errors.Join(later(ctx, st, k, session, false, func(p phase) bool { return p == owed }), release())
}

func later(ctx context.Context, st *store.Store, k Key, session string, dead bool, is func(phase) bool) error {
	fail := func(err error) error {
		return fmt.Errorf("cannot seal the record of session %s: %w", session, err)
	}
	c, err := look(ctx, st, k, session, dead)
	if err != nil {
		return fail(err)
	}
	by := After
	switch wrong, _ := c.over(true); {
	case !is(c.phase):
		return nil
	case len(wrong) > 0:
		return fail(fmt.Errorf("%s: %w", wrong[0], errWrong))
	case c.phase == ended:
		return fail(fmt.Errorf("it ended, and no seal signs its end: %w", errWrong))
	case c.phase == closed && c.after == 0:
		return nil
	case c.phase == owed:
		by = Late
	case c.phase == open:
		j, err := st.Journal(session)
		if err == nil {
			err = j.Close()
		}
		if err != nil {
			return fail(err)
		}
	}
	_, err = Seal(ctx, st, k, session, by)
	return err
}

// look has a session's events pass a checker.
func look(ctx context.Context, st *store.Store, k Key, session string, dead bool) (*checker, error) {
	key, err := k.told()
	if err != nil {
		return nil, err
	}
	c := newChecker(st, session, key)
	c.dead = dead
	var before store.Hash
	for {
		const page = 1000
		events, err := st.Events(ctx, session, uint64(len(c.hashes))+1, page)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			if !e.Follows(before) {
				c.wrong = append(c.wrong, fmt.Sprintf("event %d isn't what its hash says, or doesn't follow on the one before it: it was changed", e.Seq))
			}
			before = e.Hash
			c.event(e)
		}
		if len(events) < page {
			return c, nil
		}
	}
}

func sign(s ssh.Signer, message []byte) (string, error) {
	sig, err := sshsig.Sign(bytes.NewReader(message), s, sshsig.HashSHA512, Namespace)
	if err != nil {
		return "", fmt.Errorf("cannot sign with the key %s: %w", ssh.FingerprintSHA256(s.PublicKey()), err)
	}
	return string(sshsig.Armor(sig)), nil
}

// check says which key has signed a message.
func check(message []byte, signature string) (ssh.PublicKey, error) {
	sig, err := sshsig.Unarmor([]byte(signature))
	if err != nil {
		return nil, fmt.Errorf("cannot read the signature: %w", err)
	}
	return sig.PublicKey, sshsig.Verify(bytes.NewReader(message), sig, sig.PublicKey, sig.HashAlgorithm, Namespace)
}
