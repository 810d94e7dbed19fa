package session_test

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/store"
)

// back rolls back to just before an action, as a person who reads the plan does.
func (w *world) back(n int, meanwhile func()) {
	w.Helper()
	plan, err := w.RollbackPlan(w.Context(), api.RollbackRequest{RollbackTarget: api.Before(n)})
	w.must(err)
	meanwhile()
	_, err = w.Rollback(w.Context(), api.RollbackRequest{RollbackTarget: api.Before(n), Hash: plan.Hash, By: "test"})
	w.must(err)
}

// TestRollbackGoesForwardAgain: the state of each action follows from the
// checkpoint that the files are at.
func TestRollbackGoesForwardAgain(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModePolicy, "touch one; touch two; touch three; read x")
	w.action("the last command's end", func(a api.Action) bool { return a.N == 3 && a.State == api.ActionEnded && a.Files == 1 })
	_, err := w.Keep(t.Context(), 2)
	w.must(err)
	reviews := func(want ...api.Review) {
		t.Helper()
		list, err := w.read.Actions(t.Context(), w.ID())
		w.must(err)
		for i, r := range want {
			if list[i].Review != r {
				t.Errorf("action %d is %q, want %q", i+1, list[i].Review, r)
			}
		}
	}
	w.back(2, func() {})
	reviews(api.ReviewOpen, api.ReviewRolledBack, api.ReviewRolledBack)
	w.back(3, func() {})
	reviews(api.ReviewOpen, api.ReviewKept, api.ReviewRolledBack)
	w.back(1, func() {})
	reviews(api.ReviewRolledBack, api.ReviewRolledBack, api.ReviewRolledBack)
}

// TestRollbackWhileSomethingWrites: a file that grows all the time, and that is
// put back, doesn't make the plan stale.
func TestRollbackWhileSomethingWrites(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModePolicy, "touch one; echo >ticks; touch two; while :; do echo x >>ticks; done")
	a := w.action("the last command's end", func(a api.Action) bool { return a.Title == "touch two" && a.State == api.ActionEnded && a.Files == 1 })
	w.back(a.N, func() {
		_, err := w.read.Changes(t.Context(), w.ID(), api.Scope{}, api.Page{})
		w.must(err)
	})
	w.happened("the roll back", func(e api.Event) bool { return e.Kind == "rollback.done" })
}

// feed opens a FIFO that the agent made in its /tmp, and reads from. Each line is
// one thing to do.
func (w *world) feed(name string) func(line string) {
	w.Helper()
	path := filepath.Join(w.store.SessionDir(w.ID()), "tmp", name)
	w.happened("the FIFO", func(api.Event) bool {
		st, err := os.Lstat(path)
		return err == nil && st.Mode()&os.ModeNamedPipe != 0
	})
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	w.must(err)
	w.Cleanup(func() { f.Close() })
	return func(line string) {
		w.Helper()
		_, err := f.WriteString(line + "\n")
		w.must(err)
	}
}

// upperHas waits until the agent has, or hasn't, something in the project.
func (w *world) upperHas(name string, want bool) {
	w.Helper()
	path := filepath.Join(w.store.SessionDir(w.ID()), "upper", name)
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(2 * time.Millisecond) {
		if _, err := os.Lstat(path); (err == nil) == want {
			return
		}
	}
	w.Fatalf("%s: there is %v, want %v", name, !want, want)
}

