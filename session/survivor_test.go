package session_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/session/api"
)

// action waits for an action to be as wanted.
func (w *world) action(what string, is func(api.Action) bool) api.Action {
	w.Helper()
	return *w.happened(what, func(e api.Event) bool { return e.Action != nil && is(*e.Action) }).Action
}

// let makes a file that the agent waits for.
func (w *world) let(name string) {
	w.Helper()
	w.must(os.WriteFile(filepath.Join(w.store.SessionDir(w.ID()), "tmp", name), nil, 0o644))
}

func (w *world) changed(n int) []string {
	w.Helper()
	c, err := w.read.Changes(w.Context(), w.ID(), api.Scope{Action: n}, api.Page{})
	w.must(err)
	var l []string
	for _, f := range c.Files {
		l = append(l, f.Status+" "+f.Path)
	}
	return l
}

// wait is shell for waiting for a file of let's, without starting a program.
const wait = `wait() { while ! [ -e /tmp/$1 ]; do read -t 0.02 x <>/tmp/never; done; }; mkfifo /tmp/never; `

// TestSurvivorDoesNotEndSupervision: what a command left running doesn't take
// the agent's own edits, neither while it lives nor after.
func TestSurvivorDoesNotEndSupervision(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeStep, wait+`bash -c 'setsid sleep 60 & echo started'; wait one; echo 1 >one.txt; wait two; echo 2 >two.txt; read x`)
	q := w.held(0)
	for q.Subject != api.SubjectCommand || q.Title == "mkfifo /tmp/never" {
		w.must(w.decide(q, api.AnswerApprove))
		q = w.held(q.ID)
	}
	w.must(w.decide(q, api.AnswerApprove))
	a := w.action("the command's end", func(a api.Action) bool { return a.N == q.Action && a.State == api.ActionEnded })
	if a.LeftRunning == 0 {
		t.Fatalf("nothing is said to be left running of %+v", a)
	}
	for _, name := range []string{"one", "two"} {
		w.let(name)
		edit := w.held(q.ID)
		if edit.Subject == api.SubjectNested { // the line had ended when it started
			w.approves(edit)
			edit = w.held(edit.ID)
		}
		if edit.Subject != api.SubjectEdit || edit.Action == a.N || len(edit.Changes) != 1 || edit.Changes[0].Path != name+".txt" {
			t.Fatalf("held %s of action %d with %v, want an edit of its own of %s.txt", edit.Subject, edit.Action, edit.Changes, name)
		}
		w.must(w.decide(edit, api.AnswerKeep))
		q = edit
	}
	if got := w.changed(a.N); len(got) != 0 {
		t.Errorf("the command is said to have changed %v", got)
	}
}

// TestSurvivorsChangesAreReviewed: what a command left running writes is the
// command's, opens its review again after that was kept, and doesn't take along
// what the agent wrote in between.
func TestSurvivorsChangesAreReviewed(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModePolicy, `mkfifo /tmp/first /tmp/edit; bash -c 'echo 0 >own.txt; (exec 3<>/tmp/first; while read x <&3; do echo 1 >>first.txt; done) & true'
		exec 4<>/tmp/edit; read x <&4; echo e >edit.txt; read x`)
	a := w.action("the command's end", func(a api.Action) bool { return a.State == api.ActionEnded && a.LeftRunning > 0 })
	if got := w.changed(a.N); len(got) != 1 || got[0] != "A own.txt" {
		t.Fatalf("at its end the command has %v", got)
	}
	pipes := make(map[string]*os.File)
	for _, name := range []string{"first", "edit"} { // held open for both, so that nobody waits and nothing is lost
		f, err := os.OpenFile(filepath.Join(w.store.SessionDir(w.ID()), "tmp", name), os.O_RDWR, 0)
		w.must(err)
		defer f.Close()
		pipes[name] = f
	}
	write := func(name string) {
		t.Helper()
		_, err := pipes[name].WriteString("\n")
		w.must(err)
	}
	_, err := w.Keep(t.Context(), a.N)
	w.must(err)
	after, edits := a, 0
	// It is the command's once the agent is known to have been asleep before.
	grow := func() api.Action {
		t.Helper()
		for range 20 {
			write("first")
			seen := 0
			e := w.happened("what the survivor wrote", func(e api.Event) bool {
				if a := e.Action; a == nil || e.Kind != "action.edited" && !(a.N == after.N && a.Files > after.Files) {
					return false
				}
				seen++
				return seen > edits
			})
			if e.Action.N == after.N {
				return *e.Action
			}
			edits++
			if !e.Action.Shared {
				t.Errorf("%q is said to be the agent's alone", e.Action.Title)
			}
		}
		t.Fatal("what the survivor writes is never its action's")
		return api.Action{}
	}
	if b := grow(); b.Review != api.ReviewOpen || b.Files != 2 {
		t.Errorf("after a change it has %d files and its review is %q, want 2 and open again", b.Files, b.Review)
	}
	write("edit")
	edit := w.action("the agent's edit", func(a api.Action) bool { return a.Kind == api.KindEdit && a.Title == "edit edit.txt" })
	if got := w.changed(edit.N); len(got) != 1 || got[0] != "A edit.txt" {
		t.Errorf("the agent's edit has %v", got)
	}
	if got := w.changed(a.N); !slices.Equal(got, []string{"A first.txt", "A own.txt"}) {
		t.Errorf("the command has %v", got)
	}
}

