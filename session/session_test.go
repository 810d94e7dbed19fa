package session_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"stepbox/runner"
	"stepbox/session"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/tell"
	"stepbox/session/tell/mcp"
	"stepbox/store"
	"stepbox/store/storetest"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "hook" { // an agent's, in its sandbox
		tell.RunHook(os.Args[2], os.Args[3], os.Stdin, os.Stdout, runner.SocketPath(tell.Socket))
		os.Exit(0)
	}
	if len(os.Args) == 2 && os.Args[1] == "mcp" {
		_ = mcp.Serve(context.Background(), "test", runner.SocketPath(tell.Socket))
		os.Exit(0)
	}
	runner.Reexec()                                               // the sandboxes' own processes are this binary too
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")) // else each process of a build with -race takes a second to end
	home, err := os.MkdirTemp("", "home")                         // one for all: a session's own is in its configuration
	if err != nil {
		panic(err)
	}
	os.Setenv("HOME", home)
	if err := flag.Set("test.parallel", "4"); err != nil { // they wait for their sandboxes most of the time
		panic(err)
	}
	goleak.VerifyTestMain(m, must.LeftByRunc, goleak.Cleanup(func(code int) {
		os.RemoveAll(home)
		os.Exit(code)
	}))
}

// patience bounds waits for what should happen at once: on a busy machine it
// takes long, and only a test that fails waits for all of it.
const patience = 2 * time.Minute

var sessions atomic.Int64

// newID names a session as no other of this machine, which has one tree of cgroups for all.
func newID() string { return fmt.Sprintf("test%dn%d", os.Getpid(), sessions.Add(1)) }

// world is one session in a real sandbox.
type world struct {
	*testing.T
	*session.Session
	read    *session.Live
	store   *store.Store
	config  session.Config
	project string
}

func start(t *testing.T, mode api.Mode, script string) *world {
	t.Helper()
	return startWith(t, mode, script, func(string) {})
}

// startWith starts a session whose project was prepared.
func startWith(t *testing.T, mode api.Mode, script string, prepare func(project string)) *world {
	t.Helper()
	return startProgram(t, mode, prepare, "bash", "-c", script)
}

// startProgram starts a session of another agent than a shell.
func startProgram(t *testing.T, mode api.Mode, prepare func(project string), argv ...string) *world {
	t.Helper()
	return startConfigured(t, prepare, func(c *session.Config) { c.Mode = mode }, argv...)
}

// startConfigured starts a session with some of its configuration a test's own.
func startConfigured(t *testing.T, prepare func(project string), configure func(*session.Config), argv ...string) *world {
	t.Helper()
	must.Sampled(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.OK(t, err)
	w := &world{T: t, project: filepath.Join(dir, "project")}
	home, data, run := filepath.Join(dir, "home"), filepath.Join(dir, "data"), filepath.Join(dir, "run")
	for _, d := range []string{w.project, home, data, run} {
		must.OK(t, os.Mkdir(d, 0o700))
	}
	must.OK(t, os.WriteFile(filepath.Join(w.project, "a.txt"), []byte("hello\n"), 0o644))
	prepare(w.project)
	w.store = storetest.Open(t, data)
	w.config = session.Config{
		ID: newID(), Name: "t", Workspace: w.project, Home: home,
		Argv: argv, Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"},
		Cols: 80, Rows: 24, DataDir: data, RunDir: run,
		Limits: runner.Limits{Pids: 200},
	}
	configure(&w.config)
	if w.Session, err = session.Start(t.Context(), w.store, w.config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if _, err := w.Kill(ctx); err != nil && !errors.Is(err, session.ErrEnded) {
			t.Errorf("cannot end the session: %v", err)
		}
	})
	w.read = w.Reader()
	return w
}

// held waits for the next open question after some number.
func (w *world) held(after int64) api.Question {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	for e, err := range w.read.Events(ctx, w.ID(), 0) {
		must.OK(w, err)
		if q := e.Question; q != nil && q.ID > after && e.Kind == "question.opened" {
			return *q
		}
	}
	w.Fatalf("nothing was held after question %d", after)
	return api.Question{}
}

// heldAbout is that of one subject: what an action changed and the command after it may be asked in
// either order.
func (w *world) heldAbout(subject api.Subject, after int64) api.Question {
	w.Helper()
	return *w.happened("a question about "+string(subject), func(e api.Event) bool {
		return e.Kind == "question.opened" && e.Question.ID > after && e.Question.Subject == subject
	}).Question
}

// happened waits for an event.
func (w *world) happened(what string, is func(api.Event) bool) api.Event {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	for e, err := range w.read.Events(ctx, w.ID(), 0) {
		must.OK(w, err)
		if is(e) {
			return e
		}
	}
	w.Fatalf("%s didn't happen", what)
	return api.Event{}
}

func (w *world) decide(q api.Question, a api.Answer) error {
	_, err := w.Decide(w.Context(), api.Decision{Question: q.ID, Hash: q.Hash, Answer: a, By: "test"})
	return err
}