// TestRollbackLeavesWhatChangedMeanwhile: what comes and goes elsewhere after
// the plan was shown doesn't make it stale, isn't touched, and is said.
func TestRollbackLeavesWhatChangedMeanwhile(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModePolicy, `mkfifo /tmp/feed; exec 3<>/tmp/feed; touch ready
		mkdir dir; echo 1 >dir/shown; mv a.txt dir/moved.txt; touch gone; touch last
		while read -u 3 name; do case $name in -*) rm "${name#-}";; *) echo "$name" >>"$name";; esac; done`)
	first := w.action("the first command", func(a api.Action) bool { return a.Title == "mkdir dir" && a.State == api.ActionEnded })
	w.action("the last command's end", func(a api.Action) bool { return a.Title == "touch last" && a.State == api.ActionEnded && a.Files == 1 })
	do := w.feed("feed")
	plan, err := w.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: api.Before(first.N)})
	w.must(err)
	do("dir/new")
	do("dir/shown")
	do("other")
	do("-gone")
	do("end")
	w.upperHas("end", true)
	w.action("the end of rm", func(a api.Action) bool { return a.Title == "rm gone" && a.State == api.ActionEnded }) // what runs still isn't taken back
	done, err := w.Rollback(t.Context(), api.RollbackRequest{RollbackTarget: api.Before(first.N), Hash: plan.Hash, By: "test"})
	w.must(err)
	if want := []string{"dir/new", "end", "other"}; !slices.Equal(done.Left, want) || done.LeftMore != 0 {
		t.Errorf("%v and %d more are said to be left, want %v", done.Left, done.LeftMore, want)
	}
	if got, want := w.changed(0), []string{"A dir/new", "A end", "A other", "A ready"}; !slices.Equal(got, want) {
		t.Errorf("the session's changes are %v, want %v", got, want)
	}
	list, err := w.read.Actions(t.Context(), w.ID())
	w.must(err)
	for _, a := range list[first.N-1:] {
		want := api.ReviewRolledBack
		for _, line := range w.changed(a.N) {
			if slices.Contains(done.Left, line[2:]) {
				want = api.ReviewOpen
			}
		}
		if a.Review != want && a.Files > 0 {
			t.Errorf("action %d, %s, is %q, want %q", a.N, a.Title, a.Review, want)
		}
	}
	// What is written over is in a checkpoint first.
	var last api.Checkpoint
	for e, err := range w.read.Recorded(t.Context(), w.ID(), 0) {
		w.must(err)
		if e.Kind == "rollback.started" {
			break
		}
		if e.Checkpoint != nil && e.Checkpoint.Action == 0 {
			last = *e.Checkpoint
		}
	}
	m, err := manifest.Load(t.Context(), bodies{w.store}, hash(t, last.Root))
	w.must(err)
	if e := m.Lookup("dir/shown"); e == nil || e.Size != int64(len("1\ndir/shown\n")) {
		t.Errorf("before the roll back dir/shown was recorded as %+v", e)
	}
	// The same again takes back what was left.
	w.back(first.N, func() {})
	if got, want := w.changed(0), []string{"A ready"}; !slices.Equal(got, want) {
		t.Errorf("after another roll back the changes are %v, want %v", got, want)
	}
}

// TestRollbackIsStaleWhenAFolderCame: a file that goes back may not take a folder
// with it whose files nobody was shown.
func TestRollbackIsStaleWhenAFolderCame(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModePolicy, `mkfifo /tmp/feed; exec 3<>/tmp/feed; echo 1 >a.txt; touch last; read -u 3 x; rm a.txt; mkdir a.txt; echo 1 >a.txt/unseen; touch end; read -u 3 x`)
	a := w.action("the last command's end", func(a api.Action) bool { return a.Title == "touch last" && a.State == api.ActionEnded && a.Files == 1 })
	do := w.feed("feed")
	edit := w.action("the edit", func(a api.Action) bool { return a.Kind == api.KindEdit })
	if edit.N >= a.N {
		t.Fatalf("the edit is action %d, after %d", edit.N, a.N)
	}
	plan, err := w.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: api.Before(edit.N)})
	w.must(err)
	do("go")
	w.upperHas("end", true)
	_, err = w.Rollback(t.Context(), api.RollbackRequest{RollbackTarget: api.Before(edit.N), Hash: plan.Hash, By: "test"})
	if code(err) != api.CodeStale {
		t.Errorf("a roll back of a file that is a folder now gives %v, want stale", err)
	}
	if got := w.changed(0); !slices.Equal(got, []string{"T a.txt", "A a.txt/unseen", "A end", "A last"}) {
		t.Errorf("the changes are %v", got)
	}
	for e, err := range w.read.Recorded(t.Context(), w.ID(), 0) {
		w.must(err)
		if e.Rollback != nil {
			t.Errorf("a stale plan is recorded as %s", e.Kind)
		}
	}
}

