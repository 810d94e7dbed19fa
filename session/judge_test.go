package session_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/session"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/rules"
)

// begin starts an agent of its own over a project with these files. Names that
// begin with "bin/" go to a folder of PATH outside the project.
func begin(t *testing.T, mode api.Mode, files map[string]string, argv ...string) *world {
	t.Helper()
	var bin string
	return startConfigured(t, func(project string) {
		must.OK(t, os.Remove(filepath.Join(project, "a.txt")))
		bin = filepath.Join(filepath.Dir(project), "bin")
		must.OK(t, os.Mkdir(bin, 0o700))
		for name, content := range files {
			file := filepath.Join(project, name)
			if rest, ok := strings.CutPrefix(name, "bin/"); ok {
				file = filepath.Join(bin, rest)
			}
			must.OK(t, os.MkdirAll(filepath.Dir(file), 0o755))
			must.OK(t, os.WriteFile(file, []byte(content), 0o755))
		}
	}, func(c *session.Config) {
		c.Mode, c.Env = mode, []string{"PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin"}
	}, argv...)
}

// asks waits for the next question after one and says whether it is about what
// it should be.
func (w *world) asks(after api.Question, title string) api.Question {
	w.Helper()
	q := w.held(after.ID)
	if !strings.Contains(q.Title, title) {
		w.Fatalf("held %q (%s), want %q", q.Title, q.Rule, title)
	}
	return q
}

// approves answers yes, and to reviews that they are kept, until something that
// is about title is held.
func (w *world) approves(q api.Question) api.Question {
	w.Helper()
	w.answers(q, api.AnswerApprove)
	return q
}

// answers decides. What the agent edited before has to be kept first, and on a
// busy machine may be asked about last.
func (w *world) answers(q api.Question, a api.Answer) {
	w.Helper()
	err := w.decide(q, a)
	for after := q.ID; code(err) == api.CodeBusy; err = w.decide(q, a) {
		edit := w.held(after)
		if after = edit.ID; edit.Subject == api.SubjectEdit {
			w.must(w.decide(edit, api.AnswerKeep))
		}
	}
	w.must(err)
}

// ran waits until a program was let run.
func (w *world) ran(argv ...string) api.Exec {
	w.Helper()
	e := w.happened("the start of "+strings.Join(argv, " "), func(e api.Event) bool {
		return e.Kind == "exec.allowed" && strings.Join(e.Exec.Argv, " ") == strings.Join(argv, " ")
	})
	return *e.Exec
}

// untouched says that the agent's victim is still there.
func (w *world) untouched(names ...string) {
	w.Helper()
	for _, n := range names {
		if _, err := os.Lstat(filepath.Join(w.store.SessionDir(w.ID()), "upper", n)); err == nil {
			w.Errorf("%s was changed", n)
		}
	}
}

// What of judging is the kernel's word about processes, and may differ for an ordinary user, who has no cgroups here.
func TestJudgingAsUnprivileged(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("this is the ordinary user")
	}
	asOrdinary(t, "^(TestJudgeSelfExecIsAsked|TestJudgeForgedAgent|TestJudgeDescentIsByFork|TestJudgePipeOfARunningAction|TestJudgeWhatLoadsMore)$")
}

func TestJudgeSelfExecIsAsked(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModeStep, map[string]string{"victim.txt": "x", "agent.sh": "exec rm -v victim.txt agent.sh\n"}, "bash", "agent.sh")
	q := w.asks(api.Question{}, "rm -v victim.txt agent.sh")
	if !strings.Contains(q.Rule, "the agent becomes") || !strings.Contains(q.Rule, "/rm") {
		t.Errorf("the question's rule is %q, want it to say what the agent becomes", q.Rule)
	}
	w.must(w.decide(q, api.AnswerDeny))
	<-w.Done()
	w.untouched("victim.txt", "agent.sh")
}

