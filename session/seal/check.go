package seal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"stepbox/session/api"
	"stepbox/store"
)

// checker looks at a session's seals while its events pass, in order. It remembers 40
// bytes of each.
type checker struct {
	session string
	key     told
	hashes  []store.Hash // of events 1, 2, …

	count   int
	last    *api.Seal // that is good
	after   int       // events after the one that it signs
	newest  uint64    // event that is no seal
	folder  string    // the file that knows
	knows   known     // what it said before any event was looked at
	met     bool      // the event that it knows has passed
	going   bool      // and its owner goes on after that
	dead    bool      // until he was killed, and nobody has looked since
	resumed bool      // the session does, by an event since
	unknown int       // events after that, of which it should know
	is      string    // the session as it was last recorded, but for what an apply counts
	phase   phase
	missing bool   // its end should be sealed
	vouched bool   // since it was started or resumed its own supervisor has sealed it
	unseen  bool   // before it was resumed nobody had
	by      string // who sealed its end
	late    bool   // an end of it was sealed so
	added   int    // events after a sealed end that nothing but a resume can follow on
	wrong   []string
}

// phase is how far a record is.
type phase int

const (
	open   phase = iota // it goes on, or was killed
	ended               // that it ended isn't sealed
	owed                // nor this, but its folder knows of the end: it can be
	closed              // it is: only applies, and that it goes on, may follow
)

func newChecker(st *store.Store, session string, key told) *checker {
	c := &checker{session: session, key: key}
	var err error
	c.folder = noteOf(st, session)
	if c.knows, err = readNote(c.folder); err != nil {
		c.wrong = append(c.wrong, fmt.Sprintf("what its folder knows of its newest seal can't be read: %v. It can be gone on with, though not known to be whole, without %s", err, c.folder))
	}
	return c
}

// known is what a session's folder knows of its record: the newest event that its owner
// had signed or, when it was through, recorded; and the one up to which he was about to
// record more. Nothing but a seal follows those, unless the session goes on by then.
type known struct {
	newest, next store.Hash // zero: none
}

// readNote reads that, whatever else is in the file's place by now.
func readNote(path string) (k known, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	} else if err != nil {
		return k, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return k, errors.Join(err, errors.New("it is no regular file"))
	}
	const most = 1000
	b, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil || len(b) == 0 { // as power loss may leave it: it knows as little as none
		return k, err
	}
	newest, next, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	if next != "" {
		k.next, _ = store.ParseHash(next) // what names no event lets none through
	}
	k.newest, err = store.ParseHash(newest)
	return k, err
}

func (c *checker) event(e store.Event) {
	c.hashes = append(c.hashes, e.Hash)
	if e.Kind == store.KindSeal {
		c.sealed(e)
	} else {
		c.after++
		c.newest = e.Seq
		if c.met && !c.going {
			c.unknown++
		}
		c.fact(e)
	}
	switch e.Hash {
	case c.knows.newest:
		c.met, c.going, c.resumed = true, c.last != nil && c.last.By == Going && e.Kind == store.KindSeal, false
	case c.knows.next: // it stands for all before it
		c.unknown, c.going = 0, c.resumed
	}
	if c.phase == ended && c.met && (c.going && c.dead || e.Hash == c.knows.next || e.Hash == c.knows.newest && e.Kind != store.KindSeal) {
		c.phase = owed
	}
}

func (c *checker) sealed(e store.Event) {
	c.count++
	s, err := c.seal(e)
	if err != nil {
		c.wrong = append(c.wrong, fmt.Sprintf("seal %d (event %d): %v", e.Key, e.Seq, err))
		return
	}
	c.last, c.after = &s, int(e.Seq-1-s.Of)
	c.vouched = c.vouched || s.By == Going || s.By == Final
	if s.By == Final || s.By == After && c.phase == open || s.By == Late && c.phase >= ended {
		c.phase, c.by, c.late = closed, s.By, c.late || s.By == Late
	}
}

