package session_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/runner"
	"stepbox/session"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// talk is an agent that has the tools called, one after the other, over one server.
func talk(calls ...string) string {
	const speak = `import json, subprocess, sys
p = subprocess.Popen(["` + runner.SelfPath + `", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
n = 0
def rpc(method, params):
	global n
	n += 1
	p.stdin.write(json.dumps({"jsonrpc": "2.0", "id": n, "method": method, "params": params}) + "\n")
	p.stdin.flush()
	while True:
		m = json.loads(p.stdout.readline())
		if m.get("id") == n:
			return m
rpc("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
p.stdin.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n")
def call(tool, **args):
	r = rpc("tools/call", {"name": tool, "arguments": args})
	r = r.get("result", r)
	text = " ".join(c["text"] for c in r.get("content", [{"text": json.dumps(r)}]))
	open("/tmp/said.txt", "a").write(f"{tool}{' failed' if r.get('isError') else ''}: {text}\n")
	return text
def edit(name, text):
	open(name, "w").write(text)
`
	return speak + strings.Join(calls, "\n") + "\nsubprocess.run([\"touch\", \"/tmp/finished\"])\nsys.stdin.readline()\n"
}

// talking starts a session with such an agent.
func talking(t *testing.T, mode api.Mode, calls ...string) *world {
	t.Helper()
	exe, err := os.Executable()
	must.OK(t, err)
	return startConfigured(t, func(string) {}, func(c *session.Config) { c.Mode, c.Program = mode, exe }, "python3", "-c", talk(calls...))
}

// said is what the agent wrote down of the tools' answers, once it is finished.
func (w *world) said() string {
	w.Helper()
	w.finished()
	text, err := os.ReadFile(filepath.Join(w.store.SessionDir(w.ID()), "tmp", "said.txt"))
	must.OK(w, err)
	return string(text)
}

// finished waits for the last that the agent does.
func (w *world) finished() {
	w.Helper()
	w.happened("the agent's last call", func(e api.Event) bool {
		return e.Action != nil && e.Action.Title == "touch /tmp/finished" && e.Action.State == api.ActionEnded
	})
}