func TestJudgeSelfExecMeetsTheRules(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModePolicy, map[string]string{rules.Name: "commands: [{ask: rm -r}]\n", "sub/victim.txt": "x", "b": "x"}, "bash", "-s", "--", ".")
	v := w.Terminal().Join()
	defer v.Close()
	v.Input([]byte("exec rm -rf -v . sub b -s -- .\n"))
	q := w.asks(api.Question{}, "rm -rf -v . sub b -s -- .")
	w.must(w.decide(q, api.AnswerDeny))
	w.untouched("sub/victim.txt", "b")
}

func TestJudgeWhatTheAgentBecomesIsTheAgent(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModeStep, map[string]string{"agent.sh": "exec -a node sh -c 'cat a; cat b; true'\n", "a": "1", "b": "2"}, "bash", "agent.sh")
	q := w.asks(api.Question{}, "cat a; cat b")
	w.approves(q)
	for _, name := range []string{"cat a", "cat b"} {
		q = w.asks(q, name)
		if q.Subject != api.SubjectCommand {
			t.Errorf("%s is held as %s, want an action of its own", name, q.Subject)
		}
		w.approves(q)
	}
	<-w.Done()
}

func TestJudgeScriptAgentWithoutArguments(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"kernel": "#!/bin/sh",
		"env":    "#!/usr/bin/env sh",
		"split":  "#!/usr/bin/env -S sh -f",
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, api.ModeStep, map[string]string{"bin/pi": line + "\ncat victim.txt\nrm -v victim.txt\n", "victim.txt": "x"}, "pi")
			q := w.asks(api.Question{}, "cat victim.txt")
			if q.Action != 1 {
				t.Errorf("cat is action %d, want 1: the interpreter isn't one", q.Action)
			}
			q = w.asks(w.approves(q), "rm -v victim.txt")
			w.must(w.decide(q, api.AnswerDeny))
			<-w.Done()
			w.untouched("victim.txt")
		})
	}
}

func TestJudgeScriptAgentWithArguments(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModeStep, map[string]string{"bin/pi": "#!/usr/bin/env sh\ncat \"$1\"; true\n", "a": "x"}, "pi", "a")
	q := w.asks(api.Question{}, "cat a")
	if q.Action != 1 {
		t.Errorf("cat is action %d, want 1", q.Action)
	}
}

// Of the chain from env(1) to the interpreter only the very next exec passes.
func TestJudgeInterpreterPassesOnce(t *testing.T) {
	t.Parallel()
	script := "#!/usr/bin/env bash\nif [ -z \"$again\" ]; then again=1; export again; fi; exec bash \"$0\"\n"
	w := begin(t, api.ModeStep, map[string]string{"bin/pi": script}, "pi")
	q := w.held(0)
	if !strings.Contains(q.Rule, "the agent becomes") {
		t.Errorf("the second interpreter is held as %q, want the agent becoming it", q.Rule)
	}
}

func TestJudgeInterpreterIsTheOneOnPath(t *testing.T) {
	t.Parallel()
	// env is told by the agent's own program to start what only looks like it.
	script := "#!/bin/sh\nmkdir -p x\n"
	w := begin(t, api.ModeStep, map[string]string{
		"bin/pi": "#!/usr/bin/env bash\nln -s /usr/bin/rm sh\nexec -a sh ./sh -v victim.txt\n", "victim.txt": "x", "unused": script,
	}, "pi")
	q := w.asks(api.Question{}, "ln -s /usr/bin/rm sh")
	w.approves(q)
	w.must(w.decide(w.heldAbout(api.SubjectEdit, q.ID), api.AnswerKeep))
	q = w.heldAbout(api.SubjectCommand, q.ID)
	if !strings.Contains(q.Title, "/usr/bin/rm") || !strings.Contains(q.Rule, "the agent becomes") {
		t.Errorf("held %q, %q; want what really runs", q.Title, q.Rule)
	}
	w.must(w.decide(q, api.AnswerDeny))
	w.untouched("victim.txt")
}

func TestJudgeAnExecThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	// Approved, but the kernel can't run it: the shell goes on as the agent.
	w := begin(t, api.ModeStep, map[string]string{
		"agent.sh":   "shopt -s execfail\nexec ./broken\nrm -v victim.txt\n",
		"broken":     "\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9) + "\x02\x00\x3e\x00" + strings.Repeat("\x00", 100),
		"victim.txt": "x",
	}, "bash", "agent.sh")
	q := w.asks(api.Question{}, "broken")
	w.approves(q)
	q = w.asks(q, "rm -v victim.txt")
	w.must(w.decide(q, api.AnswerDeny))
	w.untouched("victim.txt")
}

func TestJudgePipeOfARunningAction(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModeStep, map[string]string{"victim.txt": "x",
		"agent.sh": "set -m; sleep 1000 | { sleep 1; rm -v victim.txt; python3 -c 'open(\"own\",\"w\")'; }; read x\n"}, "bash", "agent.sh")
	q := w.approves(w.asks(api.Question{}, "sleep"))
	for q = w.held(q.ID); strings.HasPrefix(q.Title, "sleep"); q = w.held(q.ID) {
		w.approves(q) // on a busy machine the other sleep comes too late to be asked about with the first
	}
	if q.Title != "rm -v victim.txt" || !strings.Contains(q.Rule, fmt.Sprintf("joins action %d", q.Action)) { // of either sleep
		t.Fatalf("%q is held for action %d by %q, want rm as what joins it", q.Title, q.Action, q.Rule)
	}
	w.must(w.decide(q, api.AnswerDeny))
	q = w.asks(q, "python3")
	w.must(w.decide(q, api.AnswerDeny))
	w.untouched("victim.txt", "own")
}

func TestJudgePipeThatTheAgentOpened(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModeStep, map[string]string{"victim.txt": "x",
		"agent.sh": "exec 3> >(read x); sleep 30 >&3 &\nread -t 1 x; rm -v victim.txt <&3 >&3; read x\n"}, "bash", "agent.sh")
	w.denies("sleep 30", "rm -v victim.txt")
}

// forker is a Python agent that gets a sleep approved and then tries to have
// something else run on that.
func forker(body string) map[string]string {
	return map[string]string{"victim.txt": "x", "agent.py": `
import os, sys, time, ctypes, signal, threading
def wait_for(name):
    while not os.path.exists("/proc/%d/comm" % name[0]) or open("/proc/%d/comm" % name[0]).read().strip() != name[1]:
        time.sleep(0.01)
RM = ["rm", "-v", "victim.txt"]
` + body + `
time.sleep(60)
`}
}

// Within an action a command that was approved isn't asked about again, but in
// another folder or environment it is another one.
func TestJudgeTheSameWordsElsewhere(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModePolicy, map[string]string{rules.Name: "commands: [{ask: git push}]\n", "a/x": "", "b/x": "", "agent.sh": "bash run.sh; read x\n", "run.sh": `
(cd a; /bin/git push ../none)
(cd a; /bin/git push ../none)
(cd b; /bin/git push ../none)
(cd b; A=1 /bin/git push ../none)
`}, "bash", "agent.sh")
	cwd := func(q api.Question) string { return filepath.Base(q.Command.Cwd) }
	q := w.asks(api.Question{}, "git push")
	if cwd(q) != "a" {
		t.Fatalf("held in %q, want a", cwd(q))
	}
	q = w.asks(w.approves(q), "git push")
	if cwd(q) != "b" || len(q.Command.Env) != 0 {
		t.Fatalf("held in %q with %q, want b", cwd(q), q.Command.Env)
	}
	if q = w.asks(w.approves(q), "git push"); cwd(q) != "b" || len(q.Command.Env) != 1 {
		t.Errorf("held in %q with %q, want b with A=1", cwd(q), q.Command.Env)
	}
}

