package session_test

import (
	"os"
	"path/filepath"
	"testing"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/rules"
)

// The hosts that an agent needs are its own processes': it is asked about what only is called as the agent, in an
// action or started by the agent, and about what the agent becomes.
func TestAgentsHostsAreItsOwn(t *testing.T) {
	t.Parallel()
	const connect = `use IO::Socket::INET; IO::Socket::INET->new(PeerAddr => shift @ARGV, PeerPort => 443, Timeout => 9);`
	w := startProgram(t, api.ModePolicy, func(project string) {
		dir := filepath.Join(filepath.Dir(rules.User(filepath.Join(filepath.Dir(project), "home"), "")), "profiles")
		must.OK(t, os.MkdirAll(dir, 0o755))
		must.OK(t, os.WriteFile(filepath.Join(dir, "mine.yaml"), []byte("name: mine\ntitle: Mine\nagent: true\nmatch: {programs: [mine]}\nhosts: ['*.mine.invalid:443']\n"), 0o644))
		must.OK(t, os.MkdirAll(filepath.Join(project, "bin"), 0o755))
		must.OK(t, os.WriteFile(filepath.Join(project, "connect"), []byte(connect), 0o644))
		must.OK(t, os.WriteFile(filepath.Join(project, "bin", "mine"), []byte(`#!/usr/bin/perl
do './connect' for @ARGV = ('itself.mine.invalid');
system('bash', '-c', 'cp /usr/bin/perl /tmp/mine; /tmp/mine connect action.mine.invalid; true');
system('/tmp/mine', 'connect', 'child.mine.invalid');
exec('/usr/bin/perl', 'connect', 'became.mine.invalid');
`), 0o755))
	}, "bin/mine")
	asked := func(host string) bool {
		t.Helper()
		e := w.happened("it connects to "+host, func(e api.Event) bool {
			return e.Question != nil && e.Question.Connection != nil && e.Question.Connection.Host == host || e.Attempt != nil && e.Attempt.Name == host && e.Attempt.Verdict == api.Allow
		})
		if e.Question != nil {
			w.must(w.decide(*e.Question, api.AnswerDeny))
		}
		return e.Question != nil
	}
	if asked("itself.mine.invalid") {
		t.Error("the agent itself is asked about")
	}
	for _, host := range []string{"action.mine.invalid", "child.mine.invalid", "became.mine.invalid"} {
		if !asked(host) {
			t.Errorf("%s is reached unasked", host)
		}
	}
}
