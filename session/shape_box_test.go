package session_test

import (
	"strings"
	"testing"

	"stepbox/session/api"
)

// In step mode a rule of the session lets what it is about pass, what waits included; one in a file doesn't, and what is
// let pass covers no more than an answer: neither what others tell it nor what it isn't about.
func TestARuleOfTheSessionInStepMode(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModeStep, map[string]string{"a": "1", "agent.sh": `
git log -1 & git log -2 &
wait
git log -3
cat a
cat a
echo ls | bash
read x
`}, "bash", "agent.sh")
	first := w.asks(api.Question{}, "git log")
	second := w.asks(first, "git log")
	w.must(w.answer(first, api.AnswerApprove, api.ExtentSession, "git log *"))
	w.happened("the other is let pass by the rule", func(e api.Event) bool {
		return e.Question != nil && e.Question.ID == second.ID && e.Question.Closed == "allow"
	})
	q := w.asks(second, "cat a")
	w.must(w.answer(q, api.AnswerApprove, api.ExtentProject, "cat a"))
	q = w.asks(q, "cat a") // a rule in a file is no answer in step mode
	w.must(w.answer(q, api.AnswerApprove, api.ExtentSession, "cat *"))
	w.asks(q, "ls")
	w.ran("git", "log", "-3")
}

// What an agent's own program starts is folded away once it has changed and reached nothing.
func TestUpkeepIsFolded(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModePolicy, map[string]string{"a": "1", "agent.py": `
import subprocess
for argv in (["cat", "a"], ["touch", "b"], ["sh", "-c", "cat a"], ["bash", "-c", "exec 3<>/dev/tcp/192.0.2.1/80"],
             ["python3", "-c", "import socket; socket.socket().connect_ex(('192.0.2.2', 9))"]):
    subprocess.run(argv)
input()
`}, "python3", "agent.py")
	var q api.Question
	for _, host := range []string{"192.0.2.1", "192.0.2.2"} {
		q = w.asks(q, host)
		w.must(w.decide(q, api.AnswerDeny))
	}
	for n, folded := range map[int]bool{1: true, 2: false, 3: false, 4: false, 5: false} {
		a := w.happened("the end of an action", func(e api.Event) bool { return e.Kind == "action.ended" && e.Action.N == n }).Action
		if a.Housekeeping != folded {
			t.Errorf("%s is folded: %v", a.Title, a.Housekeeping)
		}
	}
}

// A launcher starts the agent, with its own arguments and at its terminal: that is asked about once, and what it
// starts each time.
func TestALauncherStartsTheAgent(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModeStep, map[string]string{
		"a":            "1",
		"bin/launcher": "#!/usr/bin/perl\nsystem('./inner', @ARGV);\nsystem('cat', @ARGV);\n", "inner": "#!/usr/bin/perl\nsystem('cat', @ARGV);\nsystem('rm', @ARGV);\n",
	}, "launcher", "a")
	q := w.approves(w.asks(api.Question{}, "inner a"))
	if !strings.Contains(q.Rule, "the agent starts itself again") {
		t.Errorf("it is asked about by %q", q.Rule)
	}
	q = w.approves(w.asks(q, "cat a"))
	w.asks(q, "rm a")
}