// Whether an escape was made for the person or typed can't be seen, so it is said.
func TestJudgeSaysWhatIsEscaped(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModePolicy, map[string]string{rules.Name: "commands: [{ask: git push}]\n", "agent.sh": `
/bin/git push 'a\nb'
/bin/git push $'a\nb'
A=$'\e[2J' /bin/git push c
read x
`}, "bash", "agent.sh")
	var q api.Question
	for _, want := range []bool{false, true, true} {
		if q = w.asks(q, "git push"); q.Command.Unclear != want {
			t.Errorf("%s, with %q: unclear is %v", q.Command.Line, q.Command.Env, q.Command.Unclear)
		}
		q = w.approves(q)
	}
}

// An interpreter that the agent feeds is approved without what it will be fed:
// what it starts is asked about, in whatever the input is.
func TestJudgeFedInterpreters(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"pipe":      `a = subprocess.Popen(["python3", "-"], stdin=subprocess.PIPE); feed(a.stdin.fileno())`,
		"socket":    `a, b = socket.socketpair(); subprocess.Popen(["python3"], stdin=b); b.close(); feed(a.fileno())`,
		"terminal":  `a, b = pty.openpty(); subprocess.Popen(["python3", "-q"], stdin=b); feed(a)`,
		"arguments": `a = subprocess.Popen(["xargs", "-I{}", "python3", "-c", "import os; os.spawnlp(os.P_WAIT, 'rm', 'rm', '-v', '{}')"], stdin=subprocess.PIPE); os.write(a.stdin.fileno(), b"victim.txt"); a.stdin.close()`,
		"named":     `os.mkfifo("/tmp/f"); subprocess.Popen(["python3", "/tmp/f"]); feed(os.open("/tmp/f", os.O_WRONLY))`,
		"handed on": `a = subprocess.Popen(["env", "python3", "-"], stdin=subprocess.PIPE); feed(a.stdin.fileno())`,
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, api.ModeStep, map[string]string{"victim.txt": "x", "agent.py": `
import os, pty, socket, subprocess, time
def feed(fd):
    os.write(fd, b"import os; os.spawnlp(os.P_WAIT, 'rm', 'rm', '-v', 'victim.txt')\n")
    if not os.isatty(fd): os.close(fd)
` + body + `
time.sleep(60)
`}, "python3", "agent.py")
			q := w.held(0)
			for q.Command != nil && strings.Contains(q.Title, "python3") && !strings.Contains(q.Title, "victim.txt") {
				if q.Command.Argv[0] == "python3" && name != "arguments" && !strings.Contains(strings.Join(q.Command.Unpinned, " "), "what it starts is asked about") {
					t.Errorf("nobody is told that %q is fed", q.Title)
				}
				q = w.held(w.approves(q).ID)
			}
			if q.Subject == api.SubjectEdit || !strings.Contains(q.Title, "victim.txt") {
				t.Fatalf("held %q, want what was fed", q.Title)
			}
			w.must(w.decide(q, api.AnswerDeny))
			w.untouched("victim.txt")
		})
	}
}

