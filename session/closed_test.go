package session_test

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// An approval covers what descends from a program only as long as nobody outside of what was approved can
// tell it what to do. What each of these does to get past that is asked about.

// What a program is told at a terminal that the agent made isn't in what was approved, however it has that.
func TestTypedIntoAnApprovedProgram(t *testing.T) {
	t.Parallel()
	for how, child := range map[string]string{
		"its own":        "",
		"without orders": "os.fork() and (os.wait(), os._exit(0)); os.setsid(); os.dup2(os.open('/dev/null', 0), 0)", // pagers and editors read keys from where they write
		"another's":      "os.fork() and (os.wait(), os._exit(0)); os.setsid()",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			for _, program := range []string{"python3", "less"} {
				if _, err := exec.LookPath(program); err != nil {
					t.Skip(err)
				}
			}
			w := begin(t, api.ModeStep, map[string]string{"text": "a\n", "agent.py": `
import os, pty, select
pid, fd = pty.fork()
if pid == 0:
    ` + cmp.Or(child, "pass") + `
    os.environ.update(TERM="xterm", LESS="")
    os.execvp("less", ["less", "text"])
said = b""
while b"END" not in said and b"text" not in said:
    said += os.read(fd, 1024)
while True:
    try:
        os.write(fd, b"!touch made\n\n")
        while select.select([fd], [], [], 1)[0]:
            os.read(fd, 1024)
    except OSError:
        break
`}, "python3", "agent.py")
			w.isAskedAbout("less text", "and may have been told to by others than action 1")
		})
	}
}

// A signal that an approved program handles is an order.
func TestSignalToAnApprovedProgram(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModeStep, map[string]string{
		"agent.pl": `
unless ($child = fork) { exec "perl", "child.pl"; exit 1 }
sleep 1 until -e "ready";
for (1 .. 3) { open F, ">", "/tmp/$_" . (kill(USR1, $child) ? "sent" : "refused"); close F }
sleep 1 until -e "told";
kill TERM, $child;
waitpid $child, 0;
sleep 60;
`,
		"child.pl": `$SIG{USR1} = sub { open F, ">", "told" }; open F, ">", "ready"; sleep 1 while 1;`,
	}, "perl", "agent.pl")
	q := w.approves(w.asks(api.Question{}, "perl child.pl"))
	const title = "send SIGUSR1 to perl of #1, which handles it"
	q = w.asks(q, title)
	w.answers(q, api.AnswerDeny)
	w.happened("the refusal", func(e api.Event) bool {
		return e.Kind == "note" && strings.Contains(e.Note.Text, "perl tried to send SIGUSR1 to the approved program perl")
	})
	q = w.asks(q, title)
	w.untouched("told")
	_, err := w.Decide(w.Context(), api.Decision{Question: q.ID, Hash: q.Hash, Answer: api.AnswerApprove, For: api.ExtentSession, By: "test"})
	w.must(err)
	end := w.happened("the end of the child", func(e api.Event) bool { return e.Kind == "action.ended" && e.Action.N == 1 })
	if s := end.Action.Exit.Signal; s != "SIGTERM" {
		t.Errorf("it ended by %q", s)
	}
	w.ends()
}

// What the agent writes while an approved command runs is asked about before the next one, and as that one ends, also where
// git ignores it or keeps its own.
func TestWrittenBesideAnApprovedCommand(t *testing.T) {
	t.Parallel()
	needGit(t)
	for how, then := range map[string]string{
		"the next":        `unless (fork) { unless (fork) { exec "make", "-n" } exit 0 } sleep 60;`,
		"its end":         `close W; sleep 60;`,
		"what is ignored": `open F, ">", "build/out"; print F "x"; close F; close W; sleep 60;`,
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := startProgram(t, api.ModeStep, func(project string) {
				gitIn(t, project, "init", "-q")
				must.OK(t, os.Mkdir(filepath.Join(project, "build"), 0o755))
				for name, text := range map[string]string{".gitignore": "build\n", "build/out": "", "Makefile": "all:\n", "agent.pl": `
pipe R, W;
unless (fork) { close W; open STDIN, "<&R"; exec "cat" }
close R;
sleep 1 until -e "/tmp/go";
open F, ">>", "Makefile" and print F "evil:\n" and close F if "` + how + `" ne "what is ignored";
` + then} {
					must.OK(t, os.WriteFile(filepath.Join(project, name), []byte(text), 0o644))
				}
			}, "perl", "agent.pl")
			q := w.approves(w.asks(api.Question{}, "cat"))
			w.happened("it runs", func(e api.Event) bool { return e.Kind == "exec.allowed" && e.Exec.Action == 1 })
			must.OK(t, os.WriteFile(filepath.Join(w.store.SessionDir(w.ID()), "tmp", "go"), nil, 0o600))
			if q = w.held(q.ID); q.Subject != api.SubjectEdit || len(q.Changes) != 1 {
				t.Errorf("asked about %q: %s", q.Title, q.Rule)
			}
			w.ends()
		})
	}
}