// fact looks at an event that is no seal.
func (c *checker) fact(e store.Event) {
	if e.Kind == store.KindSession {
		var s api.Session
		_ = json.Unmarshal(e.Doc, &s) // what can't be read is found otherwise
		was := c.is
		s.Applies, s.Unapplied = 0, 0
		b, _ := json.Marshal(s) // it can always be
		c.is = string(b)
		switch {
		case e.Event == "session.resumed":
			c.unseen, c.late = c.unseen || !c.vouched, c.late || c.missing && c.phase != closed
			c.phase, c.vouched, c.resumed = open, false, true
		case c.phase == open && s.State == api.SessionEnded:
			c.phase, c.missing = ended, !c.key.From.IsZero() && !e.At.Before(c.key.From)
		case e.Event == "session.counted" && c.is == was:
			return
		}
	}
	if c.phase >= owed && e.Kind != store.KindApply {
		c.added++
	}
}

// seal says what is wrong with a seal.
func (c *checker) seal(e store.Event) (s api.Seal, err error) {
	if err := json.Unmarshal(e.Doc, &s); err != nil {
		return s, fmt.Errorf("it can't be read: %w", err)
	}
	if s.Of == 0 || s.Of >= e.Seq || s.Of > uint64(len(c.hashes)) || c.hashes[s.Of-1].String() != s.Hash {
		return s, fmt.Errorf("it is of another event %d than the one that is there", s.Of)
	}
	switch {
	case c.last != nil && s.Of <= c.last.Of:
		return s, fmt.Errorf("it is of event %d, which the one before it signs already: it was put there again", s.Of)
	case s.By != Going && s.Of < c.newest:
		return s, fmt.Errorf("it is of event %d, and others follow that: it was put there again, or they were added", s.Of)
	}
	pub, err := check(Message(c.session, s), s.Signature)
	if err != nil {
		return s, fmt.Errorf("its signature isn't good: %w", err)
	}
	name := ssh.FingerprintSHA256(pub)
	switch {
	case name != s.Signer:
		return s, fmt.Errorf("it names the key %s and %s signed it", api.Escape(api.Trim(s.Signer, 80)), name)
	case line(pub) != c.key.Public:
		return s, fmt.Errorf("it is signed by the key %s, which isn't yours: stepbox key shows that", name)
	}
	return s, nil
}

// over says what is wrong with, and what is to be known of, a session's seals.
func (c *checker) over(live bool) (wrong, remarks []string) {
	wrong = c.wrong
	if !c.knows.newest.IsZero() && !c.met {
		wrong = append(wrong, "it lacks the seal or the end that its folder knows as its newest: it was cut off before that or written anew, or the database is an older copy: then put back the newest")
	}
	if c.unknown > 0 {
		if now, err := readNote(c.folder); err != nil || now == c.knows { // else they were recorded meanwhile
			wrong = append(wrong, fmt.Sprintf("it has events after the newest that its folder knows, and which its owner didn't record: %d", c.unknown))
		}
	}
	if c.added > 0 {
		wrong = append(wrong, fmt.Sprintf("it has events after its end that aren't of an apply: %d", c.added))
	}
	switch {
	case c.phase == ended && c.missing && !live:
		wrong = append(wrong, "it ended, and no seal signs its end")
	case c.phase == owed && c.missing && !live:
		wrong = append(wrong, "it ended, and no seal signs its end, which its folder knows: --repair has it signed, where the key can be used again")
	case c.missing && (c.phase == ended || c.phase == owed): // and has a supervisor
		remarks = append(remarks, "it has ended, and no seal signs its end yet: who has it is still at it, so verify it again in a moment")
	case c.last == nil:
		remarks = append(remarks, "no seal signs it")
	case c.phase != closed && !live:
		remarks = append(remarks, fmt.Sprintf("no seal signs its end: the last one covers events up to %d", c.last.Of))
	case c.phase == closed && c.after > 0:
		remarks = append(remarks, fmt.Sprintf("it has events after the last seal: %d", c.after))
	}
	if c.last != nil && c.knows.newest.IsZero() && !live {
		remarks = append(remarks, "its folder doesn't know its newest seal (the file sealed): that it was cut back wouldn't be seen")
	}
	if c.late {
		remarks = append(remarks, "its end, or an apply of it, was signed only later: that what came since the seal before is what happened, no signature says")
	}
	if c.last != nil && (c.unseen || !c.vouched) {
		remarks = append(remarks, "nothing signed it while it went on, only who found it later")
	}
	return wrong, remarks
}

// lists says whether an event is one of the session's.
func (c *checker) lists(hash string) bool {
	return slices.ContainsFunc(c.hashes, func(h store.Hash) bool { return h.String() == hash })
}
