package api

import (
	"context"
	"iter"
	"net/http"
	"time"
)

// Key is the one that signs records.
type Key struct {
	Fingerprint string    `json:"fingerprint"` // SHA256:…, as ssh-keygen -l gives it
	Public      string    `json:"public"`      // as a line of authorized_keys
	From        time.Time `json:"from"`
}

// Seal is a signature of an event, and so of all that come before it.
type Seal struct {
	N         int64     `json:"n"`
	Of        uint64    `json:"of"`   // the event's number
	Hash      string    `json:"hash"` // the event's
	At        time.Time `json:"at"`
	By        string    `json:"by"` // going, final: the session's supervisor, while it lived and at its end; after, late: who came later, see docs/integrity.md
	Signer    string    `json:"signer"`
	Signature string    `json:"signature"` // SSH SIGNATURE, armored
}

// VerifyRequest asks for records to be checked.
type VerifyRequest struct {
	Session string `json:"session,omitempty"` // "": all of them
	Head    string `json:"head,omitempty"`    // the hash of an event that the session's record must have
	Repair  bool   `json:"repair,omitempty"`  // make tables again that don't say what the events say
	Quick   bool   `json:"quick,omitempty"`   // whether what there is says what was recorded: not that the end is signed, nor contents and output
}

// Verifying is how it goes: numbers of the session that is being checked, or what
// was found of it.
type Verifying struct {
	Session string    `json:"session"`
	Events  uint64    `json:"events"`
	Bytes   int64     `json:"bytes"` // that were read, of events, contents and output
	Done    *Verified `json:"done,omitempty"`
	Problem *Problem  `json:"problem,omitempty"` // why it couldn't go on; the last line then
}

// Verified is what was found of one session, or with no session of the database as a whole.
type Verified struct {
	Session  string    `json:"session"`
	Name     string    `json:"name"`
	Number   int64     `json:"number,omitempty"`
	Events   uint64    `json:"events"`
	Head     string    `json:"head,omitempty"` // the hash of the last event
	Contents int       `json:"contents"`
	Chunks   int       `json:"chunks"` // of the terminal's output
	Bytes    int64     `json:"bytes"`
	Seals    int       `json:"seals"`
	Seal     *Seal     `json:"seal,omitempty"`     // the last one that is good
	Message  string    `json:"message,omitempty"`  // what that one signs
	Findings []Finding `json:"findings,omitempty"` // what is wrong; none: the record is whole
	More     int       `json:"more,omitempty"`     // findings beyond these
	Remarks  []string  `json:"remarks,omitempty"`  // what isn't wrong, but to be known
	Repaired bool      `json:"repaired,omitempty"` // findings of tables are mended
}

// Finding is something that a record doesn't agree with itself in.
type Finding struct {
	Text  string `json:"text"`
	Table bool   `json:"table,omitempty"` // a table alone is wrong, the events are not: a repair makes it again
}

// Whole says whether nothing is wrong, or nothing any more.
func (v Verified) Whole() bool {
	for _, f := range v.Findings {
		if !f.Table || !v.Repaired {
			return false
		}
	}
	return true
}

// Verify checks records and tells how that goes, each session's outcome when it is known.
func (c *Client) Verify(ctx context.Context, r VerifyRequest) iter.Seq2[Verifying, error] {
	return stream[Verifying](ctx, c, http.MethodPost, "/v1/verify", r, "what is verified")
}

// Key is the key that signs records; a zero one before the first seal.
func (c *Client) Key(ctx context.Context) (Key, error) {
	return fetch[Key](ctx, c, http.MethodGet, "/v1/key", nil)
}
