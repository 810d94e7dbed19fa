package store

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zeebo/blake3"
)

// A build starts the same few programs thousands of times. Of kinds whose documents
// repeat each other only the first such document is stored whole. One that is like it is
// stored as the number of that event and the members that differ, for example
//
//	{"like":12,"id":9,"pid":4711,"at":"2026-11-22T08:00:00Z"}
//
// The first of the members by which a kind's documents are alike may differ, and is in it
// then, until it has come twice. What is hashed is the whole document.

// likeMark begins a document that is stored so, and no other.
const likeMark = `{"like":`

// mostAlike bounds the events that others may be like, 50 bytes each.
const mostAlike = 4096

// In SQL, of a row e of events: the document that its own is like, or NULL, and its own
// as a whole, see json_patch() in sqlite.org/json1.html. What was damaged is no error here.
const (
	likened = `CASE WHEN substr(e.doc, 1, 8) = '` + likeMark + `' AND json_valid(e.doc) THEN
	coalesce((SELECT doc FROM events WHERE session = e.session AND seq = e.doc ->> '$.like' AND json_valid(doc)), '{}') END`
	whole = `coalesce(json_remove(json_patch(` + likened + `, e.doc), '$.like'), e.doc)`
)

// asView is the statement that makes a kind's table of what the events last said.
func (k *kind) asView() string {
	var b strings.Builder
	for _, c := range k.columns {
		fmt.Fprintf(&b, `, json_extract(doc, '%s') AS "%s"`, c.path, c.name)
	}
	return fmt.Sprintf(`CREATE VIEW "%s" AS SELECT session, key, seq, doc%s FROM (SELECT session, key, seq, %s AS doc FROM events e
WHERE kind = '%s' AND NOT EXISTS (SELECT 1 FROM events WHERE session = e.session AND kind = e.kind AND key = e.key AND seq > e.seq))`,
		k.table, b.String(), whole, k.name)
}

// member is one of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// members takes a compact JSON object apart.
func members(doc []byte) (out []member, err error) {
	d := json.NewDecoder(bytes.NewReader(doc))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.Join(errors.New("it is no object"), err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		m := member{name: name.(string)} // in an object nothing else comes
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// join puts members together again.
func join(ms []member) []byte {
	b := []byte{'{'}
	for i, m := range ms {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(append(b, '"'), m.name...), '"', ':'), m.value...)
	}
	return append(b, '}')
}

// fold is an event's document as it is stored: whole, or as what it is like and what differs.
func (t *tx) fold(k *kind, e *Event) ([]byte, error) {
	if len(k.alike) == 0 {
		return e.Doc, nil
	}
	ms, err := members(e.Doc)
	if err != nil {
		return nil, err
	}
	exact, loose := blake3.New(), blake3.New()
	for _, m := range ms {
		fmt.Fprintf(loose, "%s %s %q", e.Session, e.Kind, m.name)
		switch i := slices.Index(k.alike, m.name); {
		case i == 0:
			exact.Write(m.value)
		case i > 0:
			loose.Write(m.value)
		}
	}
	like := Hash(loose.Sum(nil))
	same := HashOf(append(exact.Sum(nil), like[:]...))
	seq, again := t.alike[same]
	if !again {
		seq, t.alike[same] = t.alike[like], 0
	}
	if seq != 0 {
		var was []byte
		err := t.row(`SELECT doc FROM events WHERE session = ? AND seq = ?`, []any{e.Session, int64(seq)}, &was)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return nil, err
		}
		// It may be of a transaction that was undone.
		like, _ := members(was) // what can't be taken apart isn't like it
		if short := differing(ms, like, fmt.Append(nil, seq)); len(short) < len(e.Doc) && bytes.Equal(unfold(short, was), e.Doc) {
			return short, nil
		}
	}
	if len(t.alike) >= mostAlike {
		clear(t.alike)
	}
	t.alike[same], t.alike[like] = e.Seq, e.Seq
	return e.Doc, nil
}

// differing is what a document of these members has otherwise than one that it is like.
func differing(ms, was []member, seq []byte) []byte {
	out := []member{{"like", seq}}
	for i, m := range ms {
		switch same := i < len(was) && was[i].name == m.name && bytes.Equal(was[i].value, m.value); {
		case same:
		case m.value[0] == '{' || m.value[0] == 'n': // json_patch() would merge the one, and remove the other
			return nil
		default:
			out = append(out, m)
		}
	}
	return join(out)
}

// unfold is a document as it was before fold; like is the one that it is like, nil if
// it is stored whole. What was tampered with comes out as something else: SQLite would make
// another document of what fold doesn't store.
func unfold(doc, like []byte) []byte {
	if like == nil {
		return doc
	}
	was, err := members(like)
	out := slices.Clone(was)
	own, oerr := members(doc)
	if err != nil || oerr != nil || len(own) == 0 {
		return doc
	}
	for _, m := range own[1:] {
		i := slices.IndexFunc(out, func(o member) bool { return o.name == m.name })
		if i < 0 {
			return doc
		}
		out[i].value = m.value
	}
	if !bytes.Equal(differing(out, was, own[0].value), doc) {
		return doc
	}
	return join(out)
}
