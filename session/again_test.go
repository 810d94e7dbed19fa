package session_test

import (
	"strings"
	"testing"

	"stepbox/session/api"
)

// Agents start themselves again, with more memory or as a native program: one
// approval of that must not cover all that they ever do.
func TestJudgeAgentThatStartsItselfAgain(t *testing.T) {
	t.Parallel()
	const work = "cat victim.txt\nrm -v victim.txt\n"
	for name, c := range map[string]struct {
		files map[string]string
		argv  []string
	}{
		"by its interpreter": {map[string]string{"bin/gem": "#!/bin/sh\nif [ -z \"$again\" ]; then again=1 sh -e \"$0\"; exit; fi\n" + work}, []string{"gem"}},
		"by env":             {map[string]string{"bin/gem": "#!/usr/bin/env bash\nif [ -z \"$again\" ]; then again=1 bash -e \"$0\"; exit; fi\n" + work}, []string{"gem"}},
		"itself":             {map[string]string{"bin/gem": "#!/usr/bin/env bash\nif [ -z \"$again\" ]; then again=1 \"$0\"; exit; fi\n" + work}, []string{"gem"}},
		"by name":            {map[string]string{"bin/cop": "#!/bin/sh\n\"${0%/*}/lib/cop\" x\nexit\n", "bin/lib/cop": "#!/bin/sh\n" + work}, []string{"cop"}},
		"as an argument":     {map[string]string{"agent.sh": "if [ -z \"$again\" ]; then again=1 sh -e agent.sh; exit; fi\n" + work}, []string{"sh", "agent.sh"}},
		"by another program": {map[string]string{"agent.sh": work}, []string{"timeout", "600", "sh", "agent.sh"}},
		"twice": {map[string]string{"bin/gem": "#!/bin/sh\ncase $again in '') again=1 sh -e \"$0\"; exit;; 1) again=2 sh -e \"$0\"; exit;; esac\n" + work},
			[]string{"gem"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.files["victim.txt"] = "x"
			w := begin(t, api.ModeStep, c.files, c.argv...)
			q := w.held(0)
			for n := 1; strings.Contains(q.Rule, "the agent starts itself again"); n++ {
				if q.Action != n {
					t.Fatalf("%q is held for action %d, want %d", q.Title, q.Action, n)
				}
				q = w.held(w.approves(q).ID)
			}
			if q.Action == 1 || q.Title != "cat victim.txt" {
				t.Fatalf("held %q for action %d by %q, want the agent itself, then cat", q.Title, q.Action, q.Rule)
			}
			q = w.asks(w.approves(q), "rm -v victim.txt")
			if q.Subject != api.SubjectCommand {
				t.Errorf("rm is held as %s, want an action of its own", q.Subject)
			}
			w.must(w.decide(q, api.AnswerDeny))
			<-w.Done()
			w.untouched("victim.txt")
			w.happened("a denial is counted", func(e api.Event) bool { return e.Session != nil && e.Session.Denials == 1 })
		})
	}
}

// What merely has the agent's interpreter is a command as any other, which is
// asked about once.
func TestJudgeAgentsInterpreterIsNoAgent(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModeStep, map[string]string{
		"agent.sh": "sh -c 'cat a; true'\nsh other.sh\ncat b\n", "other.sh": "cat a\n", "a": "x", "b": "x",
	}, "sh", "agent.sh")
	var q api.Question
	for _, title := range []string{"cat a; true", "sh other.sh", "cat b"} {
		q = w.approves(w.asks(q, title))
	}
	<-w.Done()
}

// Approving what launches an agent doesn't cover what that agent does.
func TestJudgeAgentWithinAnAction(t *testing.T) {
	t.Parallel()
	for name, launch := range map[string]string{"shell": "sh -c 'claude; true'", "launcher": "sh launch.sh", "again": "sh -c 'sh -c claude; true'", "orphan": "sh -c '(setsid claude; true) & wait'"} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, api.ModeStep, map[string]string{
				"victim.txt": "x", "agent.sh": launch + "\ntrue\n", "launch.sh": "claude\ntrue\n",
				"bin/claude": "#!/bin/sh\nrm -v victim.txt\ncat other.txt\n",
			}, "sh", "agent.sh")
			q := w.held(w.approves(w.held(0)).ID)
			for ; q.Title != "claude" && q.Action == 1; q = w.held(w.approves(q).ID) {
			}
			if q.Action == 1 || !strings.Contains(q.Rule, "an agent within action 1") {
				t.Fatalf("held %q for action %d by %q, want claude as an action of its own", q.Title, q.Action, q.Rule)
			}
			q = w.asks(w.approves(q), "rm -v victim.txt")
			w.must(w.decide(q, api.AnswerDeny))
			w.asks(q, "cat other.txt")
			w.untouched("victim.txt")
		})
	}
}
