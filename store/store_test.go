package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stepbox/session/e2e/must"
)

func TestRecord(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	for i, id := range []string{"aaaaaaaa", "bbbbbbbb"} {
		n, err := s.CreateSession(ctx, id, json.RawMessage(`{ "id": "`+id+`", "state": "starting" }`))
		if err != nil || n != int64(i+1) {
			t.Fatalf("CreateSession = %d, %v", n, err)
		}
	}
	if _, err := s.CreateSession(ctx, "aaaaaaaa", json.RawMessage(`{}`)); !errors.Is(err, ErrExists) {
		t.Errorf("creating a session twice: %v", err)
	}
	events := appendFacts(t, s, "aaaaaaaa", fact(1, "held"), fact(2, "held"), fact(1, "running"))
	for i, e := range events {
		if e.Seq != uint64(i+2) || e.Hash.IsZero() || e.Prev.IsZero() || e.At.IsZero() {
			t.Errorf("event %d = %+v", i, e)
		}
	}
	// A later document of the session can't lose its number.
	appendFacts(t, s, "aaaaaaaa", Fact{Kind: KindSession, Event: "session.ended", Doc: json.RawMessage(`{"id":"aaaaaaaa","state":"ended"}`)})

	docs, err := s.Sessions(ctx)
	if err != nil || len(docs) != 2 || !strings.Contains(string(docs[0]), `"bbbbbbbb"`) ||
		!strings.Contains(string(docs[1]), `"number":1`) || !strings.Contains(string(docs[1]), `"ended"`) {
		t.Errorf("Sessions = %s, %v", docs, err)
	}
	docs, err = s.Docs(ctx, "aaaaaaaa", KindAction, -1, 10)
	if err != nil || len(docs) != 2 || !strings.Contains(string(docs[0]), `"running"`) {
		t.Errorf("Docs = %s, %v", docs, err)
	}
	docs, err = s.Docs(ctx, "aaaaaaaa", KindAction, 1, 1)
	if err != nil || len(docs) != 1 || !strings.Contains(string(docs[0]), `"n":2`) {
		t.Errorf("Docs after 1 = %s, %v", docs, err)
	}
	if _, err = s.Doc(ctx, "aaaaaaaa", KindAction, 3); !errors.Is(err, ErrNotFound) {
		t.Errorf("Doc of an action that isn't there: %v", err)
	}
	got, err := s.Events(ctx, "aaaaaaaa", 2, 2)
	if err != nil || len(got) != 2 || got[0].Hash != events[0].Hash || !got[1].At.Equal(events[1].At) || string(got[1].Doc) != string(events[1].Doc) {
		t.Errorf("Events = %+v, %v", got, err)
	}
	verify(t, s, "aaaaaaaa")
	if err := s.Verify(ctx, "cccccccc"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Verify of no session: %v", err)
	}
	if _, err := s.Append(ctx, "cccccccc", fact(1, "held")); !errors.Is(err, ErrNotFound) {
		t.Errorf("Append to no session: %v", err)
	}
}

