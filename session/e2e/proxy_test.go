package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
)

// TestUpstreamProxy: who is behind a proxy has a network all the same, by the
// proxy that their own environment names; the agent doesn't learn of it.
func TestUpstreamProxy(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	asked := make(chan string, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		r := bufio.NewReader(c)
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		asked <- req.Method + " " + req.Host
		io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		line, err := r.ReadString('\n')
		if err == nil {
			fmt.Fprintf(c, "far side: %s", line)
		}
	}()
	defer func() { l.Close(); <-ended }()

	cmd := p.command(t.Context(), "run", "--mode", "watch", "--allow-host", "api.example.com:443", "--", "bash", "-c",
		`exec 3<>/dev/tcp/api.example.com/443 && echo hello >&3 && cat <&3; env | grep -i proxy`)
	cmd.Env = append(cmd.Env, "HTTPS_PROXY=http://me:secret@"+l.Addr().String())
	out, _ := cmd.CombinedOutput() // grep finds nothing
	if got := string(out); !strings.Contains(got, "far side: hello") || strings.Contains(got, "secret") {
		t.Errorf("it said %q", got)
	}
	select {
	case got := <-asked:
		if got != "CONNECT api.example.com:443" {
			t.Errorf("the proxy was asked %q", got)
		}
	default:
		t.Error("the proxy wasn't asked")
	}

	cmd = p.command(t.Context(), "run", "--", "true")
	cmd.Env = append(cmd.Env, "HTTPS_PROXY=ftp://proxy.example")
	out, err = cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 125 || !strings.Contains(string(out), `scheme "ftp"`) {
		t.Errorf("with a proxy that can't be used: %v, %q", err, out)
	}
}