// TestRollbackOfFilesThatComeAndGo: whoever removes and remakes files, or changes
// their modes, can't keep them from being rolled back.
func TestRollbackOfFilesThatComeAndGo(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModePolicy, `mkfifo /tmp/feed; exec 3<>/tmp/feed
		touch mark; mkdir dir; touch dir/mode dir/gone; rm a.txt; touch last
		read -u 3 x; rm -r dir/gone; chmod 700 dir/mode; echo new >a.txt; touch end; read -u 3 x`)
	first := w.action("the first command", func(a api.Action) bool { return a.Title == "mkdir dir" && a.State == api.ActionEnded })
	w.action("the last command's end", func(a api.Action) bool { return a.Title == "touch last" && a.State == api.ActionEnded && a.Files == 1 })
	plan, err := w.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: api.Before(first.N)})
	w.must(err)
	w.feed("feed")("go")
	w.upperHas("end", true)
	_, err = w.Rollback(t.Context(), api.RollbackRequest{RollbackTarget: api.Before(first.N), Hash: plan.Hash, By: "test"})
	w.must(err)
	if got := w.changed(0); !slices.Equal(got, []string{"A end", "A mark"}) {
		t.Errorf("after the roll back the changes are %v, want what was there before and what came elsewhere", got)
	}
}

// TestRollbackPlanMissesNothing: a file that becomes a folder, a link and a file
// again all the time is in every plan.
func TestRollbackPlanMissesNothing(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModePolicy, `touch mark; python3 -c '
import os, shutil
k = 0
while True:
    k += 1
    for p in "a.txt", "new":
        if os.path.isdir(p) and not os.path.islink(p): shutil.rmtree(p)
        elif os.path.lexists(p): os.unlink(p)
        if k % 3 == 0: os.mkdir(p); open(p + "/in%d" % k, "w").close()
        elif k % 3 == 1: os.symlink("/etc", p)
        else: open(p, "w").close()'`)
	w.action("the writer", func(a api.Action) bool { return a.State == api.ActionRunning && strings.HasPrefix(a.Title, "python3") })
	w.happened("its first change", func(api.Event) bool {
		plan, err := w.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: api.Before(1)})
		w.must(err)
		return slices.ContainsFunc(plan.Files, func(c api.Change) bool { return strings.HasPrefix(c.Path, "a.txt") })
	})
	for range 500 {
		plan, err := w.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: api.Before(1)})
		w.must(err)
		if !slices.ContainsFunc(plan.Files, func(c api.Change) bool { return c.Path == "a.txt" }) {
			t.Fatalf("a.txt isn't in the plan: %+v", plan.Files)
		}
	}
}

// TestRollbackEndsUnderTheFreeze: whoever waits for what a roll back ends hears
// of it only when the roll back is over, and what it does then is its own.
func TestRollbackEndsUnderTheFreeze(t *testing.T) {
	t.Parallel()
	const many = 8
	w := start(t, api.ModePolicy, `mkfifo /tmp/never; for i in 1 2 3 4 5 6 7 8; do bash -c 'read <>/tmp/never' & done; wait -n; echo 1 >reacted; read x`)
	running := make(map[int]bool)
	a := w.action("the last command", func(a api.Action) bool {
		if a.State == api.ActionRunning && strings.HasPrefix(a.Title, "read <>") {
			running[a.N] = true
		}
		return len(running) == many
	})
	a.N = slices.Min(slices.Collect(maps.Keys(running)))
	plan, err := w.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: api.Before(a.N)})
	w.must(err)
	if len(plan.Ends) != many {
		t.Fatalf("the plan ends %v, want %d", plan.Ends, many)
	}
	_, err = w.Rollback(t.Context(), api.RollbackRequest{RollbackTarget: api.Before(a.N), Hash: plan.Hash, By: "test"})
	w.must(err)
	w.action("the edit after it", func(a api.Action) bool { return a.Kind == api.KindEdit && a.Title == "edit reacted" })
	if got := w.changed(0); !slices.Equal(got, []string{"A reacted"}) {
		t.Errorf("the changes are %v, want what was written after the roll back", got)
	}
}