// A caller's mistakes are its own: nothing of the call is kept.
func TestRefusedFacts(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	for _, tt := range []struct {
		name string
		f    Fact
	}{
		{"unknown kind", Fact{Kind: "events", Event: "x", Doc: json.RawMessage(`{}`)}},
		{"SQL for a kind", Fact{Kind: `actions"; DROP TABLE events; --`, Event: "x", Doc: json.RawMessage(`{}`)}},
		{"no event", Fact{Kind: KindNote, Doc: json.RawMessage(`{}`)}},
		{"negative number", Fact{Kind: KindNote, Key: -1, Event: "x", Doc: json.RawMessage(`{}`)}},
		{"another session", Fact{Kind: KindSession, Key: 1, Event: "x", Doc: json.RawMessage(`{}`)}},
		{"no document", Fact{Kind: KindNote, Event: "x"}},
		{"an array", Fact{Kind: KindNote, Event: "x", Doc: json.RawMessage(`[]`)}},
		{"half an object", Fact{Kind: KindNote, Event: "x", Doc: json.RawMessage(`{"a":`)}},
		{"two objects", Fact{Kind: KindNote, Event: "x", Doc: json.RawMessage(`{} {}`)}},
		{"not UTF-8", Fact{Kind: KindNote, Event: "x", Doc: json.RawMessage("{\"a\":\"\xff\"}")}},
		{"too large", Fact{Kind: KindNote, Event: "x", Doc: json.RawMessage(`{"a":"` + strings.Repeat("a", maxDoc) + `"}`)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := s.Append(t.Context(), id, fact(1, "held"), tt.f); err == nil {
				t.Error("it was recorded")
			}
		})
	}
	for _, id := range []string{"", "..", "a/b", "A", "-x", "ab\x00", strings.Repeat("a", 65)} {
		if _, err := s.CreateSession(t.Context(), id, json.RawMessage(`{}`)); err == nil {
			t.Errorf("session %q was created", id)
		}
		if d := s.SessionDir(id); filepath.Dir(d) != filepath.Join(s.dir, sessions) {
			t.Errorf("SessionDir(%q) = %q", id, d)
		}
	}
	if ev, err := s.Events(t.Context(), id, 0, 0); err != nil || len(ev) != 1 {
		t.Errorf("%d events, %v", len(ev), err)
	}
}

// A clock that is set back doesn't set back the chain.
func TestTimeNeverGoesBack(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	ahead := time.Now().Add(time.Hour)
	err := s.writes.do(t.Context(), 0, func(tx *tx) error {
		h, err := tx.head(id)
		if err != nil {
			return err
		}
		h.time = ahead.UnixNano() // what a clock that was ahead leaves behind
		_, err = tx.append(id, []Fact{fact(1, "held")}, nil)
		return err
	})
	must.OK(t, err)
	for _, e := range appendFacts(t, s, id, fact(1, "running"), fact(1, "ended")) {
		if !e.At.After(ahead) {
			t.Errorf("event %d is of %v", e.Seq, e.At)
		}
	}
	verify(t, s, id)
}

func TestBodies(t *testing.T) {
	s := open(t)
	ctx := t.Context()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 1, smallBody - 1, smallBody, smallBody + 1, 256 << 10, 5<<20 + 7} {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		for range 2 { // the second is there already
			h, n, err := s.PutBody(ctx, io.MultiReader(bytes.NewReader(b[:size/3]), bytes.NewReader(b[size/3:])))
			if err != nil || n != int64(size) || h != HashOf(b) {
				t.Fatalf("PutBody of %d = %s, %d, %v", size, h, n, err)
			}
		}
		_, err := os.Stat(s.bodyPath(HashOf(b)))
		if (err == nil) != (size > smallBody) {
			t.Errorf("a body of %d bytes: file %v", size, err)
		}
		r, n, err := s.OpenBody(ctx, HashOf(b))
		if err != nil || n != int64(size) {
			t.Fatalf("OpenBody of %d = %d, %v", size, n, err)
		}
		got, err := io.ReadAll(r)
		r.Close()
		if err != nil || !bytes.Equal(got, b) {
			t.Errorf("a body of %d bytes came back as %d, %v", size, len(got), err)
		}
	}
	batch := [][]byte{[]byte("a"), []byte("b"), {}, bytes.Repeat([]byte("c"), 20<<10), []byte("a")}
	for i := range 1000 {
		batch = append(batch, []byte(fmt.Sprint(i)))
	}
	hs, err := s.PutBodies(ctx, batch)
	must.OK(t, err)
	for i, b := range batch {
		if hs[i] != HashOf(b) {
			t.Fatalf("body %d is %s", i, hs[i])
		}
	}
	no := HashOf([]byte("nobody"))
	if missing, err := s.HasBodies(ctx, append(hs, no)); err != nil || len(missing) != 1 || missing[0] != no {
		t.Errorf("HasBodies = %v, %v", missing, err)
	}
	if _, _, err := s.OpenBody(ctx, no); !errors.Is(err, ErrNotFound) {
		t.Errorf("OpenBody of none: %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(s.dir, tmpDir)); err != nil || len(left) != 0 {
		t.Errorf("temporary files left: %v, %v", left, err)
	}
}

