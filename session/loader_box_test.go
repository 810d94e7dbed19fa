package session_test

import (
	"testing"

	"stepbox/session/api"
)

// What was allowed always is asked about again when a variable makes something else of
// it, wherever that comes from, or when the agent wrote a program of that name.
func TestAnAnswerHoldsForItsWordsOnly(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"environment": "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=remote.a.pushurl GIT_CONFIG_VALUE_0=/x; git push a; read x",
		"in front":    "bash -c 'GIT_SSH_COMMAND=./x git push a'; read x",
		"sourced":     "echo 'export LD_PRELOAD=./x.so' >v; bash -c '. ./v; env git push a'; read x",
		"script":      "printf '#!/bin/sh\\nGIT_DIR=/x git push a\\n' >s; chmod +x s; ./s; read x",
		"its own":     "printf '#!/bin/sh\\n' >git; chmod +x git; ./git push a; read x",
	} {
		t.Run(name, func(t *testing.T) {
			w := startAsking(t, api.ModePolicy, "git push a; git push a; "+script)
			q := w.held(0)
			w.must(w.answer(q, api.AnswerApprove, api.ExtentAlways, "git push a"))
			q = w.held(q.ID)
			if q.Rule == "" || q.Command == nil || len(q.Command.Env) == 0 && name != "in front" && name != "its own" {
				t.Errorf("asks %q by %q with %+v", q.Title, q.Rule, q.Command)
			}
			w.must(w.decide(q, api.AnswerDeny))
		})
	}
}
