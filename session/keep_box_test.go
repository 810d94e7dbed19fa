package session_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// endOf waits for the end of the action that a question was about.
func (w *world) endOf(q api.Question) api.Action {
	w.Helper()
	e := w.happened("the end of an action", func(e api.Event) bool {
		return e.Kind == "action.ended" && e.Action.N == q.Action
	})
	return *e.Action
}

// What git ignores isn't asked about twice, and neither is a commit; a source
// and a hook are. The rules are those of before the session: the agent's own
// don't count.
func TestBuildOutputAndCommitsAreKeptByRule(t *testing.T) {
	t.Parallel()
	needGit(t)
	script := "mkdir -p build; cp a.txt build/out; git add a.txt; git -c user.name=a -c user.email=a@b commit -qm one; " +
		"cp a.txt .git/hooks/pre-commit; cp a.txt b.txt; sleep 60"
	w := startWith(t, api.ModeStep, script, func(project string) {
		gitIn(t, project, "init", "-q")
		must.OK(t, os.WriteFile(filepath.Join(project, ".gitignore"), []byte("build\n"), 0o644))
	})
	last := int64(0)
	for _, want := range []struct {
		title string
		kept  bool
	}{
		{"mkdir -p build", true}, {"cp a.txt build/out", true}, {"git add a.txt", true},
		{"git -c user.name=a -c user.email=a@b commit -qm one", true},
		{"cp a.txt .git/hooks/pre-commit", false}, {"cp a.txt b.txt", false},
	} {
		q := w.held(last)
		if q.Subject != api.SubjectCommand || q.Title != want.title {
			t.Fatalf("held %s %q, want the command %q", q.Subject, q.Title, want.title)
		}
		w.must(w.decide(q, api.AnswerApprove))
		a := w.endOf(q)
		if a.Files == 0 {
			t.Errorf("%q is said to have changed nothing", want.title)
		}
		kept := a.Review == api.ReviewKept
		if kept && !want.kept || kept != (a.Kept != "") {
			t.Errorf("%q: the review is %q, kept by %q", want.title, a.Review, a.Kept)
		}
		last = q.ID
		if !kept {
			review := w.held(q.ID)
			if review.Subject != api.SubjectEdit {
				t.Fatalf("after %q: held %s %q, want a review", want.title, review.Subject, review.Title)
			}
			if want.kept && !strings.HasSuffix(review.Rule, "; the agent may have had a hand in some of them") { // as on a busy machine
				t.Errorf("%q is asked about: %s", want.title, review.Rule)
			}
			w.must(w.decide(review, api.AnswerKeep))
			last = review.ID
		}
	}
}

// One answer may approve a command and keep what it changes.
func TestApproveAndKeep(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeStep, "cp a.txt b.txt; cat b.txt; sleep 60")
	q := w.held(0)
	w.must(w.decide(q, api.AnswerApproveKeep))
	if a := w.endOf(q); a.Review != api.ReviewKept || a.Files != 1 || a.Kept == "" {
		t.Errorf("the review is %q, %d files, kept by %q", a.Review, a.Files, a.Kept)
	}
	next := w.held(q.ID)
	if next.Title != "cat b.txt" {
		t.Fatalf("held %s %q, want the next command", next.Subject, next.Title)
	}
	w.must(w.decide(next, api.AnswerApprove))
}
