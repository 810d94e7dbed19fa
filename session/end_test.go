package session_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"stepbox/session"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/files"
	"stepbox/store"
	"stepbox/store/storetest"
)

// refuse makes the record refuse rows of a table from here on.
func (w *world) refuse(kind store.Kind) {
	w.Helper()
	db, err := sql.Open("sqlite3", filepath.Join(filepath.Dir(w.project), "data", "stepbox.db")) // the driver is store's
	w.must(err)
	_, err = db.Exec(fmt.Sprintf(`PRAGMA busy_timeout = 5000; CREATE TRIGGER refuse_%[1]s BEFORE INSERT ON events WHEN NEW.kind = '%[1]s' BEGIN SELECT RAISE(ABORT, 'refused'); END`, kind))
	w.must(errors.Join(err, db.Close()))
}

// enter presses the agent's enter key.
func (w *world) enter() {
	v := w.Terminal().Join()
	defer v.Close()
	v.Input([]byte("\n"))
}

// over waits for the session's end and gives what is recorded of it.
func (w *world) over() api.Session {
	w.Helper()
	select {
	case <-w.Done():
	case <-time.After(patience):
		w.Fatal("the session didn't end")
	}
	b, err := w.store.Doc(context.Background(), w.ID(), store.KindSession, 0)
	w.must(err)
	var s api.Session
	w.must(json.Unmarshal(b, &s))
	return s
}

func TestUnrecordedCheckpointEndsTheSession(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModePolicy, "read x; echo edited > b.txt; read y")
	w.refuse(store.KindCheckpoint)
	w.enter()
	s := w.over()
	if s.State != api.SessionEnded || s.EndedBy != api.ByFailure || !strings.Contains(s.Reason, "refused") {
		t.Errorf("the session is %s, ended by %q: %q", s.State, s.EndedBy, s.Reason)
	}
}

func TestUnrecordedActionDoesNotRun(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModePolicy, "read x; touch done; read y")
	w.refuse(store.KindAction)
	w.enter()
	if s := w.over(); s.EndedBy != api.ByFailure {
		t.Errorf("the session was ended by %q: %q", s.EndedBy, s.Reason)
	}
	if _, err := os.Stat(filepath.Join(w.store.SessionDir(w.ID()), "upper", "done")); err == nil {
		t.Error("touch ran, though it couldn't be recorded")
	}
}

// A record that takes nothing any more doesn't keep the session from ending.
func TestEndThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModePolicy, "read x; cat a.txt; read y")
	w.refuse(store.KindSession)
	w.enter()
	if s := w.over(); s.State == api.SessionEnded {
		t.Errorf("the end is recorded though that was refused")
	}
}

func TestEndSaysWhatBroughtItAbout(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModePolicy, "exit 3")
	if s := w.over(); s.EndedBy != api.ByAgent || s.Exit == nil || s.Exit.Code != 3 || s.Reason != "" {
		t.Errorf("an agent that ended left %q, %v, %q", s.EndedBy, s.Exit, s.Reason)
	}
	w = start(t, api.ModePolicy, "read x")
	s, err := w.Kill(t.Context())
	w.must(err)
	if got := w.over(); got.EndedBy != s.EndedBy || s.EndedBy != api.ByPerson || s.Reason == "" {
		t.Errorf("one that was killed left %q, %q", s.EndedBy, s.Reason)
	}
}

// Whatever clients ask for while a session ends is done, refused or too late.
func TestRequestsDuringTheEnd(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeStep, "cp a.txt b.txt; sleep 60")
	q := w.held(0)
	w.must(w.decide(q, api.AnswerApprove))
	review := w.held(q.ID)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	fine := func(err error) bool { return err == nil || errors.Is(err, session.ErrEnded) || code(err) != "" }
	var wg sync.WaitGroup
	for _, ask := range []func() error{
		func() error { _, err := w.Keep(ctx, review.Action); return err },
		func() error { return w.decide(review, api.AnswerKeep) },
		func() error { _, err := w.SetMode(ctx, api.ModePolicy); return err },
		func() error { _, err := w.Pause(ctx); return err },
		func() error { _, err := w.Continue(ctx); return err },
		func() error { _, err := w.read.Questions(ctx, w.ID()); return err },
		func() error {
			_, err := w.RollbackPlan(ctx, api.RollbackRequest{RollbackTarget: api.Before(review.Action)})
			return err
		},
	} {
		wg.Go(func() {
			for {
				select {
				case <-w.Done():
					if err := ask(); !fine(err) {
						t.Errorf("after the end: %v", err)
					}
					return
				default:
				}
				if err := ask(); !fine(err) && !strings.Contains(err.Error(), "cannot") {
					t.Errorf("during the end: %v", err)
				}
			}
		})
	}
	_, err := w.Kill(ctx)
	w.must(err)
	wg.Wait()
}

