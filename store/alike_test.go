package store

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// stored is an event's document as the database has it.
func stored(t *testing.T, s *Store, seq uint64) (doc string) {
	t.Helper()
	if err := s.reads.QueryRow(`SELECT doc FROM events WHERE seq = ?`, seq).Scan(&doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// What is like an earlier document is stored as what differs, and read as what it was;
// what can't be told from that is stored whole.
func TestAlike(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	const long = `"argv":["git","status","--porcelain"],"program":"/usr/bin/git","cwd":"/home/person/project","verdict":"allow"`
	for i, x := range []struct {
		doc   string
		alike bool
	}{
		{`{"id":0,"pid":17,` + long + `,"at":"x"}`, false},
		{`{"id":1,"pid":18,` + long + `,"at":"y"}`, true},
		{`{"id":2,"action":1,"pid":18,` + long + `,"at":"y"}`, false},
		{`{"id":3,"action":2,"pid":18,` + long + `,"at":"<\u2028\u003e\ud83d"}`, true},
		{`{"id":4,"pid":18,` + long + `,"at":null}`, false},
		{`{"id":5,"pid":18,` + long + `,"at":{"a":1}}`, false},
		{`{"id":6,"pid":18,` + long + `,"at":{"b":1}}`, false},
		{`{"id":7,"id":18,` + long + `,"at":"y"}`, false},
		{`{"id":8,"id":19,` + long + `,"at":"y"}`, false},
		{`{"id":9,"pid":1.50e2,` + strings.Replace(long, "allow", "deny", 1) + `,"at":"y"}`, false},
		{`{"id":10,"pid":18,` + strings.Replace(long, "status", "log", 1) + `,"at":"y"}`, true},
		{`{"id":11,"pid":18,` + strings.Replace(long, "status", "log", 1) + `,"at":"y"}`, false},
		{`{"id":12,"pid":18,` + strings.Replace(long, "status", "log", 1) + `,"at":"y"}`, true},
		{`{"id":13,"pid":18,` + strings.Replace(long, "status", "log", 1) + `,"\u0061t":"y"}`, false},
		{`{"id":14,"pid":18,` + strings.Replace(long, "status", "log", 1) + `,"at":"},\"{[:\\"}`, true},
	} {
		e := appendFacts(t, s, id, Fact{Kind: KindExec, Key: int64(i), Event: "exec.allowed", Doc: json.RawMessage(x.doc)})[0]
		if was := stored(t, s, e.Seq); (was != x.doc) != x.alike {
			t.Errorf("%s is stored as %s", x.doc, was)
		}
		if got, err := s.Events(t.Context(), id, e.Seq, 1); err != nil || string(got[0].Doc) != x.doc {
			t.Errorf("%s is read as %s, %v", x.doc, got[0].Doc, err)
		}
		if got, err := s.Doc(t.Context(), id, KindExec, int64(i)); err != nil || string(got) != x.doc {
			t.Errorf("%s is listed as %s, %v", x.doc, got, err)
		}
		if got, err := s.AsOf(t.Context(), id, KindExec, e.Seq, 1); err != nil || len(got) != 1 || string(got[0]) != x.doc {
			t.Errorf("%s was %s, %v", x.doc, got, err)
		}
	}
	verify(t, s, id)
	var argv string
	if err := s.reads.QueryRow(`SELECT argv FROM execs WHERE key = 1`).Scan(&argv); err != nil || argv != `["git","status","--porcelain"]` {
		t.Errorf("its argv is %s, %v", argv, err)
	}
	if _, err := s.Append(t.Context(), id, Fact{Kind: KindExec, Key: 99, Event: "x", Doc: []byte(`{"like":2}`)}); err == nil {
		t.Error("what begins as what is stored so can be recorded")
	}
	// What SQLite reads in another way than we do isn't what fold stores.
	folded := stored(t, s, 3)
	for _, forged := range []string{
		strings.TrimSuffix(folded, "}") + `,"at":"y"}`, strings.Replace(folded, `"at":"y"`, `"at":{"a":1},"at":"y"`, 1),
		strings.Replace(folded, `"id":1,"pid":18`, `"pid":18,"id":1`, 1), strings.Replace(folded, `{"like":2,`, `{"like":2,"like":2,`, 1), folded + " ",
	} {
		raw(t, s.dir, `DROP TRIGGER events_stay`, fmt.Sprintf(`UPDATE events SET doc = '%s' WHERE seq = 3`, forged), eventsStay)
		if err := s.Verify(t.Context(), id); forged == folded || !errors.Is(err, ErrTampered) || !strings.Contains(err.Error(), "event 3 (") {
			t.Errorf("stored as %s: Verify = %v", forged, err)
		}
		if err := s.Rebuild(t.Context(), id); err == nil {
			t.Errorf("stored as %s it is repaired", forged)
		}
	}
	raw(t, s.dir, `DROP TRIGGER events_stay`, fmt.Sprintf(`UPDATE events SET doc = '%s' WHERE seq = 3`, folded), eventsStay)
	verify(t, s, id)
	was := stored(t, s, 2)
	raw(t, s.dir, `DROP TRIGGER events_stay`, `DROP TRIGGER events_remain`)
	for _, harm := range []string{`UPDATE events SET doc = replace(doc, 'status', 'commit') WHERE seq = 2`, `UPDATE events SET doc = '[1,' WHERE seq = 2`, `DELETE FROM events WHERE seq = 2`} {
		raw(t, s.dir, harm)
		err := s.Verify(t.Context(), id)
		if text := fmt.Sprint(err); !errors.Is(err, ErrTampered) || !strings.Contains(text, "event 3 (") {
			t.Errorf("%s: Verify = %v", harm, err)
		}
		raw(t, s.dir, fmt.Sprintf(`UPDATE events SET doc = '%s' WHERE seq = 2`, was))
	}
}

// Ten thousand alike take less than 350 bytes each.
func TestAlikeSize(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	const many, most = 10000, 350
	facts := make([]Fact, 0, many)
	for i := range int64(many) {
		facts = append(facts, Fact{Kind: KindExec, Key: i, Event: "exec.allowed", Doc: fmt.Appendf(nil,
			`{"id":%d,"action":2,"pid":%d,"parent":17930,"argv":["git","status","--porcelain"],"program":"/usr/bin/git","cwd":"/home/person/project","verdict":"allow","rule":"part of action 2","at":"2026-11-22T23:29:38.%09dZ"}`, i, 20062+i, i)})
		if i%256 == 0 {
			list := make([]string, 256)
			for n := range list {
				list[n] = fmt.Sprintf(`{"exec":%d,"ran":6308928,"exit":{"code":0}}`, int(i)+n)
			}
			facts = append(facts, Fact{Kind: KindEnds, Key: i / 256, Event: "execs.ended", Doc: fmt.Appendf(nil, `{"id":%d,"list":[%s]}`, i/256, strings.Join(list, ","))})
		}
	}
	appendFacts(t, s, id, facts...)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(s.dir, database))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var size int
	if err := db.QueryRow(`SELECT page_count * page_size FROM pragma_page_count, pragma_page_size`).Scan(&size); err != nil || size/many >= most {
		t.Errorf("%d bytes each, %v", size/many, err)
	}
	t.Logf("%d bytes each", size/many)
}
