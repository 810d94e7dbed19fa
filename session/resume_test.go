package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stepbox/session"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/store"
)

// again ends the session and resumes it.
func (w *world) again(meanwhile func(upper string)) {
	w.Helper()
	_, err := w.Kill(w.Context())
	w.must(err)
	meanwhile(filepath.Join(w.store.SessionDir(w.ID()), "upper"))
	w.config.Resume = true
	w.Session, err = session.Start(w.Context(), w.store, w.config)
	w.must(err)
	w.read = w.Reader()
}

// row is the session's as it was recorded last.
func (w *world) row() (s api.Session) {
	w.Helper()
	doc, err := w.store.Doc(w.Context(), w.ID(), store.KindSession, 0)
	w.must(err)
	w.must(json.Unmarshal(doc, &s))
	return s
}

// TestResume: a session that has ended goes on as the same one. What it did before
// can be taken back and comes again as ever, and what it changed is compared with
// the project as it was first seen.
func TestResume(t *testing.T) {
	t.Parallel()
	d := drive(t, api.ModePolicy, func(project string) {
		must.OK(t, os.WriteFile(filepath.Join(project, "a"), []byte(seven), 0o600))
	})
	first := d.run("sed -i s/1/one/ a; echo 1 >made")
	second := d.run("sed -i s/7/seven/ a; echo 2 >other")
	_, out := d.take(only(first))
	third := d.run("echo 3 >third")
	fourth := d.run("echo 4 >fourth")
	d.take(api.Before(fourth))
	before, changes := d.row(), d.changed(0)
	actions, err := d.read.Actions(t.Context(), d.ID())
	d.must(err)
	var ended api.Session
	d.again(func(string) {
		ended = d.row()
		d.must(os.WriteFile(filepath.Join(d.project, "a"), []byte("the person's\n"), 0o600))
	})
	now := d.row()
	if ran := ended.EndedAt.Sub(ended.StartedAt); now.RanBefore != ran || now.Ran(now.ResumedAt.Add(time.Second)) != ran+time.Second {
		t.Errorf("it ran %s before it was resumed, not %s", ran, now.RanBefore)
	}
	if now.Number != before.Number || !now.StartedAt.Equal(before.StartedAt) || now.Resumed != 1 || now.ResumedAt.Before(before.StartedAt) || now.State != api.SessionRunning ||
		now.Exit != nil || now.EndedBy != "" || now.Base == nil || now.Base.Hash != before.Base.Hash || now.Printed == 0 {
		t.Errorf("it was  %+v\nit is now %+v", before, now)
	}
	if got := d.changed(0); !slices.Equal(got, changes) {
		t.Errorf("the changes are %q, and were %q", got, changes)
	}
	if before.Rollbacks != 2 || now.Rollbacks != 2 || now.Changed != len(changes) {
		t.Errorf("%d roll backs and then %d, %d files changed, want 2, 2 and %d", before.Rollbacks, now.Rollbacks, now.Changed, len(changes))
	}
	fifth := d.run("echo 5 >fifth")
	if fifth <= fourth {
		t.Errorf("an action after %d is %d", fourth, fifth)
	}
	list, err := d.read.Actions(t.Context(), d.ID())
	d.must(err)
	for i, a := range actions {
		b := list[i]
		if a.N != b.N || a.Title != b.Title || a.State != b.State && a.State != api.ActionRunning || a.Review != b.Review || a.Files != b.Files || !slices.Equal(a.Spans, b.Spans) {
			t.Errorf("action %+v\nis now %+v", a, b)
		}
	}
	// What was taken back alone isn't there, so going on elsewhere doesn't bring it.
	if d.review(first) != api.ReviewRolledBack || d.has("made") != "" {
		t.Errorf("#%d is %q and made is %q", first, d.review(first), d.has("made"))
	}
	d.take(only(second))
	if got := d.has("a"); got != seven || d.has("other") != "" || d.review(second) != api.ReviewRolledBack || d.review(third) == api.ReviewRolledBack {
		t.Errorf("a is %q, other is %q", got, d.has("other"))
	}
	d.take(api.RollbackTarget{Redo: out.ID})
	if got := d.has("a"); got != strings.Replace(seven, "1", "one", 1) || d.has("made") != "1\n" || d.review(first) == api.ReviewRolledBack {
		t.Errorf("a is %q, made is %q and #%d is %q", got, d.has("made"), first, d.review(first))
	}
	// Going back and forward again over the end finds the reviews that there were.
	sixth := d.run("echo 6 >sixth")
	d.take(api.Before(third))
	if d.review(third) != api.ReviewRolledBack || d.review(fifth) != api.ReviewRolledBack || d.has("third") != "" {
		t.Errorf("#%d is %q", third, d.review(third))
	}
	d.again(func(string) {})
	d.take(api.Before(sixth))
	if d.review(third) == api.ReviewRolledBack || d.review(fifth) == api.ReviewRolledBack || d.has("third") != "3\n" || d.has("fifth") != "5\n" {
		t.Errorf("#%d is %q, #%d %q", third, d.review(third), fifth, d.review(fifth))
	}
	_, err = d.Kill(t.Context())
	d.must(err)
	d.must(verified(t.Context(), d.store, d.ID()))
}

