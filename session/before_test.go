package session_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/session/api"
)

// What a command that runs has changed, and nobody was asked about yet, comes before the next command.
func TestWhatRunsIsAskedAboutBeforeAnother(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModeStep, map[string]string{
		"agent.pl":  `unless (fork) { exec "perl", "writer.pl" } sleep 4; system "cat", "made"; sleep 60;`,
		"writer.pl": `open F, ">", "made"; print F "x"; close F; sleep 60;`,
	}, "perl", "agent.pl")
	writer := w.approves(w.asks(api.Question{}, "perl writer.pl"))
	next := w.asks(writer, "cat made")
	w.must(w.decide(next, api.AnswerApprove))
	review := w.heldAbout(api.SubjectEdit, writer.ID)
	if review.Action != writer.Action || !strings.Contains(review.Rule, "it still runs") {
		t.Errorf("asked about #%d: %s", review.Action, review.Rule)
	}
	w.must(w.decide(review, api.AnswerKeep))
	released := w.happened("the next command", func(e api.Event) bool { return e.Kind == "action.released" && e.Action.N == next.Action })
	kept := w.happened("the answer", func(e api.Event) bool { return e.Kind == "action.kept" })
	if kept.Seq > released.Seq {
		t.Error("it was let run before")
	}
	w.ends()
}

// A command that goes on writing keeps no other from starting: it stands while it is asked about.
func TestOneThatWritesOnHoldsUpNothing(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModeStep, map[string]string{
		"agent.pl":  `unless (fork) { exec "perl", "server.pl" } sleep 1; system "cat", "agent.pl"; sleep 60;`,
		"server.pl": `open F, ">", "log"; select F; $| = 1; while (1) { print "x"; select undef, undef, undef, 0.01 }`,
	}, "perl", "agent.pl")
	q := w.approves(w.asks(api.Question{}, "perl server.pl"))
	cat := *w.happened("the next command", func(e api.Event) bool {
		return e.Kind == "question.opened" && e.Question.Title == "cat agent.pl"
	}).Question
	answered := 0
	for e, err := range w.read.Events(t.Context(), w.ID(), 0) {
		w.must(err)
		if e.Kind == "action.released" && e.Action.N == cat.Action {
			break
		}
		if e.Kind != "question.opened" || e.Question.ID <= q.ID {
			continue
		}
		if answered++; answered > 6 {
			t.Fatal("each answer leads to another question")
		}
		answer := api.AnswerApprove
		if e.Question.Subject == api.SubjectEdit {
			answer = api.AnswerKeep
		}
		if err := w.decide(*e.Question, answer); code(err) == api.CodeBusy {
			w.answers(*e.Question, answer)
		} else if code(err) != api.CodeDecided { // with one that waited for it
			w.must(err)
		}
	}
	w.ends()
}

// What an ended action has left in the background knows of no input any more whose it is.
func TestToldAfterTheEnd(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModeStep, map[string]string{
		"agent.pl": `
pipe R, W;
unless (fork) { close W; open STDIN, "<&R"; exec "bash", "left.sh" }
wait;
print W "made\n"; close W;
open F, ">", "/tmp/ended";
sleep 60;
`,
		"left.sh": "{ until [ -e /tmp/ended ]; do :; done; xargs -n1 touch; } <&0 &\n",
	}, "perl", "agent.pl")
	q := w.approves(w.asks(api.Question{}, "bash left.sh"))
	nested := w.asks(q, "")
	if nested.Title == "xargs -n1 touch" { // whose input nobody can look into
		nested = w.asks(w.approves(nested), "")
	}
	if nested.Subject != api.SubjectNested || nested.Title != "touch made" {
		t.Errorf("%s %q is asked about", nested.Subject, nested.Title)
	}
	w.untouched("made")
	w.ends()
}

// Whoever puts back what a person has kept as it was when a command began changes something, though the command's changes are none then.
func TestPutBackWhatWasKept(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModeStep, map[string]string{
		"a": "old\n",
		"agent.pl": `
unless (fork) { exec "perl", "back.pl" }
sleep 1 until -e "/tmp/read";
open F, ">", "a"; print F "new\n"; close F;
system "ls";
open F, ">", "/tmp/go"; close F;
sleep 1 until -e "/tmp/back";
system "cat", "a";
sleep 60;
`,
		"back.pl": `
open F, "a"; $was = <F>; close F;
open F, ">", "/tmp/read"; close F;
sleep 1 until -e "/tmp/go";
open F, ">", "a"; print F $was; close F;
open F, ">", "/tmp/back"; close F;
sleep 60;
`,
	}, "perl", "agent.pl")
	w.approves(w.asks(api.Question{}, "perl back.pl"))
	kept := w.heldAbout(api.SubjectEdit, 0)
	w.must(w.decide(kept, api.AnswerKeep))
	w.approves(w.asks(kept, "ls"))
	again := w.heldAbout(api.SubjectEdit, kept.ID)
	if len(again.Changes) != 1 || again.Changes[0].Path != "a" {
		t.Errorf("asked about %q: %+v", again.Title, again.Changes)
	}
	w.must(w.decide(again, api.AnswerRollback))
	w.happened("the roll back", func(e api.Event) bool { return e.Kind == "rollback.done" })
	if text, err := os.ReadFile(filepath.Join(w.store.SessionDir(w.ID()), "upper", "a")); string(text) != "new\n" {
		t.Errorf("it is %q (%v)", text, err)
	}
	w.ends()
}

// What an action left running puts back, while a person is asked about what the action changed, or just before that, is no part of it.
func TestPutBackWhatIsAskedAbout(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"asked", "ended"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			w := begin(t, api.ModeStep, map[string]string{
				"a":        "old\n",
				"agent.pl": `system "perl", "left.pl", "` + when + `"; open F, ">", "/tmp/ended"; close F; sleep 60;`,
				"left.pl": `
open F, ">", "a"; print F "new\n"; close F;
for $i (1..8) { open F, ">", "data$i"; print F map { rand() . "\n" } 1..20000; close F } # which take a while to tell
exit if fork;
select undef, undef, undef, 0.01 until -e "/tmp/$ARGV[0]";
open F, ">", "a"; print F "old\n"; close F;
sleep 60;
`,
			}, "perl", "agent.pl")
			q := w.approves(w.asks(api.Question{}, "perl left.pl "+when))
			asked := w.heldAbout(api.SubjectEdit, q.ID)
			w.let("asked")
			edit := w.happened("the edit", func(e api.Event) bool { return e.Kind == "action.edited" })
			if edit.Action.Title != "edit a" {
				t.Errorf("it is %q", edit.Action.Title)
			}
			w.answers(asked, api.AnswerKeep)
			about := []int{asked.Action, w.heldAbout(api.SubjectEdit, asked.ID).Action}
			if slices.Sort(about); !slices.Equal(about, []int{q.Action, edit.Action.N}) {
				t.Errorf("asked about %d, the edit is #%d", about, edit.Action.N)
			}
			w.ends()
		})
	}
}
