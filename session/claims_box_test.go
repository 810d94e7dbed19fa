package session_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/runner"
	"stepbox/session"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/rules"
	"stepbox/session/tell"
)

// telling starts a session in which the agent is a shell that calls the hooks as real
// agents do.
func telling(t *testing.T, mode api.Mode, script string) *world {
	t.Helper()
	exe, err := os.Executable()
	must.OK(t, err)
	functions := `hook() { printf '%s' "$2" | ` + runner.SelfPath + ` hook claude "$1"; }
`
	return startConfigured(t, func(project string) {
		must.OK(t, os.WriteFile(filepath.Join(project, "agent.sh"), []byte(functions+script), 0o644))
		must.OK(t, os.WriteFile(filepath.Join(project, rules.Name), []byte("commands: [{ask: git push}]\n"), 0o644))
	}, func(c *session.Config) { c.Mode, c.Program = mode, exe }, "bash", "agent.sh")
}

// call is what Claude Code hands to a hook.
func call(id, tool, input string) string {
	return fmt.Sprintf(`{"session_id":"abc-1","hook_event_name":"x","cwd":"/","tool_name":"%s","tool_use_id":"%s","tool_input":%s,"tool_response":{"stdout":"x"}}`, tool, id, input)
}

// TestClaims: what the agent says of its tool calls is recorded as that, nobody is asked
// about the hooks, and what comes of a call is put beside it.
func TestClaims(t *testing.T) {
	t.Parallel()
	w := telling(t, api.ModePolicy, `
hook SessionStart '{"session_id":"abc-1","source":"startup"}'
hook PreToolUse '`+call("t1", "Bash", `{"command":"touch b.txt","description":"make \u001b[31m a file"}`)+`'
touch b.txt
hook PostToolUse '`+call("t1", "Bash", `{"command":"touch b.txt"}`)+`'
true unclaimed
env true
read end
`)
	ended := w.happened("the call's end", func(e api.Event) bool { return e.Kind == "claim.ended" })
	if c := ended.Claim; c.Tool != "Bash" || c.Call != "t1" || c.SessionID != "abc-1" || c.Command != "touch b.txt" || c.By != 0 || len(c.Actions) != 1 ||
		c.Text != `make \x1b[31m a file` || !strings.Contains(c.Input, "touch b.txt") {
		t.Errorf("the claim is %+v", c)
	}
	is := func(title string) api.Action {
		return *w.happened(title, func(e api.Event) bool {
			return e.Action != nil && e.Action.Title == title && e.Action.State == api.ActionEnded
		}).Action
	}
	if a := is("touch b.txt"); a.Claim == nil || a.Claim.N != ended.Claim.N || a.N != ended.Claim.Actions[0] {
		t.Errorf("the command isn't put beside its call: %+v", a)
	}
	if a := is("env true"); a.Claim != nil {
		t.Errorf("a command that no call named is put beside one: %+v", a.Claim)
	}
	s := w.happened("the agent's own session", func(e api.Event) bool { return e.Session != nil && e.Session.AgentSession != "" })
	if s.Session.AgentSession != "abc-1" {
		t.Errorf("its session is %q", s.Session.AgentSession)
	}
	actions, err := w.read.Actions(t.Context(), w.ID())
	must.OK(t, err)
	for _, a := range actions {
		if strings.Contains(a.Title, " hook ") && !a.Housekeeping {
			t.Errorf("the hook is an action: %+v", a)
		}
	}
}

// TestClaimsInStep: nobody is asked about the hooks in step mode either, unless it isn't
// our program, or is told anything else.
func TestClaimsInStep(t *testing.T) {
	t.Parallel()
	w := telling(t, api.ModeStep, `
hook PreToolUse '`+call("t1", "Bash", `{"command":"true"}`)+`'
`+runner.SelfPath+` hook claude PreToolUse more </dev/null
`+runner.SelfPath+` version </dev/null
cp `+runner.SelfPath+` /tmp/mine
/tmp/mine hook claude PreToolUse </dev/null
`)
	want := []string{"hook claude PreToolUse more", "stepbox version", "cp ", "/tmp/mine hook claude PreToolUse"}
	last := int64(0)
	for _, words := range want {
		q := w.held(last)
		if !strings.Contains(q.Title, words) {
			t.Errorf("question %d is about %q, want %q", q.ID, q.Title, words)
		}
		last = q.ID
		must.OK(t, w.decide(q, map[bool]api.Answer{true: api.AnswerApprove, false: api.AnswerDeny}[words == "cp "]))
	}
}

// TestClaimsForged: what a command says isn't taken for the agent's, and what the agent
// is to be told isn't told to it.
func TestClaimsForged(t *testing.T) {
	t.Parallel()
	w := telling(t, api.ModePolicy, `
sh -c "`+strings.ReplaceAll(`printf '%s' '`+call("t1", "Bash", `{"command":"env true"}`)+`' | `+runner.SelfPath+` hook claude PreToolUse; echo done`, `"`, `\"`)+`"
env true
read end
`)
	made := w.happened("the claim", func(e api.Event) bool { return e.Kind == "claim.made" }).Claim
	if made.By == 0 {
		t.Errorf("a command's words are the agent's: %+v", made)
	}
	a := w.happened("the command", func(e api.Event) bool {
		return e.Action != nil && e.Action.Title == "env true" && e.Action.State == api.ActionEnded
	}).Action
	if a.Claim != nil || a.N == made.By {
		t.Errorf("%+v came of what another command said", a)
	}
}

// TestClaimsHandedOn: a command can't speak as the agent by a connection that a process made
// which is gone.
func TestClaimsHandedOn(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3 here")
	}
	w := telling(t, api.ModePolicy, `
sh -c "echo more > more.txt"
sh -c "cat > /tmp/forge.py" <<'END'
import os, socket
def say(message, handed):
    s = socket.socket(socket.AF_UNIX)
    pid = os.fork() if handed else 0
    if pid == 0:
        s.connect("`+runner.SocketPath(tell.Socket)+`")
        if handed:
            os._exit(0)
    else:
        os.waitpid(pid, 0)
    s.sendall(message + b"\n")
    return s.recv(65536).decode()
for handed in (False, True):
    print("said", handed, say(b'{"call":{"tool":"take_back_last"}}', handed))
END
sh -c "python3 /tmp/forge.py > /tmp/forged.txt 2>&1"
cat more.txt
read end
`)
	w.happened("the command after it", func(e api.Event) bool {
		return e.Action != nil && e.Action.Title == "cat more.txt" && e.Action.State == api.ActionEnded
	})
	text, err := os.ReadFile(filepath.Join(w.store.SessionDir(w.ID()), "tmp", "forged.txt"))
	if err != nil || !strings.Contains(string(text), "only the agent itself") || !strings.Contains(string(text), "said True") || strings.Contains(string(text), "rolled back") {
		t.Errorf("it was told %q, %v", text, err)
	}
}