// The text of a program of the project could be written through a mapping that was made before, which the kernel doesn't see.
func TestTextIsMapped(t *testing.T) {
	t.Parallel()
	w := startProgram(t, api.ModeStep, func(project string) {
		program, err := os.ReadFile("/bin/true")
		must.OK(t, err)
		for _, name := range []string{"mapped", "other"} {
			must.OK(t, os.WriteFile(filepath.Join(project, name), program, 0o755))
		}
		cc := exec.Command("cc", "-w", "-o", filepath.Join(project, "agent"), "-x", "c", "-")
		cc.Stdin = strings.NewReader(`
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include <sys/wait.h>
int main(void) {
	int f = open("mapped", O_RDWR), s, n = open("/tmp/mapped.txt", O_WRONLY | O_CREAT, 0644);
	mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
	close(f);
	if (!fork()) { execl("./mapped", "./mapped", 0); _exit(1); }
	wait(&s);
	dprintf(n, "%d", s);
	if (!fork()) { execl("./other", "./other", 0); _exit(1); }
	sleep(60);
}`)
		if out, err := cc.CombinedOutput(); err != nil {
			t.Fatalf("cannot compile: %v\n%s", err, out)
		}
	}, "./agent")
	q := w.approves(w.asks(api.Question{}, "./mapped"))
	w.approves(w.asks(q, "./other"))
	end := w.happened("the end", func(e api.Event) bool { return e.Kind == "action.ended" && e.Action.Title == "./other" })
	if end.Action.Exit == nil || end.Action.Exit.Code != 0 {
		t.Errorf("the other ended by %+v", end.Action.Exit)
	}
	if said, err := os.ReadFile(filepath.Join(w.store.SessionDir(w.ID()), "tmp", "mapped.txt")); string(said) != "9" {
		t.Errorf("it ended by %q (%v)", said, err)
	}
	w.ends()
}

// A command whose output is a file of the project is shown with that, and no rule keeps what it wrote there.
func TestPrintsIntoTheProject(t *testing.T) {
	t.Parallel()
	needGit(t)
	w := startProgram(t, api.ModeStep, func(project string) {
		gitIn(t, project, "init", "-q")
		must.OK(t, os.Mkdir(filepath.Join(project, "build"), 0o755))
		must.OK(t, os.WriteFile(filepath.Join(project, ".gitignore"), []byte("build\n"), 0o644))
		must.OK(t, os.WriteFile(filepath.Join(project, "build", "out"), nil, 0o644))
	}, "bash", "-c", "echo evil | cat >build/out; sleep 60")
	q := w.asks(api.Question{}, "cat")
	if !slices.ContainsFunc(q.Command.Unpinned, func(u string) bool {
		return strings.Contains(u, "what it prints is written to") && strings.Contains(u, "build/out")
	}) {
		t.Errorf("it is shown with %q", q.Command.Unpinned)
	}
	w.approves(q)
	if review := w.held(q.ID); review.Subject != api.SubjectEdit || len(review.Changes) != 1 {
		t.Errorf("asked about %q", review.Title)
	}
	w.ends()
}

// What the kernel doesn't let become an approved program goes on as the agent, and what that writes is an edit, also
// when it has ended before anybody looked.
func TestWrittenByWhatDidNotStart(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModeStep, map[string]string{"agent.pl": `
pipe IN, HELD; pipe R, W;
unless (fork) { open STDIN, "<&IN"; open STDOUT, ">&W"; exec "/bin/cat" }
my $refused = fork;
unless ($refused) {
	my $executing = pack "Q", 1;
	my $rules = syscall 444, $executing, 8, 0; # landlock_create_ruleset(2): nothing is executed
	syscall 446, $rules, 0; # landlock_restrict_self(2)
	open STDIN, "<&R";
	exec "/usr/bin/wc" or do { open F, ">", "mine"; close F; exit };
}
waitpid $refused, 0;
system "ls";
sleep 60;
`}, "perl", "agent.pl")
	q := w.approves(w.asks(api.Question{}, "cat | /usr/bin/wc"))
	w.happened("that it didn't start", func(e api.Event) bool { return e.Kind == "exec.failed" })
	if edit := w.asks(q, "mine"); edit.Subject != api.SubjectEdit {
		t.Errorf("asked about %q", edit.Title)
	}
	w.ends()
}

