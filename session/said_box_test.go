package session_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stepbox/session/api"
)

// TestSaidAgainstDone: what the agent announces, in its transcript, in a comment
// and in a commit's message, is told before a person decides, and beside what it
// did, which the question after it can be read with.
func TestSaidAgainstDone(t *testing.T) {
	t.Parallel()
	w := startWith(t, api.ModeStep, `mkfifo /tmp/feed; exec 4<>/tmp/feed; while read -r c <&4; do bash -c "$c" </dev/null; done`, damaged(t))
	w.happened("what the project was", func(e api.Event) bool { return e.Kind == "session.based" })
	q := w.held(0)
	w.must(w.decide(q, api.AnswerApprove))
	feed := w.feed("feed")
	transcript := filepath.Join(filepath.Dir(w.project), "data/homes/generic/.claude/projects/-p/a.jsonl")
	w.must(os.MkdirAll(filepath.Dir(transcript), 0o755))
	for _, c := range []struct{ line, described, said, source, mismatch string }{
		{"unlink notes.txt", "Run the linter", "Run the linter", "tool call", "said: Run the linter; deletes notes.txt"},
		{"# look around$(rm src/b.py)", "", "look around$(rm src/b.py)", "comment", ""},
		{"unlink notes2.txt", "Remove the notes", "Remove the notes", "tool call", ""},
		{"git rm -q src/a.py; git commit -qm 'fix typo'", "Commit it", "fix typo", "commit message", "said: fix typo; deletes src/a.py"},
		{"cat keep.txt", "Read what is kept", "Read what is kept", "tool call", ""},
	} {
		if c.described != "" {
			w.must(os.WriteFile(transcript, fmt.Appendf(nil, `{"type":"assistant","timestamp":%q,"cwd":%q,"message":{"role":"assistant","content":[{"type":"tool_use","input":{"command":%q,"description":%q}}]}}`+"\n",
				time.Now().UTC().Format(time.RFC3339Nano), w.project, c.line, c.described), 0o644))
		}
		feed(c.line)
		q = w.held(q.ID)
		if c.source == "tool call" {
			w.action("the announcement before the verdict", func(a api.Action) bool {
				return a.N == q.Action && a.State == api.ActionHeld && a.Said != nil && a.Said.Text == c.said
			})
		}
		w.must(w.decide(q, api.AnswerApprove))
		a := w.action("the end of "+c.line, func(a api.Action) bool { return a.N == q.Action && a.State == api.ActionEnded })
		if a.Said == nil || a.Said.Text != c.said || a.Said.Source != c.source || a.Said.Mismatch != c.mismatch {
			t.Errorf("%s: it said %+v, want %q of a %s, %q", c.line, a.Said, c.said, c.source, c.mismatch)
		}
		if a.Files == 0 {
			continue
		}
		if q = w.held(q.ID); q.Subject != api.SubjectEdit || a.Effects == nil {
			t.Fatalf("%s: held %s, with effects %+v", c.line, q.Subject, a.Effects)
		}
		w.must(w.decide(q, api.AnswerKeep))
	}
}

// TestSaidLate: a command may be over before its agent has written to its
// transcript what it is for. That is found soon, or when the session ends; until then
// what was said of an earlier one with the same words isn't taken for it.
func TestSaidLate(t *testing.T) {
	t.Parallel()
	w := startWith(t, api.ModeWatch, `mkfifo /tmp/feed; exec 4<>/tmp/feed; while read -r c <&4; do [ "$c" = end ] && exit; bash -c "$c" </dev/null; done`, damaged(t))
	w.happened("what the project was", func(e api.Event) bool { return e.Kind == "session.based" })
	feed := w.feed("feed")
	transcript := filepath.Join(filepath.Dir(w.project), "data/homes/generic/.claude/projects/-p/a.jsonl")
	w.must(os.MkdirAll(filepath.Dir(transcript), 0o755))
	written, n := "", 0
	for _, c := range []struct{ line, described, mismatch string }{
		{"cat keep.txt", "Read what is kept", ""},
		{"cat keep.txt", "Read it again", ""},
		{"unlink notes.txt", "Run the linter", "said: Run the linter; deletes notes.txt"},
		{"unlink notes2.txt", "Run the linter", "said: Run the linter; deletes notes2.txt"},
	} {
		feed(c.line)
		a := w.action("the end of "+c.line, func(a api.Action) bool {
			return a.N > n && strings.Contains(a.Title, c.line) && a.State == api.ActionEnded
		})
		if n = a.N; a.Said != nil {
			t.Fatalf("%s: it said %+v before it was written", c.line, a.Said)
		}
		written += fmt.Sprintf(`{"type":"assistant","timestamp":%q,"cwd":%q,"message":{"role":"assistant","content":[{"type":"tool_use","input":{"command":%q,"description":%q}}]}}`+"\n",
			a.StartedAt.Format(time.RFC3339Nano), w.project, c.line, c.described)
		w.must(os.WriteFile(transcript, []byte(written), 0o644))
		if c.line == "unlink notes2.txt" {
			feed("end")
		}
		w.action(c.described, func(b api.Action) bool {
			return b.N == a.N && b.Said != nil && b.Said.Text == c.described && b.Said.Mismatch == c.mismatch
		})
	}
}