// TestJudgeDescentIsByFork has agents join an approved program in every way but
// descending from it.
func TestJudgeDescentIsByFork(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"group of an orphan": `
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    os.execvp("sleep", ["sleep", "60"])
wait_for((child, "sleep"))
if os.fork() == 0:
    if os.fork() == 0:
        while os.getppid() != 1: time.sleep(0.01)
        os.setpgid(0, child)
        os.execvp("rm", RM)
    os._exit(0)
os.wait()
`,
		"forked before the approval": `
r, w = os.pipe()
child = os.fork()
if child == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(w); os.read(r, 1)
        os.execvp("rm", RM)
    os.close(w)
    os.execvp("sleep", ["sleep", "60"])
wait_for((child, "sleep"))
os.write(w, b"x")
`,
		"forked before the approval, orphan": `
r, w = os.pipe()
child = os.fork()
if child == 0:
    os.setsid()
    if os.fork() == 0:
        if os.fork() == 0:
            os.close(w); os.read(r, 1)
            while os.getppid() != 1: time.sleep(0.01)
            os.execvp("rm", RM)
        os.read(r, 1)
        os._exit(0)
    os.close(w)
    os.execvp("sleep", ["sleep", "60"])
wait_for((child, "sleep"))
os.write(w, b"xx")
`,
		"from a thread": `
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    os.execvp("sleep", ["sleep", "60"])
wait_for((child, "sleep"))
def run():
    if os.fork() == 0:
        os.setpgid(0, child)
        os.execvp("rm", RM)
threading.Thread(target=run).start()
`,
		"from a thread, in its own place": `
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    os.execvp("sleep", ["sleep", "60"])
wait_for((child, "sleep"))
threading.Thread(target=lambda: os.execvp("rm", RM)).start()
`,
		"its standard input": `
a, b = os.pipe()
child = os.fork()
if child == 0:
    os.dup2(b, 1)
    os.execvp("sleep", ["sleep", "60"])
wait_for((child, "sleep"))
if os.fork() == 0:
    os.dup2(a, 0)
    os.execvp("rm", RM)
`,
		"an exec that failed": `
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    open("sleep", "wb").write(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\x3e\x00" + bytes(100))
    os.chmod("sleep", 0o755)
    try: os.execv("./sleep", ["sleep", "60"])
    except OSError: pass
    os.execvp("rm", RM)
`,
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, api.ModeStep, forker(body), "python3", "agent.py")
			w.denies("sleep 60", "rm -v victim.txt")
		})
	}
}

// denies approves one command, keeps what the agent edits, and denies another.
func (w *world) denies(yes, no string) {
	w.Helper()
	q := api.Question{}
	for {
		q = w.held(q.ID)
		switch {
		case q.Subject == api.SubjectEdit:
			if err := w.decide(q, api.AnswerKeep); code(err) != api.CodeDecided {
				w.must(err)
			}
		case strings.HasPrefix(q.Title, yes):
			w.approves(q)
		case strings.HasPrefix(q.Title, no):
			w.answers(q, api.AnswerDeny)
			w.untouched("victim.txt")
			return
		default:
			w.Fatalf("held %q, want %s or %s", q.Title, yes, no)
		}
	}
}

// What detaches itself from what was approved is asked about, though it is still the action's: others may lead it by then.
func TestJudgeApprovalCoversNoOrphan(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModeStep, map[string]string{"a": "1", "agent.sh": "sh -c 'cat a; ((until read -r a b c parent d </proc/self/stat && [ $parent = 1 ]; do :; done; setsid sh -c \"cat a; touch done; sleep 60\") &)'; read x\n"}, "bash", "agent.sh")
	q := w.approves(w.asks(api.Question{}, "cat a; ((until"))
	w.ran("cat", "a")
	nested := w.asks(q, "setsid")
	if nested.Subject != api.SubjectNested || !strings.Contains(nested.Rule, "isn't above what starts this") {
		t.Errorf("it is asked as %s: %s", nested.Subject, nested.Rule)
	}
	w.approves(nested)
	if e := w.ran("touch", "done"); e.Action != q.Action {
		t.Errorf("what the orphan starts is said to be of action %d, want %d", e.Action, q.Action)
	}
}

// What a rule let join isn't covered by the approval of what it joined.
func TestJudgeJoiningBringsNoApproval(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModePolicy, map[string]string{rules.Name: "commands: [{ask: rm -r}]\n", "old/x": "x", "victim.txt": "x",
		"join.py": "import subprocess\nsubprocess.run(['rm', '-rf', '.', 'victim.txt'])\n",
		"agent.py": `
import os, time
a, b = os.pipe()
child = os.fork()
if child == 0:
    os.dup2(b, 1)
    os.execvp("sh", ["sh", "-c", "rm -rf old .; sleep 60"])
while "rm" in os.popen("true").read() or os.path.exists("old"): time.sleep(0.05)
if os.fork() == 0:
    os.dup2(a, 0)
    os.execvp("python3", ["python3", "join.py"])
time.sleep(60)
`}, "python3", "agent.py")
	q := w.approves(w.asks(api.Question{}, "rm -rf old"))
	joiner := w.ran("python3", "join.py")
	if joiner.Action != q.Action {
		t.Errorf("what joins the pipe is of action %d, want %d", joiner.Action, q.Action)
	}
	q = w.asks(q, "rm -rf . victim.txt")
	w.must(w.decide(q, api.AnswerDeny))
	w.untouched("victim.txt")
}