func (w *world) must(err error) {
	w.Helper()
	must.OK(w, err)
}

func code(err error) string {
	var p *api.Problem
	if errors.As(err, &p) {
		return p.Code
	}
	return ""
}

// onlyOne gives a question's two answers in turn, all at once: one of them counts.
func (w *world) onlyOne(times int, q api.Question, answers ...api.Answer) {
	w.Helper()
	results := make(chan error, times)
	var wg sync.WaitGroup
	for i := range times {
		wg.Go(func() { results <- w.decide(q, answers[i%len(answers)]) })
	}
	wg.Wait()
	close(results)
	won := 0
	for err := range results {
		switch {
		case err == nil:
			won++
		case code(err) != api.CodeDecided:
			w.Errorf("a late answer got %v, want %s", err, api.CodeDecided)
		}
	}
	if won != 1 {
		w.Errorf("%d answers counted, want 1", won)
	}
}

func TestFirstAnswerWins(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeStep, "cat a.txt; sleep 60")
	q := w.held(0)
	w.onlyOne(16, q, api.AnswerDeny, api.AnswerApprove)
	decisions, err := w.store.Docs(t.Context(), w.ID(), store.KindDecision, -1, 0)
	w.must(err)
	if len(decisions) != 1 {
		t.Errorf("%d decisions are recorded, want 1", len(decisions))
	}
}

func TestDecisionIsBoundToWhatWasShown(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeStep, "cat a.txt; sleep 60")
	q := w.held(0)
	other := q
	other.Hash = strings.Repeat("0", len(q.Hash))
	if err := w.decide(other, api.AnswerApprove); code(err) != api.CodeStale {
		t.Errorf("a decision on something else got %v, want %s", err, api.CodeStale)
	}
	other = q
	other.ID = 99
	if err := w.decide(other, api.AnswerApprove); code(err) != api.CodeNotFound {
		t.Errorf("a decision on nothing got %v, want %s", err, api.CodeNotFound)
	}
	if err := w.decide(q, api.AnswerKeep); code(err) != api.CodeInvalid {
		t.Errorf("keeping what hasn't run got %v, want %s", err, api.CodeInvalid)
	}
	w.must(w.decide(q, api.AnswerApprove))
}

func TestWhatGoesAwayCannotBeApproved(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeStep, "(sh -c true) & sleep 0.1 2>/dev/null; read -t 0.3 x < <(:); kill -9 $!; exec -a last sleep 60")
	q := w.held(0)
	_, err := w.Kill(t.Context())
	w.must(err)
	if err := w.decide(q, api.AnswerApprove); err == nil {
		t.Error("a question of a dead session was answered")
	}
	var closed api.Question
	for e, err := range w.read.Recorded(t.Context(), w.ID(), 0) {
		w.must(err)
		if e.Question != nil && e.Question.ID == q.ID {
			closed = *e.Question
		}
	}
	if closed.Closed != "withdrawn" {
		t.Errorf("the question ended as %q, want withdrawn", closed.Closed)
	}
}

func TestStepIntoHoldsWhatAnActionStarts(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeStep, "sh -c 'cat a.txt; true'; sleep 60")
	q := w.held(0)
	w.must(w.decide(q, api.AnswerStepInto))
	nested := w.held(q.ID)
	if nested.Subject != api.SubjectNested || nested.Action != q.Action || nested.Title != "cat a.txt" {
		t.Errorf("held %s %q of action %d, want a nested cat a.txt of action %d", nested.Subject, nested.Title, nested.Action, q.Action)
	}
	w.must(w.decide(nested, api.AnswerDeny))
	e := w.happened("the action's end", func(e api.Event) bool { return e.Kind == "action.ended" })
	if e.Action.Exit == nil || e.Action.Exit.Code != 0 {
		t.Errorf("the action ended with %v, want its own 0", e.Action.Exit)
	}
}

func TestStepOverHoldsTheNextAction(t *testing.T) {
	t.Parallel()
	w := startAsking(t, api.ModePolicy, "rm -rf .; cat a.txt; sleep 60")
	q := w.held(0)
	w.must(w.decide(q, api.AnswerStepOver))
	if next := w.held(q.ID); next.Title != "cat a.txt" {
		t.Errorf("held %q, want cat a.txt", next.Title)
	}
}

