package seal

import (
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/crypto/ssh"

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
	keys    map[string]key // by their lines
	hashes  []store.Hash   // of events 1, 2, …
	sealed  uint64         // the last event that a good seal covers, or is

	count int
	last  *api.Seal // that is good
	ended int       // 1 + how many events came after the session's end was sealed; 0: it wasn't
	wrong []string
}

func (c *checker) event(e store.Event) {
	c.hashes = append(c.hashes, e.Hash)
	if c.ended > 0 {
		c.ended++
	}
	if e.Kind != store.KindSeal {
		return
	}
	c.count++
	s, err := c.seal(e)
	if err != nil {
		c.wrong = append(c.wrong, fmt.Sprintf("seal %d (event %d): %v", e.Key, e.Seq, err))
		return
	}
	c.last, c.sealed = &s, e.Seq
	if s.By != Going {
		c.ended = 1
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
	k, ok := c.keys[line(pub)]
	switch {
	case name != s.Signer:
		return s, fmt.Errorf("it names the key %s and %s signed it", api.Escape(api.Trim(s.Signer, 80)), name)
	case !ok:
		return s, fmt.Errorf("it is signed by the key %s, which isn't yours: stepbox key lists those that are", name)
	case e.At.Before(k.From) || !k.Until.IsZero() && e.At.After(k.Until.Add(lateness)):
		return s, fmt.Errorf("it is signed by the key %s at a time at which that didn't count", name)
	}
	return s, nil
}

// remarks are what is to be known of a session's seals.
func (c *checker) remarks(live bool) (out []string) {
	switch {
	case c.last == nil:
		out = append(out, "no seal signs it")
	case c.ended == 0 && !live:
		out = append(out, fmt.Sprintf("no seal signs its end: the last one covers events up to %d", c.last.Of))
	case c.ended > 1:
		out = append(out, fmt.Sprintf("%d events came after the last seal", c.ended-1))
	}
	return out
}