// An interactive shell, which belongs to no action, becomes another program.
func TestJudgeARootThatBecomesAProgram(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModeStep, map[string]string{"victim.txt": "x", "a": "1",
		"agent.sh": "bash -s < commands\nread x\n", "commands": "cat a >/dev/null; exec rm -v victim.txt\n"}, "bash", "agent.sh")
	q := w.approves(w.asks(api.Question{}, "cat a"))
	q = w.asks(q, "rm -v victim.txt")
	w.must(w.decide(q, api.AnswerDeny))
	w.untouched("victim.txt")
}

// A root that had children when it became an approved program: those aren't its.
func TestJudgeChildrenOfARootBeforeItsApproval(t *testing.T) {
	t.Parallel()
	w := begin(t, api.ModeStep, map[string]string{"victim.txt": "x",
		"agent.sh": "bash -s < commands\nread x\n",
		"commands": "(while ! grep -q sleep /dev/null /proc/$$/comm; do read -t 0.05 x < <(read y); done; rm -v victim.txt) 2>/dev/null &\nexec sleep 60\n"},
		"bash", "agent.sh")
	w.denies("sleep 60", "grep")
}

// A program that calls itself an agent, from a folder that looks like one, is
// judged like any other when the agent wrote it.
func TestJudgeForgedAgent(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"its path": "/tmp/real", "a link": "/tmp/link", "another name": "/proc/self/root/tmp/real"} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, api.ModeStep, map[string]string{
				"bin/codex": "#!/bin/bash\n", "victim.txt": "x",
				"bin/node": "#!/bin/sh\n. \"$1\"\n",
				"agent.js": "import",
				"bin/claude": `#!/usr/bin/env python3
import os
os.makedirs("/tmp/real/@anthropic-ai/claude-code")
open("/tmp/real/@anthropic-ai/claude-code/cli.js", "w").write("x")
os.symlink("/tmp/real", "/tmp/link")
os.execvp("node", ["node", "` + path + `/@anthropic-ai/claude-code/cli.js"])
`}, "claude")
			q := w.held(0)
			for strings.Contains(q.Title, "pyenv") {
				q = w.held(w.approves(q).ID)
			}
			if !strings.Contains(q.Title, "cli.js") || !strings.Contains(q.Rule, "the agent becomes") {
				t.Errorf("held %q by %q, want the agent becoming its own forgery", q.Title, q.Rule)
			}
		})
	}
}

// What the agent left in its home for programs to obey is told with each question.
func TestJudgeTrapsInTheHomeAreTold(t *testing.T) {
	t.Parallel()
	for _, name := range []string{".gitconfig", ".bash_profile", ".config/git/config"} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, api.ModeStep, nil, "perl", "-e", `my $f = "$ENV{HOME}/`+name+`"; my $d = ""; `+
				`for (split "/", $f) { mkdir $d = "$d/$_" unless "$d/$_" =~ /$f$/ } open F, ">", "$f" or die $!; print F "x"; close F; system "ls", "-l"; sleep 60`)
			q := w.asks(api.Question{}, "ls -l")
			if got := strings.Join(q.Command.Unpinned, " "); !strings.Contains(got, "/home/"+name) {
				t.Errorf("nothing is said of %s: %q", name, got)
			}
			w.must(w.decide(q, api.AnswerDeny))
		})
	}
}
