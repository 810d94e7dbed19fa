package runner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stepbox/runner/box"
	"stepbox/runner/socket"
	"stepbox/session/e2e/must"
)

// echo answers with what it was told and by whom.
func echo(_ context.Context, c *socket.Conn) {
	message, err := c.ReadMessage(1 << 20)
	if err != nil {
		return
	}
	fmt.Fprintf(c, "%d heard %s\n", c.PID, message)
}

func echoing() socket.Service {
	return socket.Service{Limits: socket.Limits{Conns: 4, PerSecond: 100, Lasts: 10 * time.Second}, Serve: echo}
}

// speak is a script that says something at a socket and prints the answer and who is
// at the other end.
const speak = `
import socket, struct, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
pid, uid, gid = struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
s.sendall(sys.argv[2].encode())
s.shutdown(socket.SHUT_WR)
print("from", pid, s.makefile().read())
`

// speaker puts the script into the project.
func (r *rig) speaker() string {
	r.t.Helper()
	path := filepath.Join(r.project, "speak.py")
	must.OK(r.t, os.WriteFile(path, []byte(speak), 0o644))
	return "python3 " + path
}

// TestSocketsServed: programs speak to whoever made the sandbox, who knows which of its
// processes that is; they know that it is process 1 that listens.
func TestSocketsServed(t *testing.T) {
	r := newRig(t)
	speaker := r.speaker()
	var peer atomic.Int64
	r.handler.Sockets = map[string]socket.Service{"tell": echoing(), "other": {
		Limits: echoing().Limits,
		Serve: func(_ context.Context, c *socket.Conn) {
			_, _ = c.ReadMessage(100)
			peer.Store(int64(c.PID))
			status, err := box.ReadStatus(c.PID)
			fmt.Fprintf(c, "it is %s %v\n", status.Name, err)
		},
	}}
	out, _ := r.sh(speaker + " " + SocketPath("tell") + " hello; " + speaker + " " + SocketPath("other") + " hello; ls -1 /run/stepbox; stat -c %a /run/stepbox")
	for _, want := range []string{"from 1 ", "heard hello\n", "it is python3", "<nil>", "other\ntell\n755\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if peer.Load() <= 1 {
		t.Errorf("the peer was process %d", peer.Load())
	}
}

// TestSocketReplaced: whoever puts a socket of their own in the place of one isn't
// process 1, and what is said there reaches nobody else.
func TestSocketReplaced(t *testing.T) {
	r := newRig(t)
	speaker := r.speaker()
	r.handler.Sockets = map[string]socket.Service{"tell": echoing()}
	out, _ := r.sh(`cd /run/stepbox && rm tell && python3 -c '
import socket, os
l = socket.socket(socket.AF_UNIX)
l.bind("tell")
l.listen()
if os.fork() == 0:
	c = l.accept()[0]
	c.recv(100)
	c.sendall(b"forged")
	os._exit(0)
' && ` + speaker + ` /run/stepbox/tell hello; mv /run/stepbox /run/gone; echo moved $?`)
	if !strings.Contains(out, "forged") || strings.Contains(out, "from 1 ") || strings.Contains(out, "heard") {
		t.Errorf("the forged socket isn't told from ours:\n%s", out)
	}
}

