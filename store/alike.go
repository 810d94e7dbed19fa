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

// members takes a JSON object apart whose names are written without escapes.
func members(doc []byte) (out []member, err error) {
	doc = bytes.TrimSpace(doc)
	if !json.Valid(doc) || doc[0] != '{' {
		return nil, errors.New("it is no object")
	}
	name, from, depth := "", 1, 0
	for i := 1; i < len(doc); i++ {
		switch c := doc[i]; {
		case c == '"':
			for i++; doc[i] != '"'; i++ {
				if doc[i] == '\\' {
					i++
				}
			}
		case c == '{' || c == '[':
			depth++
		case depth > 0 && (c == '}' || c == ']'):
			depth--
		case depth > 0:
		case c == ':':
			if name, from = string(bytes.TrimSpace(doc[from:i])), i+1; strings.Contains(name, `\`) {
				return nil, errors.New("it has a name with escapes")
			}
		case name != "" && (c == ',' || c == '}'):
			out = append(out, member{name[1 : len(name)-1], bytes.TrimSpace(doc[from:i])})
			from = i + 1
		}
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
	if err != nil { // what can't be taken apart stays whole
		return e.Doc, nil
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
		if short := differing(ms, like, fmt.Append(nil, seq)); short != nil {
			doc := join(short)
			if out, ok := completed(short, like); ok && len(doc) < len(e.Doc) && bytes.Equal(join(out), e.Doc) {
				return doc, nil
			}
		}
	}
	if len(t.alike) >= mostAlike {
		clear(t.alike)
	}
	t.alike[same], t.alike[like] = e.Seq, e.Seq
	return e.Doc, nil
}

// differing are the members of a document, behind the mark, that it has otherwise than one
// that it is like; nil where they can't be told.
func differing(ms, was []member, seq []byte) []member {
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
	return out
}

// completed are the members of a document that is like another and has some otherwise;
// not ok where it has one that the other hasn't.
func completed(short, was []member) (out []member, ok bool) {
	out = slices.Clone(was)
	for _, m := range short[1:] {
		i := slices.IndexFunc(out, func(o member) bool { return o.name == m.name })
		if i < 0 {
			return nil, false
		}
		out[i].value = m.value
	}
	return out, true
}

// unfold is a document as it was before fold; like is the one that it is like, nil if
// it is stored whole. What was tampered with comes out as something else: SQLite would make
// another document of what fold doesn't store.
func unfold(doc, like []byte) []byte {
	if like == nil {
		return doc
	}
	was, err := members(like)
	own, oerr := members(doc)
	if err != nil || oerr != nil || len(own) == 0 {
		return doc
	}
	out, ok := completed(own, was)
	if !ok || !bytes.Equal(join(differing(out, was, own[0].value)), doc) {
		return doc
	}
	return join(out)
}
