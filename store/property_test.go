package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stepbox/session/e2e/must"
)

// tables reads all rows of a session.
func tables(t testing.TB, s *Store, id string) map[resource]string {
	out := make(map[resource]string)
	for _, k := range described() {
		rows, err := s.reads.Query(`SELECT key, seq, doc FROM "`+k.table+`" WHERE session = ?`, id)
		must.OK(t, err)
		for rows.Next() {
			var key, seq int64
			var doc string
			must.OK(t, rows.Scan(&key, &seq, &doc))
			out[resource{k.name, key}] = fmt.Sprint(seq, " ", doc)
		}
		must.OK(t, rows.Err(), rows.Close())
	}
	return out
}

func sameRows(a, b map[resource]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

// Whatever is recorded, in whatever portions, the tables hold the last word on
// every resource; and whatever is done to the tables, Verify finds it and
// Rebuild makes them again from the events.
func TestRebuildEqualsTables(t *testing.T) {
	s := open(t)
	sessions := 0
	docs := rapid.Custom(func(t *rapid.T) json.RawMessage {
		m := rapid.MapOfN(rapid.String(), rapid.String(), 0, 4).Draw(t, "members")
		b, err := json.Marshal(m)
		must.OK(t, err)
		return b
	})
	var known []Kind
	var harmable []string
	for _, k := range described() {
		known = append(known, k.name)
	}
	for _, k := range tabled() {
		harmable = append(harmable, k.table)
	}
	rapid.Check(t, func(rt *rapid.T) {
		sessions++
		id := fmt.Sprintf("s%d", sessions)
		other := fmt.Sprintf("o%d", sessions)
		model := make(map[resource]json.RawMessage)
		for _, x := range []string{id, other} {
			if _, err := s.CreateSession(context.Background(), x, json.RawMessage(`{}`)); err != nil {
				rt.Fatal(err)
			}
		}
		facts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Fact {
			f := Fact{Kind: rapid.SampledFrom(known).Draw(t, "kind"), Event: rapid.StringN(1, 8, -1).Draw(t, "event"), Doc: docs.Draw(t, "doc")}
			if f.Kind == KindChunk {
				f.Kind = KindNote // chunks are the journal's
			}
			if f.Kind == KindCheckpoint {
				f.Doc = json.RawMessage(`{"root":""}`)
			}
			if f.Kind != KindSession {
				f.Key = rapid.Int64Range(0, 5).Draw(t, "key")
			}
			return f
		}), 0, 12)
		for range rapid.IntRange(1, 4).Draw(rt, "portions") {
			fs := facts.Draw(rt, "facts")
			ev, err := s.Append(context.Background(), id, fs...)
			must.OK(rt, err)
			for i, e := range ev {
				if e.Kind != KindSession && string(e.Doc) != string(fs[i].Doc) {
					rt.Fatalf("recorded %s as %s", fs[i].Doc, e.Doc)
				}
				model[resource{e.Kind, e.Key}] = e.Doc
			}
			if _, err := s.Append(context.Background(), other, fs...); err != nil {
				rt.Fatal(err)
			}
		}
		for k, want := range model {
			got, err := s.Doc(context.Background(), id, k.kind, k.key)
			if err != nil || string(got) != string(want) {
				rt.Fatalf("%v is %s, %v; want %s", k, got, err, want)
			}
		}
		before, apart := tables(t, s, id), tables(t, s, other)
		table := rapid.SampledFrom(harmable).Draw(rt, "table")
		harm := rapid.SampledFrom([]string{
			`UPDATE "%s" SET doc = '{"forged":1}' WHERE session = ?`, `DELETE FROM "%s" WHERE session = ?`,
			`UPDATE "%s" SET seq = max(seq - 1, 1) WHERE session = ?`, `INSERT INTO "%s" (session, key, seq, doc) VALUES (?, 77, 1, '{}')`,
		}).Draw(rt, "harm")
		if _, err := s.keep.db.Exec(fmt.Sprintf(harm, table), id); err != nil {
			rt.Fatal(err)
		}
		harmed := !sameRows(before, tables(t, s, id))
		if err := s.Verify(context.Background(), id); errors.Is(err, ErrTampered) != harmed || err != nil && !harmed {
			rt.Fatalf("harmed %v: Verify = %v", harmed, err)
		}
		must.OK(rt, s.Rebuild(context.Background(), id))
		if !sameRows(before, tables(t, s, id)) || !sameRows(apart, tables(t, s, other)) {
			rt.Fatal("Rebuild made other tables")
		}
		must.OK(rt, s.Verify(context.Background(), id))
	})
}