// TestResumeFindsWhatChanged: what isn't as it was recorded is an edit, which is
// asked about as any in step mode, and said.
func TestResumeFindsWhatChanged(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeStep, "read x")
	w.again(func(upper string) { w.must(os.WriteFile(filepath.Join(upper, "by-hand"), []byte("x\n"), 0o644)) })
	q := w.held(0)
	if q.Subject != api.SubjectEdit || q.Title != "edit by-hand" {
		t.Errorf("%s %q is held", q.Subject, q.Title)
	}
	w.happened("word of it", func(e api.Event) bool {
		return e.Note != nil && strings.Contains(e.Note.Text, "#1 is what was changed since")
	})
	w.must(w.decide(q, api.AnswerRollback))
	if w.has("by-hand") != "" {
		t.Error("it wasn't rolled back")
	}
}

// TestResumeAsksWhatWasntAnswered: who ends the agent, or itself, while a question about changes waits isn't
// rid of it.
func TestResumeAsksWhatWasntAnswered(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeStep, "echo mine >made; read x; cat made; read x")
	first := w.held(0)
	if first.Subject != api.SubjectEdit {
		t.Fatalf("%s %q is held", first.Subject, first.Title)
	}
	w.config.Argv = []string{"sh", "-c", "cat made; read x"}
	w.again(func(string) {})
	q := w.held(first.ID)
	if q.Subject != api.SubjectEdit || q.Title != "edit made" || len(q.Changes) != 1 || q.Action != 1 {
		t.Errorf("%s %q of #%d is held, with %v", q.Subject, q.Title, q.Action, q.Changes)
	}
	command := w.held(q.ID)
	if command.Title != "cat made" {
		t.Errorf("%q is held", command.Title)
	}
	var p *api.Problem
	if err := w.decide(command, api.AnswerApprove); !errors.As(err, &p) || p.Code != api.CodeBusy {
		t.Errorf("the command is approved before the edit is looked at: %v", err)
	}
	w.must(w.decide(q, api.AnswerRollback))
	if w.has("made") != "" {
		t.Error("it wasn't rolled back")
	}
	w.must(w.decide(command, api.AnswerDeny))
}

// What a command changed after a person had kept what it had changed until then is asked about again, also
// where its supervisor was killed before it could ask.
func TestResumeAsksBeyondWhatWasKept(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeStep, "sh -c 'echo 1 >one'; read x; read x")
	w.must(w.decide(w.held(0), api.AnswerApprove))
	kept := w.held(1)
	w.must(w.decide(kept, api.AnswerKeep))
	w.config.Argv = []string{"sh", "-c", "read x"}
	w.again(func(string) {
		doc, err := w.store.Doc(t.Context(), w.ID(), store.KindAction, 1)
		w.must(err)
		var a api.Action
		w.must(json.Unmarshal(doc, &a))
		if len(a.Spans) != 1 || a.KeptTo != a.Spans[0].To || a.Review != api.ReviewKept {
			t.Errorf("recorded as kept: %+v", a)
		}
		a.KeptTo-- // as if it had changed more, and been looked at no more
		doc, err = json.Marshal(a)
		w.must(err)
		_, err = w.store.Append(t.Context(), w.ID(), store.Fact{Kind: store.KindAction, Key: 1, Event: "action.counted", Doc: doc})
		w.must(err)
	})
	if q := w.held(kept.ID); q.Subject != api.SubjectEdit || q.Action != 1 || len(q.Changes) != 1 {
		t.Errorf("%s %q of #%d is held, with %v", q.Subject, q.Title, q.Action, q.Changes)
	}
}

