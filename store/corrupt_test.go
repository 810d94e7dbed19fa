package store

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
)

// filled is the folder of a closed record with some pages of events.
func filled(t *testing.T) string {
	t.Helper()
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	for i := range int64(200) {
		appendFacts(t, s, id, Fact{Kind: KindNote, Key: i, Event: "note", Doc: json.RawMessage(fmt.Sprintf(`{"id":%d,"text":%q}`, i, strings.Repeat("x", 900)))})
	}
	must.OK(t, s.Close())
	return s.dir
}

// A file that isn't a database is refused, left as it is, and the error says
// where it is and how to move it away; doing so helps.
func TestNotADatabase(t *testing.T) {
	dir := filled(t)
	db := filepath.Join(dir, database)
	junk := make([]byte, 8192)
	if _, err := rand.Read(junk); err != nil {
		t.Fatal(err)
	}
	write(t, db, junk)
	for range 2 {
		_, err := Open(t.Context(), dir)
		if err := wants("Open", err, ErrCorrupt, db, "mv "+dir+"/"+database+"* "+dir+"/bodies "+dir+"/sessions "+dir+"/damaged/"); err != nil {
			t.Error(err)
		}
		_, err = OpenReadOnly(t.Context(), dir)
		if err := wants("OpenReadOnly", err, ErrCorrupt); err != nil {
			t.Error(err)
		}
	}
	if got := must.Get(os.ReadFile(db)); !bytes.Equal(got, junk) {
		t.Error("the file was changed")
	}
	must.OK(t, os.Mkdir(dir+"/damaged", 0o700), os.Rename(db, dir+"/damaged/"+database))
	session(t, openAt(t, dir), "aaaaaaaa")
}

// Damage that is met while the record is open is said, and the next Open looks
// at the whole database before it trusts it.
func TestDamagedPages(t *testing.T) {
	dir := filled(t)
	db := filepath.Join(dir, database)
	b := must.Get(os.ReadFile(db))
	for i := 40 * 4096; i < len(b)-4096; i++ {
		b[i] ^= 0x5a
	}
	write(t, db, b)
	s, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatalf("what Open reads isn't damaged: %v", err)
	}
	_, err = s.Events(t.Context(), "aaaaaaaa", 0, 0)
	if err := wants("Events", err, ErrCorrupt, db); err != nil {
		t.Error(err)
	}
	_ = s.Close() // it may not succeed
	_, err = Open(t.Context(), dir)
	if err := wants("Open", err, ErrCorrupt, "damaged"); err != nil {
		t.Error(err)
	}
}

// A mark that turns out to be unfounded goes away.
func TestSuspicionUnfounded(t *testing.T) {
	dir := filled(t)
	suspect(dir)
	s := openAt(t, dir)
	if s.suspicious() {
		t.Error("it is still suspected")
	}
	verify(t, s, "aaaaaaaa")
}

func TestTruncated(t *testing.T) {
	dir := filled(t)
	db := filepath.Join(dir, database)
	if err := os.Truncate(db, must.Get(os.Stat(db)).Size()/3); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), dir)
	if err == nil {
		_, err = s.Events(t.Context(), "aaaaaaaa", 0, 0)
		_ = s.Close() // it may not succeed
	}
	if !errors.Is(err, ErrCorrupt) {
		t.Errorf("a third of a database: %v", err)
	}
}

// Any bytes in the place of the database are refused or used, without a panic,
// and what is used works.
func FuzzOpen(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("SQLite format 3\x00"))
	f.Add([]byte("SQLite format 3\x00\x10\x00\x02\x02\x00\x40\x20\x20"))
	dir := f.TempDir()
	must.OK(f, os.Chmod(dir, 0o700))
	s, err := Open(f.Context(), dir)
	must.OK(f, err)
	must.OK(f, s.Close())
	good := must.Get(os.ReadFile(filepath.Join(dir, database)))
	f.Add(good)
	f.Add(good[:len(good)/2])
	newer := bytes.Clone(good)
	newer[63] = 200 // the user version
	f.Add(newer)
	foreign := bytes.Clone(good)
	foreign[68] ^= 1 // the application's number
	f.Add(foreign)
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		must.OK(t, os.Chmod(dir, 0o700))
		write(t, filepath.Join(dir, database), b)
		if s, err := Open(t.Context(), dir); err == nil {
			// Damage that Open needn't see may make any of these fail.
			if _, err := s.CreateSession(t.Context(), "aaaaaaaa", json.RawMessage(`{}`)); err == nil {
				if _, err := s.Append(t.Context(), "aaaaaaaa", fact(1, "held")); err == nil {
					_ = s.Verify(t.Context(), "aaaaaaaa")
				}
			}
			_ = s.Close()
		}
		if s, err := OpenReadOnly(t.Context(), dir); err == nil {
			_, _ = s.Sessions(t.Context())
			_ = s.Close()
		}
	})
}