// Whatever an event says, no other event has its encoding.
func TestDigestsDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		event := rapid.Custom(func(t *rapid.T) Event {
			text := rapid.StringOfN(rapid.RuneFrom([]rune("ab{}")), 0, 3, -1)
			return Event{
				Session: text.Draw(t, "session"), Seq: rapid.Uint64Range(0, 2).Draw(t, "seq"),
				At:   time.Unix(0, rapid.Int64Range(0, 2).Draw(t, "at")).UTC(),
				Kind: Kind(text.Draw(t, "kind")), Event: text.Draw(t, "event"), Key: rapid.Int64Range(0, 2).Draw(t, "key"),
				Doc: json.RawMessage(text.Draw(t, "doc")), Prev: Hash{rapid.Byte().Draw(t, "prev")},
			}
		})
		a, b := event.Draw(t, "a"), event.Draw(t, "b")
		if equal := reflect.DeepEqual(a, b); equal != (a.digest() == b.digest()) {
			t.Fatalf("%+v and %+v: equal %v", a, b, equal)
		}
	})
}

// Frames come back as they were written, and reading any bytes ends.
func FuzzFrames(f *testing.F) {
	b := appendHeader(nil, time.Unix(1, 2), 1)
	b = appendFrame(b, FrameResize, 0, appendResize(nil, 80, 24), 1)
	b = appendFrame(b, FrameOutput, 1500, []byte("hello"), 1)
	f.Add(b)
	f.Add(b[:len(b)-3])
	f.Add(appendFrame(appendHeader(nil, time.Unix(1, 2), 1), FrameKey, 7, append(appendResize(nil, 80, 24), "\x1bchello"...), 1))
	f.Add(b[:headerSize+2])
	f.Add([]byte(journalMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := parseHeader(b, 1); err != nil {
			return
		}
		p := parser{b: b[headerSize:], number: 1}
		again := bytes.Clone(b[:headerSize])
		last := time.Duration(0)
		for {
			f, err := p.next()
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, errTorn) && !errors.Is(err, errDamaged) {
					t.Fatal(err)
				}
				break
			}
			if f.At < last {
				t.Fatalf("%v after %v", f.At, last)
			}
			data := f.Data
			if f.Kind != FrameOutput {
				data = append(appendResize(nil, f.Cols, f.Rows), f.Data...)
			}
			again = appendFrame(again, f.Kind, uint64((f.At-last)/time.Millisecond), data, 1)
			last = f.At
		}
		// Another spelling of a number is longer; what this package
		// writes is the shortest.
		if len(again) > headerSize+p.off {
			t.Fatalf("%d bytes give %d", headerSize+p.off, len(again))
		}
	})
}

// Any bytes in the place of a journal's last file are taken up without a panic
// and without losing a frame that could be read before.
func FuzzRecover(f *testing.F) {
	b := appendFrame(appendHeader(nil, time.Unix(1, 2), 1), FrameOutput, 0, []byte("hello"), 1)
	f.Add(b, false)
	f.Add(append(bytes.Clone(b), 0, 0, 0, 0), false)
	f.Add(must.Get(compress(b)), true)
	f.Add([]byte{0x28, 0xb5, 0x2f, 0xfd}, true)
	s := open(f)
	id := session(f, s, "aaaaaaaa")
	f.Fuzz(func(t *testing.T, b []byte, packed bool) {
		j := &Journal{store: s, session: id, dir: s.SessionDir(id) + "/" + terminal}
		must.OK(t, os.RemoveAll(j.dir), os.Mkdir(j.dir, 0o700))
		if packed {
			write(t, j.chunk(1), b)
		} else {
			write(t, j.raw(1), b)
		}
		count := func() (n int) {
			for _, err := range s.ReadJournal(id) {
				if err == nil {
					n++
				}
			}
			return n
		}
		before := count()
		err := j.recover()
		if err != nil && !packed {
			t.Fatal(err)
		}
		if after := count(); after != before {
			t.Fatalf("%d frames, then %d", before, after)
		}
	})
}