// TestSocketFloods: who connects more often than allowed, never speaks, or says too
// much, keeps nobody else from being heard for long.
func TestSocketFloods(t *testing.T) {
	r := newRig(t)
	speaker := r.speaker()
	var mu sync.Mutex
	var most, now, heard int // guarded by mu
	service := socket.Service{Limits: socket.Limits{Conns: 3, PerSecond: 50, Lasts: time.Second}}
	service.Serve = func(ctx context.Context, c *socket.Conn) {
		mu.Lock()
		now++
		most, heard = max(most, now), heard+1
		mu.Unlock()
		echo(ctx, c)
		mu.Lock()
		now--
		mu.Unlock()
	}
	r.handler.Sockets = map[string]socket.Service{"tell": service}
	out, _ := r.sh(`python3 -c '
import socket
silent = []
for i in range(40):
	s = socket.socket(socket.AF_UNIX)
	s.connect("/run/stepbox/tell")
	silent.append(s)
for s in silent[:3]:
	s.recv(1)
big = socket.socket(socket.AF_UNIX)
big.connect("/run/stepbox/tell")
try:
	for i in range(1 << 10): big.sendall(b"x" * (1 << 12))
except OSError as e:
	print("refused")
big.close()
'
for i in 1 2 3 4 5 6 7 8 9; do ` + speaker + ` /run/stepbox/tell hello 2>&1 | grep heard && break; done`)
	if !strings.Contains(out, "refused") || !strings.Contains(out, "heard hello") {
		t.Errorf("not refused, or not heard after it:\n%s", out)
	}
	mu.Lock()
	defer mu.Unlock()
	if most > 3 || heard > 40 {
		t.Errorf("%d connections at once, %d in all", most, heard)
	}
}

// TestSocketWhileFrozen: what a frozen program had said is heard, and its answer
// waits for it, whatever freezes it.
func TestSocketWhileFrozen(t *testing.T) {
	for _, how := range []string{"as detected", "stop signals"} {
		t.Run(how, func(t *testing.T) {
			r := newRig(t)
			speaker := r.speaker()
			asked, answer := make(chan struct{}), make(chan struct{})
			service := echoing()
			service.Serve = func(ctx context.Context, c *socket.Conn) {
				message, _ := c.ReadMessage(100)
				close(asked)
				<-answer
				fmt.Fprintf(c, "heard %s", message)
			}
			r.handler.Sockets = map[string]socket.Service{"tell": service}
			run := r.start("/bin/sh", "-c", speaker+" /run/stepbox/tell hello")
			if how == "stop signals" {
				run.withoutFreezer()
			}
			<-asked
			run.freezeNow()
			close(answer)
			must.OK(t, run.Thaw())
			if out, _ := run.wait(); !strings.Contains(out, "heard hello") {
				t.Errorf("no answer:\n%s", out)
			}
		})
	}
}

// TestNoSockets: where /run can't be written there are none, which is said, and the
// agent starts; names that aren't any are refused.
func TestNoSockets(t *testing.T) {
	r := newRig(t)
	run := filepath.Join(r.base, "norun")
	must.OK(t, os.Mkdir(run, 0o755))
	r.spec.Binds = append(r.spec.Binds, Bind{Source: run, Target: "/run"})
	r.handler.Sockets = map[string]socket.Service{"tell": echoing()}
	s := r.start("/bin/ls", "-a", "/run")
	if out, _ := s.wait(); strings.Contains(out, "stepbox") {
		t.Errorf("/run isn't what was asked for:\n%s", out)
	}
	if !slices.Contains(s.Notes(), noSockets) {
		t.Errorf("not said: %q", s.Notes())
	}
	for _, name := range []string{"", "../x", "a/b", "A"} {
		r.spec.ID += "x"
		r.handler.Sockets = map[string]socket.Service{name: echoing()}
		if _, err := Start(t.Context(), r.spec, r.handler); err == nil {
			t.Errorf("a socket called %q is made", name)
		}
	}
}

// TestSocketsEnd: closing a sandbox ends what is being said.
func TestSocketsEnd(t *testing.T) {
	r := newRig(t)
	began, ended := make(chan struct{}), make(chan struct{})
	service := echoing()
	service.Serve = func(ctx context.Context, c *socket.Conn) {
		close(began)
		_, _ = c.ReadMessage(100)
		close(ended)
	}
	r.handler.Sockets = map[string]socket.Service{"tell": service}
	run := r.start("python3", "-c", `import socket
s = socket.socket(socket.AF_UNIX)
s.connect("/run/stepbox/tell")
s.recv(1)`)
	<-began
	must.OK(t, run.Close(t.Context()))
	<-ended
}