// TestRollbackThatFailsHalfWay: what couldn't be put back is named, and what the
// roll back left isn't the agent's doing.
func TestRollbackThatFailsHalfWay(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModePolicy, `mkfifo /tmp/feed; exec 3<>/tmp/feed; head -c 100000 /dev/urandom >big; cp a.txt big; cp a.txt small; touch last
		while read -u 3 name; do echo 1 >"$name"; done`)
	a := w.action("the file that is overwritten", func(a api.Action) bool { return a.Title == "cp a.txt big" })
	last := w.action("the last command's end", func(a api.Action) bool { return a.Title == "touch last" && a.State == api.ActionEnded && a.Files == 1 })
	plan, err := w.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: api.Before(a.N)})
	w.must(err)
	lost := 0
	w.must(filepath.WalkDir(filepath.Join(filepath.Dir(w.project), "data", "bodies"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err != nil || info.Size() < 50_000 {
			return err
		}
		lost++
		return os.Remove(path)
	}))
	if lost != 1 {
		t.Fatalf("%d bodies are large, want that of big", lost)
	}
	if _, err := w.Rollback(t.Context(), api.RollbackRequest{RollbackTarget: api.Before(a.N), Hash: plan.Hash, By: "test"}); err == nil {
		t.Fatal("a file was put back without its body")
	}
	failed := w.happened("the failure", func(e api.Event) bool { return e.Kind == "rollback.failed" }).Rollback
	if len(failed.Failed) != 1 || failed.Failed[0].Path != "big" || failed.Open {
		t.Errorf("the record is %+v, want that big failed", failed)
	}
	w.feed("feed")("later")
	edit := w.action("an edit", func(a api.Action) bool { return a.Kind == api.KindEdit && a.N > last.N })
	if edit.Title != "edit later" {
		t.Errorf("after a roll back that failed there is %q", edit.Title)
	}
	if got := w.changed(0); !slices.Equal(got, []string{"A big", "A later"}) {
		t.Errorf("the changes are %v", got)
	}
}

// bodies reads what a session kept.
type bodies struct{ *store.Store }

func (b bodies) Put(context.Context, io.Reader) (content.Hash, int64, error) {
	return content.Hash{}, 0, errors.ErrUnsupported
}

func (b bodies) Open(ctx context.Context, h content.Hash) (io.ReadCloser, int64, error) {
	return b.OpenBody(ctx, store.Hash(h))
}

func hash(t *testing.T, s string) (h content.Hash) {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil || copy(h[:], b) != len(h) {
		t.Fatalf("%q is no hash", s)
	}
	return h
}

// TestRollbackOfWhatNobodyMayRead: the project has files and folders that even
// their owner has closed. The agent can open them again, so what it changes in
// them is shown and put back.
func TestRollbackOfWhatNobodyMayRead(t *testing.T) {
	t.Parallel()
	prepare := func(project string) {
		for name, mode := range map[string]os.FileMode{"none": 0, "write": 0o200, "dir/in": 0o600} {
			path := filepath.Join(project, name)
			must.OK(t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("host\n"), 0o600), os.Chmod(path, mode))
		}
		closed := filepath.Join(project, "dir")
		must.OK(t, os.Chmod(closed, 0))
		t.Cleanup(func() { _ = os.Chmod(closed, 0o700) })
	}
	w := startWith(t, api.ModePolicy, "chmod 700 none write dir; echo agent >>none; echo agent >>write; echo agent >>dir/in; touch last; read x", prepare)
	w.action("the last command's end", func(a api.Action) bool { return a.Title == "touch last" && a.State == api.ActionEnded && a.Files == 1 })
	plan, err := w.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: api.Before(1)})
	w.must(err)
	if len(plan.Problems) > 0 {
		t.Errorf("it is said that these can't be put back: %v", plan.Problems)
	}
	w.back(1, func() {})
	left, err := w.read.Changes(t.Context(), w.ID(), api.Scope{}, api.Page{})
	w.must(err)
	for _, c := range left.Files {
		t.Errorf("%s still differs from the project: %s", c.Path, c.Words)
	}
	w.must(os.Chmod(filepath.Join(w.store.SessionDir(w.ID()), "upper", "dir"), 0o700)) // the test's folder is removed
}
