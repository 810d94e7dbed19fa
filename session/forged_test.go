package session_test

import (
	"slices"
	"strings"
	"testing"

	"stepbox/session/api"
	"stepbox/session/rules"
)

// forger is an agent that puts rm where it says and runs it as what it says.
const forger = `#!/usr/bin/perl
sub copied { local $/; open F, "<", $_[0]; binmode F; my $x = <F>; open G, ">", $_[1] or die $!; binmode G; print G $x; close G; chmod 0755, $_[1] }
`

// Only programs that the agent can't have made pass unasked, whatever they are
// called and wherever they are.
func TestJudgeForgedPrograms(t *testing.T) {
	t.Parallel()
	inMemory := forger + `
my $name = "/x/claude/versions/1"; my $fd = syscall(319, $name, 2); # memfd_create, MFD_ALLOW_SEALING
local $/; open F, "<", "/usr/bin/rm"; binmode F; my $x = <F>;
open G, ">&=", $fd; binmode G; print G $x; G->flush; fcntl(G, 1033, 15);
if (!fork) { exec { "/proc/self/fd/$fd" } "claude", "victim.txt"; exit 1 }
sleep 60;
`
	moved := forger + `
mkdir "/tmp/x"; copied("/usr/bin/rm", "/tmp/x/bash");
$^F = 100; open P, "<", "/tmp/x/bash"; my $path = "/proc/self/fd/" . fileno(P);
unlink "/tmp/x/bash";
if (!fork) { exec { $path } "tmux", "new", "victim.txt"; exit 1 }
sleep 60;
`
	at := func(path, argv string) string {
		return forger + `copied("/usr/bin/rm", "` + path + `");
if (!fork) { exec { "` + path + `" } ` + argv + `; exit 1 }
sleep 60;
`
	}
	shell := `"tmux", "new", "victim.txt"`
	for name, agent := range map[string]string{
		"a shell in /dev/shm":       at("/dev/shm/bash", shell),
		"a shell in /run/lock":      at("/run/lock/sh", shell),
		"a shell in /var/tmp":       at("/var/tmp/bash", shell),
		"a shell in /tmp":           at("/tmp/bash", shell),
		"a shell that was deleted":  moved,
		"the agent in /dev/shm":     at("/dev/shm/claude", `"claude", "victim.txt"`),
		"the agent in memory":       inMemory,
		"a shell of the project's":  "#!/usr/bin/perl\nif (!fork) { exec { './screen' } 'screen', '-r', 'x'; exit 1 }\nsleep 60;\n",
		"a shell called a screen":   "#!/usr/bin/perl\nif (!fork) { exec { '/bin/bash' } 'dtach', '-c', ': >victim.txt'; exit 1 }\nsleep 60;\n",
		"an agent's other face":     "#!/usr/bin/perl\nif (!fork) { exec { './x/claude/versions/1' } 'rg', 'x'; exit 1 }\nsleep 60;\n",
		"an agent of the project's": "#!/usr/bin/perl\nif (!fork) { exec { './claude' } 'claude', '-v'; exit 1 }\nsleep 60;\n",
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"victim.txt": "x", "bin/claude": agent}
			for _, f := range []string{"screen", "claude", "x/claude/versions/1"} {
				files[f] = "#!/bin/sh\n: >victim.txt\n"
			}
			w := begin(t, api.ModeStep, files, "claude")
			q := w.held(0)
			if q.Subject != api.SubjectCommand || !strings.Contains(q.Title, "victim.txt") && !strings.Contains(q.Title, "[runs "+w.project) {
				t.Errorf("held %s %q, want the forged program", q.Subject, q.Title)
			}
			if q.Subject == api.SubjectCommand {
				w.must(w.decide(q, api.AnswerDeny))
			}
			w.untouched("victim.txt")
		})
	}
}

