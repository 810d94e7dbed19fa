package session_test

import (
	"slices"
	"strings"
	"testing"

	"stepbox/session/api"
)

// In step mode a rule of the session lets what the agent's own program starts pass, what waits included, as far as a
// question would tell no more than its words. What that starts isn't in it.
func TestARuleOfTheSessionInStepMode(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModeStep, map[string]string{
		"a": "1", "evil.sh": "#!/bin/sh\ntouch made\n", "own/cat": "#!/bin/sh\ntouch made\n",
		"agent.pl": `
for $n (1, 2) { unless (fork) { setpgrp; exec "git", "log", "-$n" } }
wait for 1, 2;
system "git", "log", "-3";
system "bash", "-c", "git log -1; touch made";
system "cat", "a";
system "cat", "a";
{ local $ENV{PATH} = "$ENV{PWD}/own:$ENV{PATH}"; system "cat", "a" }
{ local $ENV{LD_PRELOAD} = "./x.so"; system "cat", "a" }
{ local $ENV{GIT_EXTERNAL_DIFF} = "./evil.sh"; system "git", "log", "-1" }
system "find", "a", "-exec", "cat", "{}", ";";
open F, ">$ENV{HOME}/.gitconfig"; close F;
system "git", "log", "-4";
`}, "perl", "agent.pl")
	first := w.asks(api.Question{}, "git log")
	if !first.Command.Itself {
		t.Error("it isn't known who starts it")
	}
	second := w.asks(first, "git log")
	w.must(w.answer(first, api.AnswerApprove, api.ExtentSession, "git log *"))
	w.happened("the other is let pass by the rule", func(e api.Event) bool {
		return e.Question != nil && e.Question.ID == second.ID && e.Question.Closed == "allow"
	})
	deny := func(title string) (q api.Question) {
		q = w.asks(second, title)
		w.must(w.decide(q, api.AnswerDeny))
		second = q
		return q
	}
	if q := deny("git log -1; touch made"); q.Command.Itself { // a shell's line can be anything
		t.Error("a shell's line is taken for the agent's own")
	}
	w.ran("git", "log", "-3")
	second = w.asks(second, "cat a")
	w.must(w.answer(second, api.AnswerApprove, api.ExtentProject, "cat a"))
	second = w.asks(second, "cat a") // a rule in a file is no answer in step mode
	w.must(w.answer(second, api.AnswerApprove, api.ExtentSession, "cat *"))
	deny("cat a [runs") // another program
	deny("cat a")       // with more than its words
	deny("git log -1")
	second = w.asks(second, "find a -exec")
	w.must(w.answer(second, api.AnswerApprove, api.ExtentSession, "find *"))
	deny("git log -4") // which reads what the session wrote
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

// A rule that is made of what the agent's own program starts is about that alone, and about nothing in another mode.
func TestARuleOnTheAgentsOwn(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModeStep, map[string]string{"a": "1", "agent.pl": `
system "cat", "a";
system "find", "a", "-exec", "cat", "{}", ";";
system "find", "a", "-exec", "cat", "{}", ";";
<STDIN>;
system "cat", "a", "a";
`}, "perl", "agent.pl")
	q := w.asks(api.Question{}, "cat a")
	w.must(w.answer(q, api.AnswerApprove, api.ExtentSession, "cat *"))
	q = w.asks(q, "find a")
	w.must(w.answer(q, api.AnswerApprove, api.ExtentSession, "find *")) // of this one all is covered
	q = w.asks(q, "cat a")
	if q.Subject != api.SubjectNested {
		t.Errorf("asked about a %s, want what a program that passed by a rule starts", q.Subject)
	}
	w.must(w.decide(q, api.AnswerApprove))
	made, err := w.AddRule(t.Context(), api.Rule{Verdict: api.Ask, Command: "cat a a", For: api.ExtentAlways, By: "test"})
	w.must(err)
	if !slices.ContainsFunc(made.Session.Rules, func(r api.Rule) bool { return r.Itself == "/usr/bin/cat" || r.Itself == "/bin/cat" }) {
		t.Errorf("the rules are %+v", made.Session.Rules)
	}
	_, err = w.SetMode(t.Context(), api.ModePolicy)
	w.must(err)
	w.enter()
	w.asks(q, "cat a a")
}
