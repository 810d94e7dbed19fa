package judge

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stepbox/policy"
	"stepbox/runner/gate"
	"stepbox/session/e2e/must"
)

// wrapped is how the agent "claude" runs a command after it read a snapshot of
// its shell.
func wrapped(t *testing.T, snapshot, command string) (*gate.Exec, *policy.Profile) {
	t.Helper()
	p := policy.BuiltinProfiles().For([]string{"claude"}, "")
	argv := []string{"/bin/bash", "-c", "source " + snapshot + " 2>/dev/null || true && shopt -u extglob 2>/dev/null || true && eval '" + command + "' < /dev/null && pwd -P >| /tmp/claude-1-cwd"}
	if peeled := p.Peel(argv); !peeled.Wrapped || len(peeled.Sources) != 1 {
		t.Fatalf("the profile doesn't know its own wrapper: %+v", peeled)
	}
	return &gate.Exec{Path: "/bin/bash", Argv: argv, Cwd: "/p", Program: gate.Program{Path: "/bin/bash"}}, p
}

// A sourced file that isn't there yet may come: it is looked at again, and the first look stays as it is.
func TestSourcesAgain(t *testing.T) {
	home := t.TempDir()
	j := guarded(t, &Judge{Places: Places{Project: "/p", Upper: t.TempDir(), Home: "/home/me", HomeDir: home, Began: time.Now()}})
	onHost := filepath.Join(home, ".claude/shell-snapshots/snapshot-bash-1-a.sh")
	e, profile := wrapped(t, "/home/me/.claude/shell-snapshots/snapshot-bash-1-a.sh", "true")
	x := j.Exec(e, profile)
	if told := x.Command.Unpinned; len(told) != 1 || !strings.Contains(told[0], "snapshot-bash-1-a.sh, if it is made by then") {
		t.Errorf("it is told %q", told)
	}
	if len(x.Command.Sources) > 0 || x.Judgement.Verdict != policy.Allow || !x.Moves() {
		t.Errorf("a file that isn't there is suspect, or isn't looked at again: %+v", x.Judgement)
	}
	must.OK(t, os.MkdirAll(filepath.Dir(onHost), 0o700))
	must.OK(t, os.WriteFile(onHost, []byte("ls() { ./x; }\n"), 0o600))
	again := j.Again(x)
	if len(again.Command.Sources) != 1 || again.Judgement.Verdict != policy.Ask || len(x.Command.Sources) > 0 {
		t.Errorf("what came isn't suspect: %+v", again.Judgement)
	}
	must.OK(t, os.Remove(onHost))
	if x = j.Again(again); len(x.Command.Sources) > 0 || x.Judgement.Verdict != policy.Allow {
		t.Errorf("what was suspect stays so: %+v", x.Judgement)
	}
}

// A source in the project is anybody's, also when it is reached by other words.
func TestSourcesOfTheProject(t *testing.T) {
	home := t.TempDir()
	j := guarded(t, &Judge{Places: Places{Project: "/home/me/.claude", Upper: t.TempDir(), Home: "/home/me", HomeDir: home, Began: time.Now()}})
	e, profile := wrapped(t, "/home/me/.claude/shell-snapshots/snapshot-bash-1-a.sh", "true")
	if x := j.Exec(e, profile); len(x.Command.Sources) != 1 || x.Judgement.Verdict != policy.Ask {
		t.Errorf("the project's snapshot is read without a word: %+v", x.Judgement)
	}
	// Without a rule that it could be about, it is told, and nothing is asked.
	j.Use(policy.Of())
	if x := j.Exec(e, profile); len(x.Command.Sources) != 1 || x.Judgement.Verdict != policy.Allow {
		t.Errorf("without a rule that asks: %q, %+v", x.Command.Sources, x.Judgement)
	}
}

// A program that runs may be gone from its path, or be in memory: that it is new tells.
func TestARunningProgramIsWritten(t *testing.T) {
	began := time.Now()
	j := &Judge{Places: Places{Project: "/p", Upper: t.TempDir(), Home: "/home/me", HomeDir: t.TempDir(), Temp: t.TempDir(), Began: began}}
	for _, c := range []struct {
		program string
		changed time.Time
		want    bool
	}{
		{"/usr/bin/psql", began.Add(-time.Hour), false},
		{"/p/bin/psql", began.Add(-time.Hour), false},
		{"/tmp/psql", began, true},
		{"/p/psql-1 (deleted)", began.Add(time.Second), true},
		{"/memfd:x/psql (deleted)", began.Add(time.Second), true},
		{"/data/written/psql", began.Add(time.Second), true},
	} {
		if got := j.Wrote(c.program, c.changed); got != c.want {
			t.Errorf("%s: %v", c.program, got)
		}
	}
}

// A file that commands are read from is told until a person has approved one that read it as it is; rules doubt what
// reads one that was changed since it was read first.
func TestSourcesTold(t *testing.T) {
	const first, then = "unalias -a\n", "ls() { ./x; }\n"
	for name, test := range map[string]struct {
		at, first, then string
		link            bool
		approves        bool // what read the first, before the second
		told, doubted   bool
	}{
		"nobody approved it":        {at: "/home/me/.claude/s.sh", first: first, told: true},
		"as it was approved":        {at: "/home/me/.claude/s.sh", first: first, approves: true},
		"changed since":             {at: "/home/me/.claude/s.sh", first: first, then: then, told: true, doubted: true},
		"changed since approved":    {at: "/home/me/.claude/s.sh", first: first, then: then, approves: true, told: true, doubted: true},
		"the project's":             {at: "/p/s.sh", first: first, approves: true, told: true, doubted: true},
		"a link":                    {at: "/home/me/.claude/s.sh", first: first, link: true, approves: true, told: true, doubted: true},
		"from a pipe":               {at: "/dev/fd/3", approves: true, told: true, doubted: true},
		"where the agent can't":     {at: "/etc/profile", told: true, doubted: true}, // it is no agent's
		"made since it was missing": {at: "/home/me/.claude/s.sh", then: then, told: true, doubted: true},
	} {
		home, upper := t.TempDir(), t.TempDir()
		j := guarded(t, &Judge{Places: Places{Project: "/p", Upper: upper, Home: "/home/me", HomeDir: home, Began: time.Now()}})
		must.OK(t, os.MkdirAll(filepath.Join(home, ".claude"), 0o700))
		at := filepath.Join(home, ".claude", "s.sh")
		if test.link {
			must.OK(t, os.Symlink(filepath.Join(home, "other"), at))
			at = filepath.Join(home, "other")
		}
		if test.first != "" {
			must.OK(t, os.WriteFile(at, []byte(test.first), 0o600))
		}
		e, profile := wrapped(t, test.at, "ls")
		x := j.Exec(e, profile)
		if test.approves {
			j.Approved(x)
		}
		if test.then != "" {
			must.OK(t, os.WriteFile(at, []byte(test.then), 0o600))
		}
		x = j.Again(x)
		if told, doubted := len(x.Command.Sources) > 0, x.Doubt() != ""; told != test.told || doubted != test.doubted {
			t.Errorf("%s: told %v, doubted %v", name, told, doubted)
		}
	}
}