// TestTools: an agent finds out what it may do and why something was denied, marks a
// state of the files, and takes back what it did last, and nothing else.
func TestTools(t *testing.T) {
	t.Parallel()
	w := talking(t, api.ModePolicy,
		`call("what_may_i_do")`, `call("why_denied")`, `call("my_changes")`,
		`subprocess.run(["sh", "-c", "echo one > one.txt"])`, `subprocess.run(["sh", "-c", "echo two > two.txt"])`,
		`while "two.txt" not in call("my_changes"): pass`, `call("checkpoint", text="before\x1b[2J all")`, // it may have ended before that is known
		`while "still runs" in call("take_back_last"): pass`,
		`call("allow", host="example.com")`, `call("what_may_i_do", host="example.com")`,
	)
	rolled := w.happened("the roll back", func(e api.Event) bool { return e.Kind == "rollback.done" }).Rollback
	if rolled.By != "the agent" || rolled.Files == 0 {
		t.Errorf("it is recorded as %+v", rolled)
	}
	text := w.said()
	for _, want := range []string{"Mode policy", "why_denied: Nothing was denied", "my_changes: Nothing has changed", "two.txt", "checkpoint: The files as they are now are checkpoint", "take_back_last: #3", "unknown tool"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if s, err := w.read.Session(t.Context(), w.ID()); err != nil || len(s.Rules)+len(s.Hosts) > 0 {
		t.Errorf("there are rules now: %+v %v, %v", s.Rules, s.Hosts, err)
	}
}

// TestAsksPerson: a question of the agent's is shown, its answer comes back in words, and
// nothing is allowed by it; there are few at once, and one whose asker is gone goes away.
func TestAsksPerson(t *testing.T) {
	t.Parallel()
	w := talking(t, api.ModePolicy,
		`call("ask_person", text="May I push\x1b[2J to example.com?")`,
		`call("ask_person", text="Really?")`,
		`call("ask_person", text="")`,
		`call("why_denied")`,
	)
	q := w.held(0)
	if q.Subject != api.SubjectCall || !strings.Contains(q.Title, `May I push\x1b[2J to example.com?`) {
		t.Errorf("it is shown as %+v", q)
	}
	for _, d := range []api.Decision{{Answer: api.AnswerApprove, For: api.ExtentAlways}, {Answer: api.AnswerStepInto}, {Answer: api.AnswerKeep}, {Answer: api.AnswerApproveKeep}} {
		d.Question, d.Hash = q.ID, q.Hash
		if _, err := w.Decide(t.Context(), d); err == nil {
			t.Errorf("%+v is an answer", d)
		}
	}
	if _, err := w.Decide(t.Context(), api.Decision{Question: q.ID, Hash: q.Hash, Answer: api.AnswerApprove, Reason: "on a branch", By: "kim"}); err != nil {
		t.Fatal(err)
	}
	must.OK(t, w.decide(w.held(q.ID), api.AnswerDeny))
	text := w.said()
	for _, want := range []string{"says yes. In their words: on a branch This changes nothing", "says no.", "failed: there is no question"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	s, err := w.read.Session(t.Context(), w.ID())
	if err != nil || len(s.Rules) > 0 || s.Held != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	a := w.happened("its action", func(e api.Event) bool { return e.Action != nil && e.Action.N == q.Action && !e.Action.EndedAt.IsZero() }).Action
	if a.Kind != api.KindCall || a.By != "kim" || a.State != api.ActionEnded {
		t.Errorf("the action is %+v", a)
	}
}

// TestAgentsPrompt: the agent's own prompt is a question, whose answer its hook gives it;
// an answer allows only what that prompt would.
func TestAgentsPrompt(t *testing.T) {
	t.Parallel()
	input := call("t1", "Bash", `{"command":"git push","description":"publish it"}`)
	w := telling(t, api.ModePolicy, `
hook PermissionRequest '`+input+`' >/tmp/one
git push
hook PermissionRequest '`+input+`' >/tmp/two
touch /tmp/finished
printf '%s' '`+input+`' >/tmp/in
`+runner.SelfPath+` hook claude PermissionRequest </tmp/in &
asking=$!
read end
kill $asking
read end
`)
	q := w.held(0)
	if q.Subject != api.SubjectCall || q.Title != "may it use Bash: git push" {
		t.Errorf("the prompt is %+v", q)
	}
	w.must(w.decide(q, api.AnswerApprove))
	push := w.held(q.ID)
	if push.Subject != api.SubjectCommand || push.Title != "git push" {
		t.Fatalf("after that, held is %+v", push)
	}
	w.must(w.decide(push, api.AnswerDeny))
	again := w.held(push.ID)
	if _, err := w.Decide(t.Context(), api.Decision{Question: again.ID, Hash: again.Hash, Answer: api.AnswerDeny, Reason: "not today", By: "kim"}); err != nil {
		t.Fatal(err)
	}
	w.finished()
	for name, want := range map[string]string{
		"one": `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}`,
		"two": `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"not today"}}}`,
	} {
		got, err := os.ReadFile(filepath.Join(w.store.SessionDir(w.ID()), "tmp", name))
		if err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("%s: the agent gets %s, %v", name, got, err)
		}
	}
	gone := w.held(again.ID)
	w.enter()
	w.happened("the withdrawal", func(e api.Event) bool {
		return e.Question != nil && e.Question.ID == gone.ID && e.Question.Closed == "withdrawn"
	})
}

// TestPromptAnsweredThere: when the person answers in the agent's own prompt, the question
// about it goes away as soon as the call is seen to go on, and takes no answer any more.
// Claude Code doesn't say in it which call it is about.
func TestPromptAnsweredThere(t *testing.T) {
	t.Parallel()
	asked := func(input string) string { return strings.Replace(call("", "Bash", input), `"tool_use_id":"",`, "", 1) }
	const ask = "printf '%s' '%ASKED' >/tmp/in$n\n" + `%SELF hook claude PermissionRequest </tmp/in$n >/tmp/out$n &
read go
`
	prompt := func(n, input string) string {
		return "n=" + n + "\n" + strings.NewReplacer("%ASKED", asked(input), "%SELF", runner.SelfPath).Replace(ask)
	}
	first, second, other := `{"command":"touch b.txt","description":"x"}`, `{"command":"cat none"}`, `{"command":"cat other"}`
	w := telling(t, api.ModePolicy, `
hook PreToolUse '`+call("t1", "Bash", first)+`'
`+prompt("1", first)+`
touch b.txt
read go
hook PreToolUse '`+call("t2", "Bash", second)+`'
hook PreToolUse '`+call("t3", "Bash", other)+`'
`+prompt("2", second)+prompt("3", other)+`
hook PostToolUse '`+call("t2", "Bash", second)+`'
read end
`)
	command := w.held(0)
	w.enter()
	withdrawn(t, w, command)
	w.enter()
	over := w.held(command.ID)
	w.enter()
	stays := w.held(over.ID)
	w.enter()
	withdrawn(t, w, over)
	w.must(w.decide(stays, api.AnswerDeny)) // the call that it is about didn't go on
}

// withdrawn waits until a question of the agent's own prompt is withdrawn, and fails the
// test when it still takes an answer.
func withdrawn(t *testing.T, w *world, q api.Question) {
	t.Helper()
	w.happened("the withdrawal", func(e api.Event) bool {
		return e.Question != nil && e.Question.ID == q.ID && e.Question.Closed == "withdrawn"
	})
	if err := w.decide(q, api.AnswerDeny); err == nil {
		t.Errorf("question %d still takes an answer", q.ID)
	}
	a := w.happened("its action", func(e api.Event) bool { return e.Action != nil && e.Action.N == q.Action && !e.Action.EndedAt.IsZero() }).Action
	if a.State != api.ActionAbandoned {
		t.Errorf("the action is %+v", a)
	}
}

// TestPromptRefusedThere: a no in the agent's own prompt is told by no hook. The question
// goes away when the agent is seen to be at something else, by itself or by its person;
// what a helper of its does says nothing of that.
func TestPromptRefusedThere(t *testing.T) {
	t.Parallel()
	prompt := func(n, input string) string {
		return "printf '%s' '" + call("t"+n, "Bash", input) + "' >/tmp/in" + n + "\n" + runner.SelfPath + " hook claude PermissionRequest </tmp/in" + n + " >/dev/null &\nread go\n"
	}
	input := `{"command":"git push"}`
	helper := strings.Replace(call("t3", "Bash", input), "{", `{"agent_id":"h1",`, 1)
	w := telling(t, api.ModePolicy, `
hook PreToolUse '`+call("t1", "Bash", input)+`'
`+prompt("1", input)+`
hook UserPromptSubmit '{"session_id":"abc-1","prompt":"no"}'
hook PreToolUse '`+call("t2", "Bash", input)+`'
`+prompt("2", input)+`
hook PreToolUse '`+helper+`'
read go
hook PreToolUse '`+call("t4", "Read", `{"file_path":"/x"}`)+`'
read end
`)
	first := w.held(0)
	w.enter()
	withdrawn(t, w, first)
	second := w.held(first.ID)
	w.enter()
	w.happened("a helper's call", func(e api.Event) bool { return e.Claim != nil && e.Claim.Helper == "h1" })
	if s, err := w.read.Session(t.Context(), w.ID()); err != nil || s.Held != 1 {
		t.Errorf("after a helper's call, %d are held: %v", s.Held, err)
	}
	w.enter()
	withdrawn(t, w, second)
}

// TestClaimFlood: what the sandbox says too often isn't recorded, which is said once, and
// what isn't a claim, or is another session's answer, is no more than ignored.
func TestClaimFlood(t *testing.T) {
	t.Parallel()
	w := talking(t, api.ModePolicy, `
import socket
def raw(line):
	s = socket.socket(socket.AF_UNIX)
	s.connect("/run/stepbox/tell")
	try:
		s.sendall(line)
		return s.makefile("rb").readline()
	except OSError:
		return b""
for line in (b"\n", b"{}\n", b"\x00" * 100 + b"\n", b"x" * (2 << 20), b'{"decision":{"question":1,"answer":"approve"}}\n', b'{"hook":{"event":"PreToolUse","session":"other","input":{}}}\n'):
	open("/tmp/said.txt", "ab").write(raw(line))
for i in range(300):
	raw(b'{"hook":{"agent":"claude","event":"PreToolUse","input":{"tool_name":"x"}}}\n')`)
	if text := w.said(); text != "" {
		t.Errorf("nonsense is answered: %s", text)
	}
	claims, notes := 0, 0
	for e, err := range w.read.Events(t.Context(), w.ID(), 0) {
		must.OK(t, err)
		if e.Claim != nil {
			claims++
		}
		if e.Note != nil && strings.Contains(e.Note.Text, "more tool calls than are recorded") {
			notes++
		}
		if e.Action != nil && e.Action.Title == "touch /tmp/finished" {
			break
		}
	}
	if claims < 200 || claims > 260 || notes != 1 {
		t.Errorf("%d claims are recorded, and %d notes", claims, notes)
	}
}