// A command that waits for an answer, and what waits for it, wrote nothing of what
// another wrote meanwhile, though the agent had to be frozen while that ran.
func TestWhatWaitsWritesNothing(t *testing.T) {
	t.Parallel()
	w, _ := limited(t, "", wait+`timeout 999 bash -c 'exec 3<>HERE' | cat & wait one
		bash -c 'echo 2 >two.txt; while ! [ -e /tmp/two ]; do :; done'; read x`)
	q := w.held(0)
	if q.Subject != api.SubjectConnection || q.Action == 0 {
		t.Fatalf("held %s %q of #%d", q.Subject, q.Title, q.Action)
	}
	w.let("one")
	other := w.action("another command", func(a api.Action) bool { return a.State == api.ActionRunning && strings.Contains(a.Title, "two.txt") })
	w.happened("a checkpoint of what it wrote", func(e api.Event) bool { return e.Checkpoint != nil && e.Checkpoint.Files == 1 })
	w.let("two")
	other = w.action("its end", func(a api.Action) bool { return a.N == other.N && a.State == api.ActionEnded })
	if got := w.changed(other.N); other.Shared || len(got) != 1 || got[0] != "A two.txt" {
		t.Errorf("what wrote has %v, shared: %v", got, other.Shared)
	}
	if got := w.changed(q.Action); len(got) != 0 {
		t.Errorf("what waits is said to have written %v", got)
	}
}

// TestEndIsToldWhole: nobody is told that a command has ended before it is known
// what it changed, though what it left running ends one by one and checkpoints are
// taken while its files are counted.
func TestEndIsToldWhole(t *testing.T) {
	t.Parallel()
	const changed, left = 2500, 60
	w := start(t, api.ModeWatch, fmt.Sprintf(`mkfifo /tmp/hold; bash -c 'exec 3<>/tmp/hold; for ((i = 0; i < %d; i++)); do echo $i >$i.new; done
		for ((i = 0; i < %d; i++)); do (read -n 1 x <&3) & done; disown -a'; read x`, changed, left))
	ends := w.feed("hold")
	is := func(a *api.Action) bool { return a != nil && strings.HasPrefix(a.Title, "exec 3<>") }
	w.happened("the last checkpoint", func(e api.Event) bool { return e.Checkpoint != nil && e.Checkpoint.Files == changed })
	told := make(chan api.Event, 1)
	go func() {
		defer close(told)
		for e, err := range w.read.Events(t.Context(), w.ID(), 0) {
			if err != nil {
				return
			}
			if is(e.Action) && e.Action.State == api.ActionEnded {
				told <- e
				return
			}
		}
	}()
	for {
		select {
		case e, ok := <-told:
			if a := e.Action; !ok || e.Kind != "action.ended" || a.Files != changed || a.Review != api.ReviewOpen {
				t.Fatalf("its end is first told as %s of %+v, want action.ended of %d files to review", e.Kind, a, changed)
			}
			return
		case <-t.Context().Done():
			t.Fatal("its end isn't told")
		default:
			ends("")
			// A plan begins with a checkpoint; there is nothing to redo.
			_, _ = w.RollbackPlan(t.Context(), api.RollbackRequest{RollbackTarget: api.RollbackTarget{Redo: 1}})
		}
	}
}

// TestEndingAnOrphanLeavesTheAgent: what was started in the background and
// handed to PID 1 is in the agent's process group still; ending it isn't ending that.
func TestEndingAnOrphanLeavesTheAgent(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModePolicy, `mkfifo /tmp/feed; exec 3<>/tmp/feed; (sh -c "touch b; sleep 300" &); read -u 3 x; touch after; read x`)
	do := w.feed("feed")
	var orphan int
	w.action("the orphan", func(a api.Action) bool {
		orphan = a.N
		return strings.HasPrefix(a.Title, "touch b") && a.State == api.ActionRunning
	})
	w.upperHas("b", true)
	_, err := w.KillAction(t.Context(), orphan)
	w.must(err)
	w.action("its end", func(a api.Action) bool { return a.N == orphan && a.State == api.ActionEnded })
	do("go")
	w.action("the agent's next command", func(a api.Action) bool { return a.Title == "touch after" && a.State == api.ActionEnded })
}

// TestToolServerDoesNotEndSupervision: a command that runs beside the agent, as
// a tool server does, takes none of the agent's own edits, whenever it was let run.
func TestToolServerDoesNotEndSupervision(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]string{"it ran first": "wait one; ", "both were held": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, api.ModeStep, wait+`bash -c 'while :; do read -t 0.02 x <>/tmp/never; done' & `+between+`cat a.txt; wait two; echo 2 >two.txt; read x`)
			server := func(q api.Question) bool { return strings.HasPrefix(q.Title, "while :") }
			q := w.held(0)
			w.must(w.decide(q, api.AnswerApprove)) // mkfifo
			first := w.held(q.ID)
			if between != "" {
				w.must(w.decide(first, api.AnswerApprove))
				w.let("one")
			}
			second := w.held(first.ID)
			if between == "" {
				w.must(w.decide(first, api.AnswerApprove))
			}
			w.must(w.decide(second, api.AnswerApprove))
			cat := second
			if server(second) {
				cat = first
			} else if !server(first) {
				t.Fatalf("%q and %q were held", first.Title, second.Title)
			}
			w.action("cat's end", func(a api.Action) bool { return a.N == cat.Action && a.State == api.ActionEnded })
			w.action("the server", func(a api.Action) bool {
				return a.N == first.Action+second.Action-cat.Action && a.State == api.ActionRunning
			})
			w.let("two")
			edit := w.held(second.ID)
			if edit.Subject != api.SubjectEdit || edit.Action <= cat.Action || len(edit.Changes) != 1 || edit.Changes[0].Path != "two.txt" {
				t.Fatalf("held %s of action %d with %v, want an edit of two.txt", edit.Subject, edit.Action, edit.Changes)
			}
		})
	}
}
