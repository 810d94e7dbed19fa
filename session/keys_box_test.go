package session_test

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/session"
	"stepbox/session/api"
)

// sshAgent is a person's agent with one key; its socket, and the key's public half.
func sshAgent(t *testing.T) (sock, public string) {
	t.Helper()
	dir := t.TempDir()
	sock, key := filepath.Join(dir, "sock"), filepath.Join(dir, "key")
	daemon := exec.Command("ssh-agent", "-D", "-a", sock)
	says, err := daemon.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Skipf("OpenSSH isn't installed: %v", err)
	}
	t.Cleanup(func() { _ = daemon.Process.Kill(); _ = daemon.Wait() })
	if line, err := bufio.NewReader(says).ReadString('\n'); err != nil { // it listens once it says where
		t.Fatalf("ssh-agent says %q: %v", line, err)
	}
	for _, argv := range [][]string{{"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "me@laptop", "-f", key}, {"ssh-add", "-q", key}} {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = []string{"SSH_AUTH_SOCK=" + sock, "PATH=/usr/bin:/bin"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", argv, err, out)
		}
	}
	return sock, key + ".pub"
}

// Keys of the person's agent can be listed inside, and each use of one is a question; an
// answer for the session is asked no more.
func TestEachUseOfAKeyIsAsked(t *testing.T) {
	t.Parallel()
	sock, public := sshAgent(t)
	const script = `ssh-add -l >keys
for what in git git git file; do echo commit | ssh-keygen -Y sign -n $what -f key.pub; done; read x`
	w := startConfigured(t, func(project string) {
		if out, err := exec.Command("cp", public, filepath.Join(project, "key.pub")).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}, func(c *session.Config) { c.Mode, c.Env = api.ModePolicy, append(c.Env, "SSH_AUTH_SOCK="+sock) }, "bash", "-c", script)
	signed := 0
	ended := func(failed bool) {
		t.Helper()
		signed++
		n := 0
		a := w.action("a signature's end", func(a api.Action) bool {
			if strings.HasPrefix(a.Title, "ssh-keygen -Y sign") && a.State == api.ActionEnded && a.Exit != nil {
				n++
			}
			return n == signed
		})
		if (a.Exit.Code != 0) != failed {
			t.Errorf("signature %d ended with %d", signed, a.Exit.Code)
		}
	}
	q := w.asks(api.Question{}, "sign a git commit or tag with your key me@laptop")
	if keys := w.has("keys"); !strings.Contains(keys, "me@laptop") {
		t.Errorf("listed are %q", keys)
	}
	if q.Subject != api.SubjectRequest || !q.Request.Lasts || !strings.HasSuffix(q.Request.Program, "/ssh-keygen") || q.Action == 0 {
		t.Errorf("asked is %+v, %+v", q, q.Request)
	}
	if err := w.answer(q, api.AnswerApprove, api.ExtentAlways, ""); code(err) != api.CodeInvalid {
		t.Errorf("for always: %v", err)
	}
	if err := w.answer(q, api.AnswerStepInto, "", ""); code(err) != api.CodeInvalid {
		t.Errorf("into: %v", err)
	}
	w.must(w.answer(q, api.AnswerDeny, api.ExtentOnce, ""))
	ended(true)
	q = w.asks(q, "sign a git commit or tag")
	w.must(w.answer(q, api.AnswerApprove, api.ExtentSession, ""))
	ended(false)
	ended(false) // unasked
	q = w.asks(q, `sign something for "file"`)
	if err := w.answer(q, api.AnswerApprove, api.ExtentSession, ""); code(err) != api.CodeInvalid {
		t.Errorf("for the session, of what isn't known: %v", err)
	}
	w.must(w.answer(q, api.AnswerApprove, api.ExtentOnce, ""))
	ended(false)
	if out, err := exec.Command("env", "SSH_AUTH_SOCK="+sock, "ssh-add", "-l").CombinedOutput(); err != nil || !strings.Contains(string(out), "me@laptop") {
		t.Errorf("the person's agent was changed: %s", out)
	}
}