func TestKeepAndRollBackDoNotBothHappen(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeStep, "cp a.txt b.txt; read x")
	q := w.held(0)
	w.must(w.decide(q, api.AnswerApprove))
	review := w.held(q.ID)
	w.onlyOne(8, review, api.AnswerKeep, api.AnswerRollback)
	var last api.Action
	for e, err := range w.read.Recorded(t.Context(), w.ID(), 0) {
		w.must(err)
		if e.Action != nil && e.Action.N == review.Action {
			last = *e.Action
		}
	}
	_, err := os.Stat(filepath.Join(w.store.SessionDir(w.ID()), "upper", "b.txt"))
	if kept := err == nil; kept != (last.Review == api.ReviewKept) {
		t.Errorf("the action is recorded as %q, and the file is kept: %v", last.Review, kept)
	}
}

func TestRefusedRollBackLeavesTheQuestionOpen(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeStep, "cp a.txt b.txt; echo c >> b.txt; read x")
	q := w.held(0)
	w.must(w.decide(q, api.AnswerApprove))
	review := w.held(q.ID)
	edit := w.held(review.ID)
	if edit.Subject != api.SubjectEdit || edit.Action == review.Action {
		t.Fatalf("held %s of action %d, want the edit that followed", edit.Subject, edit.Action)
	}
	if err := w.decide(review, api.AnswerRollback); code(err) != api.CodeBusy {
		t.Fatalf("taking back what others built upon got %v, want %s", err, api.CodeBusy)
	}
	var states []string
	for e, err := range w.read.Recorded(t.Context(), w.ID(), 0) {
		w.must(err)
		if e.Question != nil && e.Question.ID == review.ID {
			states = append(states, strings.TrimSpace(strings.TrimPrefix(e.Kind, "question.")+" "+e.Question.Answering))
		}
	}
	if got := strings.Join(states, ", "); got != "opened, answering test, reopened" {
		t.Errorf("the question was %s", got)
	}
	w.must(w.decide(review, api.AnswerKeep))
	if err := w.decide(review, api.AnswerRollback); code(err) != api.CodeDecided || !strings.Contains(err.Error(), "test already answered: keep") {
		t.Errorf("a later answer got %v", err)
	}
}

// A session's numbers are told with what they count, not with the next thing.
func TestNumbersCountWhatRuns(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeWatch, "sleep 600; exit 0")
	w.happened("the session counts one action", func(e api.Event) bool { return e.Session != nil && e.Session.Actions == 1 })
}

func TestNumbersAreThoseOfTheRecord(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModePolicy, "cp a.txt b.txt; cat a.txt; cp b.txt c.txt; exit 0")
	s := w.over()
	actions, err := files.NewHistory(w.store, func(string) bool { return false }).Actions(t.Context(), w.ID())
	w.must(err)
	listed, open, last := 0, 0, ""
	for _, a := range actions {
		if !a.Housekeeping {
			listed, last = listed+1, a.Title
		}
		if a.Review == api.ReviewOpen {
			open++
		}
	}
	if listed < 3 || open < 2 || s.Actions != listed || s.Unreviewed != open || s.LastAction != last || s.Held != 0 {
		t.Errorf("the session counts %d actions, %d unreviewed, %d held, the last %q; the record has %d, %d, 0, %q",
			s.Actions, s.Unreviewed, s.Held, s.LastAction, listed, open, last)
	}
	if s.Changed != 2 || s.Unapplied != 2 || s.Denials != 0 {
		t.Errorf("%d files changed, %d to apply, %d denials", s.Changed, s.Unapplied, s.Denials)
	}
}

// A start that fails when the agent runs already ends it, and says so in the row.
func TestStartThatFailsLate(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.OK(t, err)
	w := &world{T: t, project: filepath.Join(dir, "project")}
	data, run := filepath.Join(dir, "data"), filepath.Join(dir, "run")
	for _, d := range []string{w.project, data, run} {
		w.must(os.Mkdir(d, 0o700))
	}
	w.store = storetest.Open(t, data)
	id := newID()
	w.must(os.MkdirAll(w.store.SessionDir(id), 0o700))
	w.must(os.WriteFile(filepath.Join(w.store.SessionDir(id), "terminal"), nil, 0o600)) // where a folder has to be
	_, err = session.Start(t.Context(), w.store, session.Config{
		ID: id, Name: "t", Workspace: w.project, Home: dir, Argv: []string{"bash", "-c", "/bin/true; read x"},
		Env:  []string{"PATH=/usr/local/bin:/usr/bin:/bin"},
		Mode: api.ModePolicy, Cols: 80, Rows: 24, DataDir: data, RunDir: run,
	})
	if err == nil || !strings.Contains(err.Error(), "cannot record the terminal") {
		t.Fatalf("the start came to %v", err)
	}
	b, err := w.store.Doc(t.Context(), id, store.KindSession, 0)
	w.must(err)
	var s api.Session
	w.must(json.Unmarshal(b, &s))
	if s.State != api.SessionEnded || s.EndedBy != api.ByFailure || !strings.Contains(s.Reason, "cannot record the terminal") {
		t.Errorf("the session is recorded as %s, ended by %q: %q", s.State, s.EndedBy, s.Reason)
	}
}
