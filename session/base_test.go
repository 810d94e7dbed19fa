package session_test

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/runner/overlay/content"
	"stepbox/session/api"
	"stepbox/session/base"
	"stepbox/session/e2e/must"
	"stepbox/store"
)

// kept reads a store's bodies.
type kept struct{ *store.Store }

func (k kept) Put(ctx context.Context, r io.Reader) (content.Hash, int64, error) {
	h, n, err := k.PutBody(ctx, r)
	return content.Hash(h), n, err
}

func (k kept) Open(ctx context.Context, h content.Hash) (io.ReadCloser, int64, error) {
	return k.OpenBody(ctx, store.Hash(h))
}

// baseOf waits for what the project was.
func baseOf(w *world) (*api.Base, *base.Record) {
	w.Helper()
	b := w.happened("the base", func(e api.Event) bool { return e.Kind == "session.based" }).Session.Base
	h, err := store.ParseHash(b.Hash)
	w.must(err)
	r, err := base.Load(w.Context(), kept{w.store}, content.Hash(h))
	w.must(err)
	if len(r.Entries) != b.Files || r.Kind() != b.Kind || !b.Complete || b.Reason != "" {
		w.Errorf("the session says of its base %+v, which has %d files, is of %s and misses %q", b, len(r.Entries), r.Kind(), r.Missing)
	}
	return b, r
}

// The record has what the project was before the agent ran, and none of its
// secrets; what the agent does isn't in it.
func TestBaseOfARepository(t *testing.T) {
	t.Parallel()
	needGit(t)
	w := startWith(t, api.ModeWatch, "echo agent >a.txt; echo agent >b.txt; echo agent >made.txt; sleep 60", func(project string) {
		git := func(args ...string) { gitIn(t, project, args...) }
		write := func(name, text string) {
			must.OK(t, os.WriteFile(filepath.Join(project, name), []byte(text), 0o644))
		}
		git("init", "-q")
		write("b.txt", "committed")
		write(".npmrc", "hunter2")
		git("add", "-A")
		git("commit", "-qm", "one")
		write("a.txt", "dirty before")
		write("new.txt", "new before")
		write("key.pem", "hunter3")
	})
	b, r := baseOf(w)
	got := map[string]string{}
	for _, e := range r.Entries {
		in, err := content.Open(t.Context(), kept{w.store}, e.Hash, e.Size)
		w.must(err)
		text, err := io.ReadAll(in)
		w.must(err)
		got[e.Path] = string(text)
	}
	if len(got) != 2 || got["a.txt"] != "dirty before" || got["new.txt"] != "new before" || b.Kind != "git" {
		t.Errorf("the %s base has %q", b.Kind, got)
	}
	s, err := w.read.Session(t.Context(), w.ID())
	warns := func(w string) bool { return strings.Contains(w, ".npmrc, which looks like a secret") }
	if w.must(err); !slices.ContainsFunc(s.Warnings, warns) {
		t.Errorf("it isn't said which file of git's looks like a secret: %q", s.Warnings)
	}
	if s, err := w.read.Session(t.Context(), w.ID()); err != nil || s.Commit == "" || s.Commit != r.Repositories[0].Commit {
		t.Errorf("the session is at %q, its base at %q, %v", s.Commit, r.Repositories[0].Commit, err)
	}
	missing, err := w.store.HasBodies(t.Context(), []store.Hash{store.HashOf([]byte("hunter2")), store.HashOf([]byte("hunter3"))})
	if err != nil || len(missing) != 2 {
		t.Errorf("a secret is among the bodies: %v", err)
	}
	for _, e := range r.Repositories[0].Tracked {
		if len(e.Hash) == 0 {
			t.Errorf("of %s the hash is %x", e.Path, e.Hash)
		}
	}
	_, err = w.Kill(t.Context())
	w.must(err)
	<-w.Done()
	// What the base needs is found from the session's row.
	refs := func(ctx context.Context, _ string, kind store.Kind, doc json.RawMessage) ([]store.Hash, error) {
		var s api.Session
		if kind != store.KindSession || json.Unmarshal(doc, &s) != nil || s.Base == nil {
			return nil, nil
		}
		needs, err := r.Refs(ctx, kept{w.store})
		var out []store.Hash
		for _, h := range needs {
			out = append(out, store.Hash(h))
		}
		return out, err
	}
	if err := verified(t.Context(), w.store, w.ID(), refs); err != nil {
		t.Error(err)
	}
	if s, err := w.read.Session(t.Context(), w.ID()); err != nil || s.Base == nil || *s.Base != *b {
		t.Errorf("at its end the session's base is %+v, %v", s.Base, err)
	}
}

// Of a folder that isn't in a repository names are known, and no contents.
func TestBaseOfAFolder(t *testing.T) {
	t.Parallel()
	w := startWith(t, api.ModeWatch, "sleep 60", func(project string) {
		must.OK(t, os.MkdirAll(filepath.Join(project, "d"), 0o755))
	})
	b, r := baseOf(w)
	if b.Kind != "names" || len(r.Entries) != 2 || r.Entries[0].Path != "a.txt" || r.Entries[0].Size != 6 || r.Entries[1].Path != "d" {
		t.Errorf("the %s base has %+v", b.Kind, r.Entries)
	}
	if missing, err := w.store.HasBodies(t.Context(), []store.Hash{store.HashOf([]byte("hello\n"))}); err != nil || len(missing) != 1 {
		t.Errorf("a content is kept: %v", err)
	}
}

// An agent that is done at once has a base all the same, recorded before the
// session's end, unless the machine is so busy that it says that it isn't whole.
func TestBaseOfAShortSession(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeWatch, "true")
	<-w.Done()
	s, err := w.read.Session(t.Context(), w.ID())
	if err != nil || s.State != api.SessionEnded || s.Base == nil || s.Base.Complete == (s.Base.Reason != "") || s.Base.Complete && s.Base.Files != 1 {
		t.Errorf("the session %s with the base %+v, %v", s.State, s.Base, err)
	}
}
