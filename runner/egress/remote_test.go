package egress

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"stepbox/session/e2e/must"
)

// only allows one name.
func only(name string) func(context.Context, Attempt) Verdict {
	return func(_ context.Context, a Attempt) Verdict {
		return Verdict{Allow: a.Name == name && a.Protocol == "tcp", Rule: "only " + name}
	}
}

// serveSSH runs any command as cat does, which exits with 7. It gives its port and key.
func serveSSH(t *testing.T) (port uint16, key ssh.PublicKey) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	must.OK(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	must.OK(t, err)
	config := &ssh.ServerConfig{NoClientAuth: true}
	config.AddHostKey(signer)
	at := serve(t, internet, publicAddr+":0", func(c net.Conn) {
		conn, channels, requests, err := ssh.NewServerConn(c, config)
		if err != nil {
			return
		}
		defer conn.Close()
		go ssh.DiscardRequests(requests)
		for n := range channels {
			ch, requests, err := n.Accept()
			if err != nil {
				return
			}
			for r := range requests {
				r.Reply(true, nil)
				if r.Type == "exec" {
					break
				}
			}
			go ssh.DiscardRequests(requests)
			io.Copy(ch, ch)
			ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{7}))
			ch.Close()
		}
	})
	return at.Port(), signer.PublicKey()
}

// ssh runs a command on an allowed host as ever, and is refused by another.
func TestSSH(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("ssh isn't installed")
	}
	port, key := serveSSH(t)
	z := newZone(t, map[string][]string{"good.example": {publicAddr}, "bad.example": {publicAddr}})
	s := newSandbox(t, Options{resolver: z.resolver(), Judge: only("good.example")})
	s.resolvConf()
	known := filepath.Join(t.TempDir(), "known")
	var lines string
	for _, name := range []string{"good.example", "bad.example"} {
		lines += knownhosts.Line([]string{fmt.Sprintf("[%s]:%d", name, port)}, key) + "\n"
	}
	must.OK(t, os.WriteFile(known, []byte(lines), 0o600))
	script := `head -c 300000 /dev/zero | ssh -F none -o BatchMode=yes -o StrictHostKeyChecking=yes -o UserKnownHostsFile="$1" -p "$2" me@"$3" cat >out
echo $? $(wc -c <out)`
	run := func(name string) (string, error) {
		return s.run("sh", "-c", script, "sh", known, fmt.Sprint(port), name)
	}
	if out, err := run("good.example"); err != nil || out != "7 300000" {
		t.Errorf("allowed: %s, %v", out, err)
	}
	if a := s.waitClosed("good.example"); a.Sent < 300_000 || a.Received < 300_000 || a.Failure != "" {
		t.Errorf("logged %+v", a)
	}
	if out, err := run("bad.example"); err != nil || !strings.Contains(out, "Connection refused") || !strings.HasSuffix(out, "255 0") {
		t.Errorf("denied: %s, %v", out, err)
	}
	if a := s.waitClosed("bad.example"); a.Verdict != verdictDeny || a.Resolved != "" {
		t.Errorf("logged %+v", a)
	}
}

// gitServer is an empty repository and a server of its folder. git sends a large pack in
// chunks, which CGI has no word for.
func gitServer(t *testing.T) (repository string, handle http.Handler) {
	t.Helper()
	out, err := exec.Command("git", "--exec-path").Output()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("git isn't installed")
	}
	backend := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if _, missing := os.Stat(backend); err != nil || missing != nil {
		t.Skipf("git's server isn't installed: %v, %v", err, missing)
	}
	root := t.TempDir()
	repository = filepath.Join(root, "a.git")
	gitAt(t, root, "init", "-q", "--bare", "-b", "main", repository)
	gitAt(t, repository, "config", "http.receivepack", "true")
	gitAt(t, repository, "config", "receive.autogc", "false") // it would outlive the test
	serve := &cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1"}}
	return repository, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
		serve.ServeHTTP(w, r)
	})
}

// gitAt runs git on the host and gives what it prints.
func gitAt(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// serveTLS is serveHTTP with TLS, for example.com. It gives its port and the file of its
// certificate.
func serveTLS(t *testing.T, handle http.Handler) (port int, trusted string) {
	t.Helper()
	srv := httptest.NewUnstartedServer(handle)
	srv.Listener.Close()
	var err error
	internet.do(func() { srv.Listener, err = net.Listen("tcp", publicAddr+":0") })
	must.OK(t, err)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	trusted = filepath.Join(t.TempDir(), "trusted.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	must.OK(t, os.WriteFile(trusted, text, 0o644))
	return srv.Listener.Addr().(*net.TCPAddr).Port, trusted
}

// git pushes a pack that it sends in pieces and clones it again, with TLS and without; what
// is denied doesn't arrive.
func TestGitPush(t *testing.T) {
	const script = `set -e
git init -q -b main a
cd a
head -c 1500000 /dev/urandom >big
git add big
git -c user.name=t -c user.email=t@example.com commit -q -m one
git push -q "$1/a.git" main
git clone -q "$1/a.git" ../b
cmp big ../b/big
git rev-parse HEAD`
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			repository, handle := gitServer(t)
			var port int
			env := []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=maintenance.auto", "GIT_CONFIG_VALUE_0=false"}
			if scheme == "http" {
				port = serveHTTP(t, handle.ServeHTTP)
			} else {
				var trusted string
				port, trusted = serveTLS(t, handle)
				env = append(env, "GIT_SSL_CAINFO="+trusted)
			}
			z := newZone(t, map[string][]string{"example.com": {publicAddr}, "bad.example": {publicAddr}})
			s := newSandbox(t, Options{resolver: z.resolver(), Judge: only("example.com")})
			s.resolvConf()
			push := func(name string) (string, error) {
				return s.runIn(env, "sh", "-c", script, "sh", fmt.Sprintf("%s://%s:%d", scheme, name, port))
			}
			if out, err := push("bad.example"); err == nil {
				t.Errorf("denied: %s", out)
			}
			if a := s.waitClosed("bad.example"); a.Verdict != verdictDeny || a.Resolved != "" {
				t.Errorf("logged %+v", a)
			}
			if refs := gitAt(t, repository, "for-each-ref"); refs != "" {
				t.Errorf("denied, there is %s", refs)
			}
			out, err := push("example.com")
			if err != nil {
				t.Fatalf("%s, %v", out, err)
			}
			if head := gitAt(t, repository, "rev-parse", "main"); head != out {
				t.Errorf("%s was pushed, there is %s", out, head)
			}
			gitAt(t, repository, "fsck", "--strict")
			// With TLS git may close with a last word of the server's unread, which resets.
			whole := func(a Attempt) bool { return !a.Open && (a.Failure == "" || a.Failure == ProgramReset) }
			s.wait("the pack, out", func(a Attempt) bool { return whole(a) && a.Sent > 1_500_000 })
			s.wait("the pack, in", func(a Attempt) bool { return whole(a) && a.Received > 1_500_000 })
		})
	}
}