// A body whose reader fails or whose caller gives up leaves nothing behind.
func TestBodyNotFinished(t *testing.T) {
	s := open(t)
	broken := errors.New("broken")
	large := bytes.Repeat([]byte("x"), 1<<20)
	for _, r := range []io.Reader{errReader{broken}, io.MultiReader(bytes.NewReader(large), errReader{broken})} {
		if _, _, err := s.PutBody(t.Context(), r); !errors.Is(err, broken) {
			t.Errorf("PutBody = %v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, b := range [][]byte{[]byte("small"), large} {
		if _, _, err := s.PutBody(ctx, bytes.NewReader(b)); !errors.Is(err, context.Canceled) {
			t.Errorf("PutBody = %v", err)
		}
	}
	if left, err := os.ReadDir(filepath.Join(s.dir, tmpDir)); err != nil || len(left) != 0 {
		t.Errorf("temporary files left: %v, %v", left, err)
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// What a dead process left half-written is removed, what a live one writes isn't.
func TestSweep(t *testing.T) {
	s := open(t)
	tmp := filepath.Join(s.dir, tmpDir)
	old := time.Now().Add(-time.Hour)
	write := func(name string) string {
		p := filepath.Join(tmp, name)
		must.OK(t, os.WriteFile(p, []byte("x"), 0o600))
		must.OK(t, os.Chtimes(p, old, old))
		return p
	}
	dead := write("body-dead")
	live := make(chan error, 1)
	r, w := io.Pipe()
	go func() {
		_, _, err := s.PutBody(context.Background(), r)
		live <- err
	}()
	if _, err := w.Write(make([]byte, smallBody+1)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 1)); err != nil { // the first was taken: the file is there
		t.Fatal(err)
	}
	entries, err := os.ReadDir(tmp)
	if err != nil || len(entries) != 2 {
		t.Fatalf("%v, %v", entries, err)
	}
	for _, e := range entries {
		must.OK(t, os.Chtimes(filepath.Join(tmp, e.Name()), old, old))
	}
	openAt(t, s.dir)
	if _, err := os.Stat(dead); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a dead process left: %v", err)
	}
	w.Close()
	if err := <-live; err != nil {
		t.Errorf("a live writer's body: %v", err)
	}
}

func TestDir(t *testing.T) {
	for _, tt := range []struct{ data, xdg, home, want string }{
		{"/d/../e", "/x", "/h", "/e"},
		{"", "/x", "/h", "/x/stepbox"},
		{"", "x", "/h", "/h/.local/share/stepbox"},
		{"", "", "/h", "/h/.local/share/stepbox"},
		{"d", "/x", "/h", ""},
		{"", "", "", ""},
	} {
		t.Setenv("STEPBOX_DATA", tt.data)
		t.Setenv("XDG_DATA_HOME", tt.xdg)
		t.Setenv("HOME", tt.home)
		if got, err := Dir(); got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("Dir with %+v = %q, %v", tt, got, err)
		}
	}
}

func TestClosed(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	must.OK(t, s.Close())
	if err := s.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	if _, err := s.Append(t.Context(), id, fact(1, "held")); !errors.Is(err, ErrClosed) {
		t.Errorf("Append = %v", err)
	}
	if _, err := s.Sessions(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("Sessions = %v", err)
	}
	if _, _, err := s.PutBody(t.Context(), strings.NewReader("x")); !errors.Is(err, ErrClosed) {
		t.Errorf("PutBody = %v", err)
	}
}
