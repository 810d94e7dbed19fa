package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/zeebo/blake3"
)

// Fact is something to be recorded: a resource as it is after an event.
type Fact struct {
	Kind  Kind
	Key   int64           // the resource's number in its session, from 0; a session's own is 0
	Event string          // what happened, like "action.held"
	Doc   json.RawMessage // one JSON object in UTF-8
}

// Event is a recorded fact. Doc is compact JSON, the exact bytes that Hash covers.
type Event struct {
	Session string
	Seq     uint64    // counts up from 1 without gaps
	At      time.Time // UTC; later than that of the event before
	Kind    Kind
	Event   string
	Key     int64
	Doc     json.RawMessage
	Prev    Hash // the event before; zero for the first
	Hash    Hash
}

// maxDoc bounds one resource. It keeps a transaction short.
const maxDoc = 16 << 20

// digest is the event's link in the chain: BLAKE3 over all its fields, each
// with its length or in a fixed width, so that no two events encode alike.
func (e *Event) digest() Hash {
	b := make([]byte, 0, 160+len(e.Session)+len(e.Doc))
	text := func(s string) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	text("stepbox event 1") // names this encoding
	text(e.Session)
	b = binary.BigEndian.AppendUint64(b, e.Seq)
	b = binary.BigEndian.AppendUint64(b, uint64(e.At.UnixNano()))
	text(string(e.Kind))
	text(e.Event)
	b = binary.BigEndian.AppendUint64(b, uint64(e.Key))
	b = binary.BigEndian.AppendUint32(b, uint32(len(e.Doc)))
	b = append(b, e.Doc...)
	b = append(b, e.Prev[:]...)
	return blake3.Sum256(b)
}

// Follows says whether an event is what its hash says, and stands behind the one before it.
func (e *Event) Follows(before Hash) bool { return e.Prev == before && e.digest() == e.Hash }

// canonical is the form in which a document is stored and hashed: compact, the
// order of its members kept.
func canonical(doc json.RawMessage) (json.RawMessage, error) {
	switch {
	case len(doc) > maxDoc:
		return nil, fmt.Errorf("a document of %d bytes is larger than %d", len(doc), maxDoc)
	case !utf8.Valid(doc):
		return nil, errors.New("the document isn't UTF-8")
	}
	var b bytes.Buffer
	b.Grow(len(doc))
	if err := json.Compact(&b, doc); err != nil {
		return nil, fmt.Errorf("the document isn't JSON: %w", err)
	}
	if b.Len() == 0 || b.Bytes()[0] != '{' {
		return nil, errors.New("the document isn't a JSON object")
	}
	return b.Bytes(), nil
}

// prepare checks a fact and makes its document canonical.
func (f Fact) prepare() (Fact, error) {
	switch {
	case kindOf(f.Kind) == nil:
		return f, fmt.Errorf("there is no kind %q", f.Kind)
	case f.Event == "":
		return f, fmt.Errorf("a %s without the name of an event", f.Kind)
	case f.Key < 0, f.Kind == KindSession && f.Key != 0:
		return f, fmt.Errorf("a %s can't have number %d", f.Kind, f.Key)
	}
	doc, err := canonical(f.Doc)
	if err != nil {
		return f, fmt.Errorf("%s %d: %w", f.Kind, f.Key, err)
	}
	f.Doc = doc
	return f, nil
}

// numbered puts the session's number into its document. The number is the
// store's to give, so a later document can't lose or change it.
func numbered(doc json.RawMessage, number int64) (json.RawMessage, error) {
	var has struct {
		Number int64 `json:"number"`
	}
	if err := json.Unmarshal(doc, &has); err == nil && has.Number == number {
		return doc, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(doc, &members); err != nil {
		return nil, fmt.Errorf("the session's document: %w", err)
	}
	members["number"] = json.RawMessage(fmt.Sprint(number))
	b, err := json.Marshal(members)
	if err != nil {
		return nil, fmt.Errorf("the session's document: %w", err)
	}
	return b, nil
}
