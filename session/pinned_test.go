package session_test

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// An approval is for what a script held when it was shown.
func TestScriptRewrittenWhileHeld(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeStep, "echo 'echo good' >/tmp/x.sh; sh /tmp/x.sh; echo ended $?; sleep 60")
	q := w.held(0)
	if got := strings.Join(q.Command.Unpinned, "\n"); !strings.Contains(got, "read when it runs") || !strings.Contains(got, "/tmp/x.sh") {
		t.Errorf("the question doesn't say that the script is read later: %q", got)
	}
	script := filepath.Join(w.store.SessionDir(w.ID()), "tmp", "x.sh")
	w.must(os.WriteFile(script, []byte("echo evil\n"), 0o644))
	if err := w.decide(q, api.AnswerApprove); code(err) != api.CodeStale || !strings.Contains(err.Error(), "#1 was approved and does not start") || !strings.Contains(err.Error(), "/tmp/x.sh") {
		t.Errorf("who approved it is told %v", err)
	}
	e := w.happened("the refusal", func(e api.Event) bool { return e.Kind == "exec.failed" })
	if !strings.Contains(e.Exec.Failure, "/tmp/x.sh") || !strings.Contains(e.Exec.Failure, "while it was held") {
		t.Errorf("it failed as %q", e.Exec.Failure)
	}
	w.happened("word to who approved it", func(e api.Event) bool {
		return e.Note != nil && e.Note.Warn && strings.Contains(e.Note.Text, "#1 was approved and did not start") && strings.Contains(e.Note.Text, "/tmp/x.sh")
	})
	w.happened("the agent goes on", func(e api.Event) bool { return e.Question != nil && strings.Contains(e.Question.Title, "sleep 60") })
}

// The same question about other contents is another question.
func TestQuestionCoversContents(t *testing.T) {
	t.Parallel()
	var hashes []string
	for _, text := range []string{"a", "b"} {
		w := start(t, api.ModeStep, "echo 'echo "+text+"' >/tmp/x.sh; sh /tmp/x.sh")
		q := w.held(0)
		hashes = append(hashes, q.Hash)
		w.must(w.decide(q, api.AnswerDeny))
	}
	if hashes[0] == hashes[1] {
		t.Error("two scripts make one question")
	}
}

// What the system brings needs no note.
func TestSystemsProgramsArePinned(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeStep, "cat a.txt")
	q := w.held(0)
	if len(q.Command.Unpinned) > 0 {
		t.Errorf("%s isn't held to what is shown: %q", q.Title, q.Command.Unpinned)
	}
	w.must(w.decide(q, api.AnswerDeny))
}

// No rule lets a program run whose first instructions the agent can change
// meanwhile.
func TestOwnDynamicLinkerIsAskedAbout(t *testing.T) {
	t.Parallel()
	const echo = "/usr/bin/echo"
	f, err := elf.Open(echo)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	var linker []byte
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			linker = make([]byte, p.Filesz)
			if _, err := p.ReadAt(linker, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	own := append([]byte("/tmp/linker"), 0)
	if len(linker) < len(own) {
		t.Skip("it has no dynamic linker")
	}
	program, err := os.ReadFile(echo)
	must.OK(t, err)
	program = bytes.Replace(program, linker, append(own, make([]byte, len(linker)-len(own))...), 1)
	name := strings.TrimRight(string(linker), "\x00")
	w := startAsking(t, api.ModePolicy, "cp "+name+" /tmp/linker; ./prog hello; sleep 60", func(project string) {
		must.OK(t, os.WriteFile(filepath.Join(project, "prog"), program, 0o755))
	})
	q := w.held(0)
	if !strings.Contains(q.Title, "./prog hello") || !strings.Contains(q.Rule, "dynamic linker /tmp/linker") || len(q.Command.Unpinned) == 0 {
		t.Errorf("held %q: %s; %q", q.Title, q.Rule, q.Command.Unpinned)
	}
	w.must(w.decide(q, api.AnswerApprove))
	w.happened("it runs", func(e api.Event) bool {
		return e.Kind == "action.ended" && e.Action.Title == q.Title && e.Action.Exit.Code == 0
	})
}

// What a person approved once passes again in the same action only as long as
// it is the same.
func TestRepeatWithOtherContentsIsAskedAbout(t *testing.T) {
	t.Parallel()
	const script = `mkdir /tmp/bin; PATH=/tmp/bin:$PATH
printf '#!/bin/sh\necho one\n' >/tmp/bin/git; chmod +x /tmp/bin/git
git push; git push
printf '#!/bin/sh\necho two\n' >/tmp/bin/git
git push; sleep 60
`
	w := startAsking(t, api.ModePolicy, "bash run.sh; sleep 60", func(project string) {
		must.OK(t, os.WriteFile(filepath.Join(project, "run.sh"), []byte(script), 0o755))
	})
	first := w.held(0)
	if first.Title != "git push [runs /tmp/bin/git]" && first.Title != "git push" {
		t.Fatalf("held %q", first.Title)
	}
	w.must(w.decide(first, api.AnswerApprove))
	second := w.held(first.ID)
	if second.Title != first.Title {
		t.Fatalf("held %q", second.Title)
	}
	ran := 0
	w.happened("the second question", func(e api.Event) bool {
		if e.Kind == "exec.allowed" && strings.Join(e.Exec.Argv, " ") == "git push" {
			ran++
		}
		return e.Kind == "question.opened" && e.Question.ID == second.ID
	})
	if ran != 2 {
		t.Errorf("%d of them ran before the next question, want 2", ran)
	}
}