// TestResumeThatFails leaves the session as it was: its files, its record, and
// that it can be resumed.
func TestResumeThatFails(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeWatch, "echo kept >kept; read x")
	w.happened("the edit", func(e api.Event) bool { return e.Kind == "action.edited" })
	_, err := w.Kill(t.Context())
	w.must(err)
	seq, err := w.store.LastEvent(t.Context(), w.ID())
	w.must(err)
	bad := w.config
	bad.Resume, bad.Argv = true, []string{"no-such-program"}
	if _, err := session.Start(t.Context(), w.store, bad); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Fatalf("it is resumed with what isn't there: %v", err)
	}
	if now, err := w.store.LastEvent(t.Context(), w.ID()); err != nil || now != seq || w.has("kept") != "kept\n" {
		t.Errorf("the record has %d events and had %d, %v; kept is %q", now, seq, err, w.has("kept"))
	}
	w.again(func(upper string) {
		w.must(os.Rename(upper, upper+"-away"))
		if _, err := session.Start(t.Context(), w.store, bad); err == nil || !strings.Contains(err.Error(), "aren't there any more") {
			t.Errorf("without its files it is resumed: %v", err)
		}
		w.must(os.Rename(upper+"-away", upper))
	})
	if got := w.changed(0); !slices.Equal(got, []string{"A kept"}) {
		t.Errorf("the changes are %q", got)
	}
}

// TestHear: a session takes in what its neighbours tell, and nothing from who is none.
func TestHear(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeWatch, "echo mine >held; read x")
	w.happened("the edit", func(e api.Event) bool { return e.Kind == "action.edited" })
	other := api.Neighbour{ID: "other", Name: "o", Folder: filepath.Dir(w.project)}
	tell := func(n api.News) error {
		_, err := w.Hear(t.Context(), n)
		return err
	}
	for range 2 {
		w.must(tell(api.News{Kind: api.NewsStarted, From: other}))
	}
	if b := w.row().Beside; len(b) != 1 || b[0] != other {
		t.Errorf("beside it are %+v", b)
	}
	in := func(name string) []byte { return []byte(filepath.Join(filepath.Base(w.project), name)) }
	w.must(tell(api.News{Kind: api.NewsApplied, From: other, Paths: [][]byte{in("held"), in("new"), []byte("elsewhere")}}))
	w.happened("word of it", func(e api.Event) bool {
		return e.Note != nil && e.Note.Warn && strings.Contains(e.Note.Text, "wrote held to the project, which this session has changed too")
	})
	w.must(tell(api.News{Kind: api.NewsApplied, From: other, Paths: [][]byte{in("new")}}))
	w.happened("word of it", func(e api.Event) bool {
		return e.Note != nil && strings.Contains(e.Note.Text, "wrote new to the project, which this session sees")
	})
	w.must(tell(api.News{Kind: api.NewsEnded, From: other}))
	if b := w.row().Beside; len(b) != 0 {
		t.Errorf("beside it are %+v", b)
	}
	for _, n := range []api.News{
		{Kind: api.NewsStarted, From: api.Neighbour{ID: "far", Folder: w.project + "-else"}},
		{Kind: api.NewsStarted, From: api.Neighbour{ID: w.ID(), Folder: w.project}},
		{Kind: "rumour", From: other},
	} {
		var p *api.Problem
		if err := tell(n); !errors.As(err, &p) || p.Code != api.CodeInvalid {
			t.Errorf("%+v is answered with %v", n, err)
		}
	}
}

// TestResumedSessionKnowsWhatIsIgnored: what git ignores isn't counted as work that
// nobody applied.
func TestResumedSessionKnowsWhatIsIgnored(t *testing.T) {
	t.Parallel()
	d := drive(t, api.ModePolicy, func(project string) {
		err := os.MkdirAll(filepath.Join(project, ".git", "objects"), 0o755)
		for path, text := range map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".gitignore": "*.log\n"} {
			err = errors.Join(err, os.WriteFile(filepath.Join(project, path), []byte(text), 0o600))
		}
		must.OK(t, err)
	})
	d.run("echo 1 >a.log; echo 1 >made")
	d.again(func(string) {})
	_, err := d.Kill(t.Context())
	d.must(err)
	if n := d.row().Unapplied; n != 1 {
		t.Errorf("%d changes wait to be applied, not 1", n)
	}
}

// verified is what the record of a session doesn't agree with itself in.
func verified(ctx context.Context, st *store.Store, id string, more ...store.References) error {
	found, err := st.Examine(ctx, id, store.Examination{More: more})
	for _, p := range found.Problems {
		err = errors.Join(err, p)
	}
	return err
}