func TestReviewComesFirstInStepMode(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeStep, "cp a.txt b.txt; cat b.txt; sleep 60")
	q := w.held(0)
	w.must(w.decide(q, api.AnswerApprove))
	review := w.held(q.ID)
	if review.Subject != api.SubjectEdit || review.Action != q.Action {
		t.Fatalf("held %s of action %d, want the review of action %d", review.Subject, review.Action, q.Action)
	}
	next := w.held(review.ID)
	if err := w.decide(next, api.AnswerApprove); code(err) != api.CodeBusy {
		t.Errorf("the next action got %v before the review, want %s", err, api.CodeBusy)
	}
	w.must(w.decide(review, api.AnswerRollback))
	if err := w.decide(review, api.AnswerKeep); code(err) != api.CodeDecided {
		t.Errorf("keeping what was rolled back got %v, want %s", err, api.CodeDecided)
	}
	changes, err := w.read.Changes(t.Context(), w.ID(), api.Scope{}, api.Page{})
	w.must(err)
	if len(changes.Files) != 0 {
		t.Errorf("after the roll back %v differs", changes.Files)
	}
	w.must(w.decide(next, api.AnswerApprove))
	e := w.happened("the end of cat", func(e api.Event) bool { return e.Kind == "action.ended" && e.Action.Title == "cat b.txt" })
	if e.Action.Exit.Code == 0 {
		t.Error("cat still found the file that was rolled back")
	}
}

func TestEditsAreNotACommands(t *testing.T) {
	t.Parallel()
	// The shell writes the moment that cat has ended; cat must not get the blame.
	w := start(t, api.ModePolicy, "for i in 1 2 3 4 5 6 7 8 9 10; do cat a.txt; echo $i > b.txt; done; read x")
	w.happened("the last edit", func(e api.Event) bool {
		n, err := os.ReadFile(filepath.Join(w.store.SessionDir(w.ID()), "upper", "b.txt"))
		return err == nil && string(n) == "10\n"
	})
	for e, err := range w.read.Recorded(t.Context(), w.ID(), 0) {
		w.must(err)
		if a := e.Action; e.Kind == "action.ended" && a.Kind == api.KindCommand && a.Files != 0 {
			t.Errorf("action %d, %s, is said to have changed %d files", a.N, a.Title, a.Files)
		}
	}
}

func TestNothingRunsUnrecorded(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModePolicy, "read x; touch done; read y")
	w.must(w.store.Close()) // no row can be committed from here on
	v := w.Terminal().Join()
	defer v.Close()
	v.Input([]byte("\n"))
	select {
	case <-w.Done():
	case <-time.After(patience):
		t.Fatal("the session went on without its record")
	}
	if _, err := os.Stat(filepath.Join(w.store.SessionDir(w.ID()), "upper", "done")); err == nil {
		t.Error("touch ran, though it couldn't be recorded")
	}
}

func TestPausedMeansStill(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModePolicy, "while :; do echo x >> ticks.txt; done")
	ticks := filepath.Join(w.store.SessionDir(w.ID()), "upper", "ticks.txt")
	size := func() int64 {
		st, err := os.Stat(ticks)
		if err != nil {
			return 0
		}
		return st.Size()
	}
	grown := func(from int64) bool {
		for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
			if size() > from {
				return true
			}
		}
		return false
	}
	if !grown(0) {
		t.Fatal("the agent doesn't run")
	}
	s, err := w.Pause(t.Context())
	w.must(err)
	if s.State != api.SessionPaused {
		t.Errorf("the session is %s, want paused", s.State)
	}
	still := size()
	select {
	case <-time.After(300 * time.Millisecond): // long enough for thousands of ticks
	case <-w.Done():
	}
	if now := size(); now != still {
		t.Errorf("the file grew from %d to %d while paused", still, now)
	}
	_, err = w.Continue(t.Context())
	w.must(err)
	if !grown(still) {
		t.Error("the agent doesn't go on")
	}
}

// A viewer that joins when all is quiet hears which version of the changes is
// the newest, and gets an answer of that version.
func TestJoiningTellsTheNewestChanges(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeWatch, "rm a.txt; touch b c; read -t 60 x < <(sleep 61)")
	w.happened("the end of touch", func(e api.Event) bool {
		return e.Kind == "action.ended" && e.Action.Title == "touch b c"
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	// Follow as a viewer does: fetch until the answer is as new as what was told.
	for e, err := range w.read.Events(ctx, w.ID(), 1<<40) {
		w.must(err)
		if e.Changes == nil {
			continue
		}
		got, err := w.read.Changes(ctx, w.ID(), api.Scope{}, api.Page{})
		w.must(err)
		if got.Version < *e.Changes {
			t.Fatalf("told of version %d, the answer is of %d", *e.Changes, got.Version)
		}
		if got.Total == 3 {
			return
		}
	}
	t.Fatal("the changes were never told")
}

// TestOwnChangesAreAskedAboutFirst: a command is held behind the changes that the
// agent made before it, however long it takes to list them. On a busy machine they come
// in parts.
func TestOwnChangesAreAskedAboutFirst(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeStep, "for i in {1..3000}; do echo $i >f$i; done; uname")
	q := w.held(0)
	files := 0
	for ; q.Subject == api.SubjectEdit; q = w.held(q.ID) {
		files += len(q.Changes)
		w.must(w.decide(q, api.AnswerKeep))
	}
	if q.Subject != api.SubjectCommand || q.Title != "uname" || files == 0 {
		t.Fatalf("after %d files of its own it asks about %s (%s)", files, q.Subject, q.Title)
	}
	w.must(w.decide(q, api.AnswerApprove))
}