// TestSaidOfEdits: what an agent writes itself has the words of the call that names the
// file, also when they are in its transcript only later; and none of another call.
func TestSaidOfEdits(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeWatch, `mkfifo /tmp/feed; exec 4<>/tmp/feed; while read -r c <&4; do echo "$c" >> b.txt; done`)
	feed := w.feed("feed")
	transcript := filepath.Join(filepath.Dir(w.project), "data/homes/generic/.claude/projects/-p/a.jsonl")
	w.must(os.MkdirAll(filepath.Dir(transcript), 0o755))
	written, n := "", 0
	for i, words := range []string{"I begin the file.", "I go on with it."} {
		called := time.Now()
		feed(words)
		a := w.action("the edit", func(a api.Action) bool { return a.N > n && a.Title == "edit b.txt" && a.Effects != nil })
		if n = a.N; a.Said != nil {
			t.Fatalf("it said %+v before it was written", a.Said)
		}
		for _, c := range []struct{ said, tool, file string }{{"I look at it.", "Read", "b.txt"}, {words, "Write", "b.txt"}, {"I write another.", "Write", "c.txt"}} {
			written += fmt.Sprintf(`{"type":"assistant","timestamp":%[1]q,"message":{"role":"assistant","content":[{"type":"text","text":%[2]q},{"type":"tool_use","id":"%[3]s%[4]s%[5]d","name":%[3]q,"input":{"file_path":%[6]q}}]}}`+"\n",
				called.UTC().Format(time.RFC3339Nano), c.said, c.tool, c.file, i, filepath.Join(w.project, c.file))
		}
		w.must(os.WriteFile(transcript, []byte(written), 0o644))
		a = w.action("its words", func(a api.Action) bool { return a.N == n && a.Said != nil })
		if a.Said.Text != words || a.Said.Source != "message" {
			t.Errorf("it said %+v, want %q", a.Said, words)
		}
	}
}

// TestHalfwayEdits: a file that is written beside another and then renamed onto it is one
// edit, also when the disk takes its time, and so is one that is emptied and then written;
// one that keeps its temporary name, or stays empty, is an edit after a while, and is never
// taken for a part of what follows.
func TestHalfwayEdits(t *testing.T) {
	t.Parallel()
	w := startProgram(t, api.ModeWatch, func(string) {}, "perl", "-e", `
		sub put { open(F, ">", $_[0]); print F "new\n"; close F; }
		put("a.txt.tmp.10.db9c"); select(undef, undef, undef, 0.7); rename("a.txt.tmp.10.db9c", "a.txt");
		<STDIN>; put("b.txt.tmp"); <STDIN>; rename("b.txt.tmp", "b.txt");
		<STDIN>; open(F, ">", "a.txt"); select(undef, undef, undef, 0.7); print F "other\n"; close F;
		<STDIN>; open(F, ">", "a.txt"); close F; <STDIN>;`)
	for n, title := range []string{"edit a.txt", "edit b.txt.tmp", "edit b.txt", "edit a.txt", "edit a.txt"} {
		a := w.action(title, func(a api.Action) bool { return a.N > n && a.Files > 0 })
		if a.N != n+1 || a.Title != title || a.Files != 1 {
			t.Fatalf("action %d is %q with %d files, want %q", a.N, a.Title, a.Files, title)
		}
		w.enter()
	}
}

