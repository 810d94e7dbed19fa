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
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"stepbox/session/api"
	"stepbox/store"
)

// lateness is how much later than it was retired a key may sign: a supervisor that had
// just read the list.
const lateness = time.Minute

// checker looks at a session's seals while its events pass, in order. It remembers 40
// bytes of each.
type checker struct {
	session string
	keys    map[string][]key // by their lines: one may be used again
	hashes  []store.Hash     // of events 1, 2, …

	count   int
	last    *api.Seal // that is good
	after   int       // events after that
	keyed   time.Time // the first key was made: what ended since is sealed
	noted   string    // the newest seal that its folder knows of, or an end that isn't sealed
	phase   phase
	missing bool   // its end should be sealed
	vouched bool   // since it was started or resumed its own supervisor has sealed it
	by      string // who sealed its end
	added   int    // events after a sealed end that nothing but a resume can follow on
	wrong   []string
}

// phase is how far a record is.
type phase int

const (
	open   phase = iota // it goes on, or was killed
	ended               // that it ended isn't sealed
	owed                // nor this, but its folder knows the end: it can be
	closed              // it is: only applies, and that it goes on, may follow
)

func newChecker(st *store.Store, session string, list []key, keys map[string][]key) *checker {
	c := &checker{session: session, keys: keys}
	if len(list) > 0 {
		c.keyed = list[0].From
	}
	var err error
	if c.noted, err = readNote(noteOf(st, session)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.wrong = append(c.wrong, fmt.Sprintf("what its folder knows of its newest seal can't be read: %v", err))
	}
	return c
}

// readNote reads a file with a hash, whatever else is there by now.
func readNote(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return "", errors.Join(err, errors.New("it is no regular file"))
	}
	const most = 1000
	b, err := io.ReadAll(io.LimitReader(f, most))
	return strings.TrimSpace(string(b)), err
}

func (c *checker) event(e store.Event) {
	c.hashes = append(c.hashes, e.Hash)
	c.after++
	if e.Kind != store.KindSeal {
		c.fact(e)
		return
	}
	c.count++
	s, err := c.seal(e)
	if err != nil {
		c.wrong = append(c.wrong, fmt.Sprintf("seal %d (event %d): %v", e.Key, e.Seq, err))
		return
	}
	c.last, c.after = &s, 0
	c.vouched = c.vouched || s.By != After
	if s.By == Final || s.By == After && c.phase == open || s.By == Late && c.phase >= ended {
		c.phase, c.by = closed, s.By
	}
}

// fact looks at an event that is no seal.
func (c *checker) fact(e store.Event) {
	if e.Kind == store.KindSession {
		var s api.Session
		_ = json.Unmarshal(e.Doc, &s) // what can't be read is found otherwise
		switch {
		case e.Event == "session.resumed":
			c.phase, c.vouched = open, false
		case c.phase == open && s.State == api.SessionEnded:
			c.phase, c.missing = ended, !c.keyed.IsZero() && !e.At.Before(c.keyed)
		case e.Event == "session.counted":
			return
		}
	}
	if c.phase >= owed && e.Kind != store.KindApply {
		c.added++
	}
	if c.phase == ended && e.Hash.String() == c.noted {
		c.phase = owed
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
	pub, err := check(Message(c.session, s), s.Signature)
	if err != nil {
		return s, fmt.Errorf("its signature isn't good: %w", err)
	}
	name := ssh.FingerprintSHA256(pub)
	keys := c.keys[line(pub)]
	switch {
	case name != s.Signer:
		return s, fmt.Errorf("it names the key %s and %s signed it", api.Escape(api.Trim(s.Signer, 80)), name)
	case len(keys) == 0:
		return s, fmt.Errorf("it is signed by the key %s, which isn't yours: stepbox key lists those that are", name)
	case !slices.ContainsFunc(keys, func(k key) bool {
		return k.Until.IsZero() || !e.At.After(k.Until.Add(lateness)) // not From: who has the key says when, and clocks are set
	}):
		return s, fmt.Errorf("it is signed by the key %s at a time at which that didn't count", name)
	}
	return s, nil
}

// over says what is wrong with, and what is to be known of, a session's seals.
func (c *checker) over(live bool) (wrong, remarks []string) {
	wrong = c.wrong
	if c.noted != "" && !c.lists(c.noted) {
		wrong = append(wrong, "it lacks the seal or the end that its folder knows as its newest: it was cut off before that, or written anew")
	}
	if c.added > 0 {
		wrong = append(wrong, fmt.Sprintf("it has events after its end that aren't of an apply: %d", c.added))
	}
	switch {
	case c.phase == ended && c.missing && !live:
		wrong = append(wrong, "it ended, and no seal signs its end")
	case c.phase == owed && c.missing && !live:
		wrong = append(wrong, "it ended, and no seal signs its end, which its folder knows: --repair has it signed, where the key can be used again")
	case c.last == nil:
		remarks = append(remarks, "no seal signs it")
	case c.phase != closed && !live:
		remarks = append(remarks, fmt.Sprintf("no seal signs its end: the last one covers events up to %d", c.last.Of))
	case c.phase == closed && c.after > 0:
		remarks = append(remarks, fmt.Sprintf("it has events after the last seal: %d", c.after))
	}
	if c.last != nil && c.noted == "" && !live {
		remarks = append(remarks, "its folder doesn't know its newest seal (the file sealed): that it was cut back wouldn't be seen")
	}
	if c.phase == closed && c.by == Late {
		remarks = append(remarks, "its end was signed only later, as its folder knew it: it couldn't be when it ended")
	}
	if c.last != nil && !c.vouched {
		remarks = append(remarks, "nothing signed it while it went on, only who found it later")
	}
	return wrong, remarks
}

// lists says whether an event is one of the session's.
func (c *checker) lists(hash string) bool {
	return slices.ContainsFunc(c.hashes, func(h store.Hash) bool { return h.String() == hash })
}