// What an action left running may start what others say.
func TestServerOutlivesItsAction(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModeStep, map[string]string{
		"agent.pl": `
use IO::Socket::UNIX;
system "perl", "server.pl";
sleep 1;
my $s = IO::Socket::UNIX->new(Peer => "/tmp/socket") or die $!;
print $s "touch made\n";
close $s;
sleep 60;
`,
		"server.pl": `
use IO::Socket::UNIX;
my $l = IO::Socket::UNIX->new(Local => "/tmp/socket", Listen => 1) or die $!;
exit if fork;
while (my $c = $l->accept) { chomp(my $line = <$c>); system split " ", $line }
`,
	}, "perl", "agent.pl")
	w.isAskedAbout("perl server.pl", "what was approved of action 1 has ended")
}

// An edit that never rests is asked about as it is.
func TestRestlessEditIsAskedAbout(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModeStep, map[string]string{"agent.pl": `open F, ">", "made"; select F; $| = 1; while (1) { print "x"; select undef, undef, undef, 0.01 }`}, "perl", "agent.pl")
	if q := w.asks(api.Question{}, "edit"); q.Subject != api.SubjectEdit {
		t.Errorf("it is asked as %s", q.Subject)
	}
	w.ends()
}

// isAskedAbout approves a command, and says that what it is told then to start, touch made, is asked about for
// this reason, and hasn't happened. It ends the session.
func (w *world) isAskedAbout(command, why string) {
	w.Helper()
	q := w.asks(w.approves(w.asks(api.Question{}, command)), "touch made")
	if q.Subject != api.SubjectNested || !strings.Contains(q.Rule, why) {
		w.Errorf("it is asked as %s: %s", q.Subject, q.Rule)
	}
	w.untouched("made")
	w.ends()
}

// ends ends the session.
func (w *world) ends() {
	w.Helper()
	if _, err := w.Kill(w.Context()); err != nil {
		w.Error(err)
	}
	<-w.Done()
}

// The person may let an action start what it likes, whoever tells it to.
func TestStepOverWhatAnActionStarts(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModeStep, map[string]string{"agent.pl": `
pipe R, W;
if (!fork) { close W; open STDIN, "<&R"; exec "xargs", "-n1", "mkdir" }
print W "one two three"; close W; close R;
sleep 60;
`}, "perl", "agent.pl")
	q := w.approves(w.asks(api.Question{}, "xargs"))
	nested := w.asks(q, "mkdir one")
	w.must(w.decide(nested, api.AnswerStepOver))
	if ended := w.happened("the action's end", func(e api.Event) bool { return e.Kind == "action.ended" }); ended.Action.Files != 3 {
		t.Errorf("it made %d folders", ended.Action.Files)
	}
	for e, err := range w.read.Recorded(t.Context(), w.ID(), 0) {
		w.must(err)
		if e.Kind == "question.opened" && e.Question.Subject == api.SubjectNested && e.Question.ID != nested.ID {
			t.Errorf("%q was asked about", e.Question.Title)
		}
	}
	w.ends()
}

// What was approved within an action covers what it starts, as any approval does, and what that changes is the action's.
func TestApprovedWithinAnAction(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModeStep, map[string]string{"agent.pl": `
pipe R, W;
if (!fork) { close W; open STDIN, "<&R"; exec "xargs", "-I{}", "sh", "-c", "mkdir {}; touch {}/f" }
print W "one\ntwo\n"; close W; close R;
sleep 60;
`}, "perl", "agent.pl")
	q := w.approves(w.asks(api.Question{}, "xargs"))
	q = w.approves(w.asks(q, "mkdir one; touch one/f"))
	q = w.approves(w.asks(q, "mkdir two; touch two/f"))
	w.answers(w.heldAbout(api.SubjectEdit, 0), api.AnswerKeep) // before the second begins
	if ended := w.happened("the action's end", func(e api.Event) bool { return e.Kind == "action.ended" }); ended.Action.Files != 2 {
		t.Errorf("it made %d files", ended.Action.Files)
	}
	if q = w.held(q.ID); q.Subject != api.SubjectEdit {
		t.Errorf("asked about %s", q.Title)
	}
	w.ends()
}
