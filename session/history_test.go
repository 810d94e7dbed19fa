package session_test

import (
	"context"
	"encoding/json"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/files"
)

// said is all that a reader says of a scope's files: the list and every difference.
func said(t *testing.T, r interface {
	Changes(ctx context.Context, id string, in api.Scope, p api.Page) (api.Changes, error)
	Diff(ctx context.Context, id, key string, in api.Scope) (api.FileDiff, error)
	Diffs(ctx context.Context, id string, in api.Scope) iter.Seq2[api.FileDiff, error]
}, id string, n int) string {
	t.Helper()
	list, err := r.Changes(t.Context(), id, api.Scope{Action: n}, api.Page{})
	must.OK(t, err)
	list.Version, list.Final, list.Checkpoint = 0, false, 0 // of a live session alone
	for i := range list.Files {                             // what became of the project since is of now
		list.Files[i].Host, list.Files[i].Applied = "", false
	}
	all := []any{list}
	for d, err := range r.Diffs(t.Context(), id, api.Scope{Action: n}) {
		must.OK(t, err)
		one, err := r.Diff(t.Context(), id, d.Change.Key, api.Scope{Action: n})
		must.OK(t, err)
		all = append(all, d, one)
	}
	b, err := json.MarshalIndent(all, "", " ")
	must.OK(t, err)
	return string(b)
}

// A past session says of its files what it said while it lived, whatever became
// of the project folder since.
func TestPastSessionIsReadFromItsRecordAlone(t *testing.T) {
	t.Parallel()
	commit := strings.Repeat("a1", 20)
	w := startWith(t, api.ModeWatch, "rm -r old; sed -i s/hello/bye/ a.txt; mv kept.txt moved.txt; touch .git/description; touch done; read -t 60 x < <(sleep 61)", func(project string) {
		for name, text := range map[string]string{
			"kept.txt": "kept as it is\n", "old/one.txt": "one\n", "old/deep/two.txt": "two\n", "same.txt": "same\n",
			".git/HEAD": "ref: refs/heads/main\n", ".git/refs/heads/main": commit + "\n",
		} {
			p := filepath.Join(project, name)
			must.OK(t, os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o644))
		}
	})
	e := w.happened("the end of touch", func(e api.Event) bool {
		return e.Kind == "action.ended" && e.Action.Title == "touch done"
	})
	want := map[int]string{}
	for n := range e.Action.N + 1 {
		want[n] = said(t, w.read, w.ID(), n)
	}
	for _, words := range []string{`"path": "moved.txt"`, `"from": "kept.txt"`, `"path": "old/deep/two.txt"`, `"text": "hello"`, `"text": "two"`} {
		if !strings.Contains(want[0], words) {
			t.Fatalf("the live session says nothing of %s:\n%s", words, want[0])
		}
	}
	if _, err := w.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-w.Done()

	past := files.NewHistory(w.store, func(string) bool { return false })
	if list, err := past.Changes(t.Context(), w.ID(), api.Scope{}, api.Page{}); err != nil || list.Total == 0 {
		t.Errorf("%d files changed (%v)", list.Total, err)
	} else if info, err := past.Session(t.Context(), w.ID()); err != nil || info.Unapplied != list.Total-1 {
		t.Errorf("%d files aren't in the project (%v), want %d: all but what git has to itself", info.Unapplied, err, list.Total-1)
	}
	compare := func(what string) {
		t.Helper()
		for n, text := range want {
			if got := said(t, past, w.ID(), n); got != text {
				t.Errorf("%s, of action %d the record says\n%s\nwant\n%s", what, n, got, text)
			}
		}
	}
	compare("right after the end")
	if info, err := past.Session(t.Context(), w.ID()); err != nil || info.Commit != commit || info.Branch != "refs/heads/main" {
		t.Errorf("it began at %q on %q (%v)", info.Commit, info.Branch, err)
	}
	w.must(os.WriteFile(filepath.Join(w.project, "a.txt"), []byte("what the person wrote\n"), 0o644))
	w.must(os.WriteFile(filepath.Join(w.project, "same.txt"), []byte("this too\n"), 0o644))
	past = files.NewHistory(w.store, func(string) bool { return false })
	compare("after the person's edits")
	w.must(os.RemoveAll(w.project))
	past = files.NewHistory(w.store, func(string) bool { return false })
	compare("without the folder")
}