// A question names the file that runs, unless its words do or it is one of the
// system's or the person's that is called so.
func TestJudgeForgedNames(t *testing.T) {
	t.Parallel()
	for file, argv := range map[string]string{
		"/tmp/exe":  `"/proc/self/exe", "--codex-run-as-process-setup", "1", "2", "pipe", "3", "4", "bash", "bash", "-lc", "ls"`,
		"/tmp/bash": `"bash", "-lc", "ls"`,
		"/tmp/ls":   `"ls"`,
	} {
		t.Run(file, func(t *testing.T) {
			w := begin(t, api.ModeStep, map[string]string{"bin/codex": forger + `copied("/usr/bin/rm", "` + file + `");
if (!fork) { exec { "` + file + `" } ` + argv + `; exit 1 }
sleep 60;
`}, "codex")
			q := w.held(0)
			if want := "ls [runs " + file + "]"; q.Title != want {
				t.Errorf("held %q, want %q", q.Title, want)
			}
			w.must(w.decide(q, api.AnswerDeny))
		})
	}
}

// The kernel makes another command of a script: the rules are for that, too.
func TestJudgeForgedScript(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModePolicy, map[string]string{
		rules.Name: "commands: [{ask: rm -r}]\n", "agent.sh": "./rm.sh ../project; read x\n", "rm.sh": "#!/usr/bin/rm -rf\n", "sub/x": "", "victim.txt": "x",
	}, "bash", "agent.sh")
	q := w.asks(api.Question{}, "rm.sh")
	if !strings.Contains(q.Rule, "rm -r") {
		t.Errorf("held by %q, want the rule for rm -rf", q.Rule)
	}
	w.must(w.decide(q, api.AnswerDeny))
	w.untouched("victim.txt")
}

// Variables by which a program loads what isn't its own make it a command.
func TestJudgeWhatLoadsMore(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]string{
		"git":       "LD_PRELOAD=./x.so git rev-parse HEAD",
		"a shell":   "echo : | BASH_ENV=./x bash",
		"the agent": "NODE_OPTIONS=--require=./x.js claude --version",
	} {
		t.Run(name, func(t *testing.T) {
			again := "#!/bin/sh\n[ -z \"$2$1\" ] || exit 0\n"
			w := begin(t, api.ModeStep, map[string]string{"x.js": "", "bin/claude": again + start + "\nsleep 60\n"}, "claude")
			q := w.held(0)
			if q.Command == nil || !slices.ContainsFunc(q.Command.Env, func(v string) bool { return strings.Contains(start, v) }) {
				t.Errorf("held %q with the variables %q, want %s", q.Title, q.Command.Env, start)
			}
		})
	}
}

// A project, or a link in one, can't stand for the agent's own snapshot of its shell.
func TestJudgeSnapshotsOfTheProject(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{".claude", "link/.claude"} {
		t.Run(dir, func(t *testing.T) {
			const snapshot = "shell-snapshots/snapshot-bash-1.sh"
			w := begin(t, api.ModeStep, map[string]string{
				".claude/" + snapshot: ": >victim.txt\n", "x": "",
				"bin/claude": "#!/bin/sh\n[ -e link ] || ln -s . link\nbash -c \"source $PWD/" + dir + "/" + snapshot +
					" 2>/dev/null || true && shopt -u extglob 2>/dev/null || true && eval 'echo hello' && pwd -P >| /tmp/claude-1-cwd\"\n",
			}, "claude")
			q := w.held(0)
			for !strings.Contains(q.Title, "hello") { // the link is asked about, and kept
				answer := api.AnswerApprove
				if q.Subject == api.SubjectEdit {
					answer = api.AnswerKeep
				}
				w.must(w.decide(q, answer))
				q = w.held(q.ID)
			}
			if len(q.Command.Sources) != 1 || !strings.HasSuffix(q.Command.Sources[0], snapshot) {
				t.Errorf("%q tells of %q, want the snapshot", q.Title, q.Command.Sources)
			}
		})
	}
}