// TestSaidWhileHeld: what comes into the transcript while a command is held is told before
// it is decided on, and of a denied one after that.
func TestSaidWhileHeld(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeStep, `mkfifo /tmp/feed; exec 4<>/tmp/feed; while read -r c <&4; do bash -c "$c" </dev/null; done`)
	q := w.held(0)
	w.must(w.decide(q, api.AnswerApprove))
	feed := w.feed("feed")
	transcript := filepath.Join(filepath.Dir(w.project), "data/homes/generic/.claude/projects/-p/a.jsonl")
	w.must(os.MkdirAll(filepath.Dir(transcript), 0o755))
	for _, c := range []struct {
		line   string
		denied bool
	}{{"cat a.txt", false}, {"unlink a.txt", true}} {
		feed(c.line)
		q = w.held(q.ID)
		if c.denied {
			w.must(w.decide(q, api.AnswerDeny))
		}
		a := w.action("it is held", func(a api.Action) bool { return a.N == q.Action })
		w.must(os.WriteFile(transcript, fmt.Appendf(nil, `{"type":"assistant","timestamp":%q,"message":{"role":"assistant","content":[{"type":"tool_use","input":{"command":%q,"description":"What for"}}]}}`+"\n",
			a.StartedAt.Format(time.RFC3339Nano), c.line), 0o644))
		a = w.action("the words of "+c.line, func(a api.Action) bool { return a.N == q.Action && a.Said != nil })
		if denied := a.State == api.ActionDenied; denied != c.denied || a.Said.Text != "What for" {
			t.Errorf("%s is %s, it said %+v", c.line, a.State, a.Said)
		}
		if !c.denied {
			w.must(w.decide(q, api.AnswerApprove))
		}
	}
}

// TestSaidOnScreen: an agent that waits for its command's start can't write its transcript;
// what it drew above the command stands in the question.
func TestSaidOnScreen(t *testing.T) {
	t.Parallel()
	w := start(t, api.ModeStep, `printf '● I read it,\n  to know.\n\n● Bash(cat a.txt)\n'; bash -c 'cat a.txt'`)
	q := w.held(0)
	w.action("what it drew", func(a api.Action) bool {
		return a.N == q.Action && a.State == api.ActionHeld && a.Said != nil && a.Said.Text == "I read it, to know." && a.Said.Source == "screen"
	})
}

// TestEditsHaveEffects: before a person is asked about an edit they are told what
// it did; and as soon as it is known what the project was, that git hasn't got it.
func TestEditsHaveEffects(t *testing.T) {
	t.Parallel()
	w := startWith(t, api.ModeStep, `: > notes.txt; uname`, damaged(t))
	var did *api.Effects
	w.happened("the question", func(e api.Event) bool {
		if e.Action != nil && e.Action.Kind == api.KindEdit && e.Action.Effects != nil {
			did = e.Action.Effects
		}
		return e.Question != nil
	})
	if did == nil || did.Modified != 1 {
		t.Errorf("the edit is asked about, and it is said to have done %+v", did)
	}
	w.action("what git hasn't got", func(a api.Action) bool {
		return a.Effects != nil && a.Effects.Grave && a.Effects.Words[0] == "empties notes.txt, never committed"
	})
}

// TestEffectsGrow: what a command left running does later is told with the command.
func TestEffectsGrow(t *testing.T) {
	t.Parallel()
	w := startWith(t, api.ModeWatch, `mkfifo /tmp/gone; bash -c 'touch made; (exec 3<>/tmp/gone; while read f <&3; do rm $f; done) & true'; read x`, damaged(t))
	w.happened("what the project was", func(e api.Event) bool { return e.Kind == "session.based" })
	a := w.action("the command's end", func(a api.Action) bool { return a.State == api.ActionEnded && a.Effects != nil })
	if len(a.Effects.Words) != 1 || a.Effects.Words[0] != "creates made" {
		t.Errorf("it says %q", a.Effects.Words)
	}
	feed := w.feed("gone")
	// It is the command's once the agent is known to have been asleep before; else it is an edit.
	for _, name := range []string{"notes.txt", "notes2.txt", "dirty.md", "local.db", "src/a.py", "src/b.py", "x.log", "keep.txt", "a.txt", "package.json", "Makefile"} {
		feed(name)
		b := w.action("the end of "+name, func(b api.Action) bool {
			return b.N > a.N && b.Title == "edit "+name || b.N == a.N && b.Effects != nil && b.Effects.Deleted > 0
		})
		if b.N == a.N {
			return
		}
	}
	t.Error("what is deleted later is never told with the command")
}
