package runner

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"stepbox/runner/holder"
	"stepbox/session/e2e/must"
)

// patience bounds waits for what should happen at once: on a busy machine it
// takes long, and only a test that fails waits for all of it.
const patience = 2 * time.Minute

// rig is a project, a session's folders and an ID, for one sandbox.
type rig struct {
	t       testing.TB
	base    string
	project string
	spec    Spec
	handler Handlers
}

// newRig makes the folders. They aren't below the home folder, which no project
// may hold.
func newRig(t testing.TB) *rig {
	t.Helper()
	must.Sampled(t)
	base, err := os.MkdirTemp("", "stepbox-test-")
	must.OK(t, err)
	if base, err = filepath.EvalSymlinks(base); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeAll(t, base) })
	r := &rig{t: t, base: base, project: filepath.Join(base, "project")}
	for _, dir := range []string{"project", "home"} {
		must.OK(t, os.Mkdir(filepath.Join(base, dir), 0o755))
	}
	id := "test-" + strconv.Itoa(os.Getpid()) + "-" + strings.TrimPrefix(filepath.Base(base), "stepbox-test-")
	r.spec = Spec{
		ID: id, StateDir: filepath.Join(base, "state"), RunDir: filepath.Join(base, "run"),
		Workspace: r.project, Home: filepath.Join(base, "home"), HomeTarget: "/home/agent",
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/home/agent", "TERM=xterm", "LC_ALL=C"},
	}
	r.handler.Gate = allowAll()
	return r
}

// removeAll also removes what agents made unreadable.
func removeAll(t testing.TB, dir string) {
	if err := holder.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}

// running is a sandbox with its output.
type running struct {
	*Sandbox
	t      testing.TB
	mu     sync.Mutex
	output strings.Builder // guarded by mu
	done   chan struct{}
}

// start runs argv; the sandbox is closed at the test's end.
func (r *rig) start(argv ...string) *running {
	r.t.Helper()
	r.spec.Argv = argv
	s, err := Start(r.t.Context(), r.spec, r.handler)
	if err != nil {
		r.t.Fatalf("cannot start: %v", err)
	}
	run := &running{Sandbox: s, t: r.t, done: make(chan struct{})}
	go func() {
		defer close(run.done)
		buffer := make([]byte, 32<<10)
		for {
			n, err := s.Terminal().Read(buffer)
			run.mu.Lock()
			run.output.Write(buffer[:n])
			run.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	r.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := run.Close(ctx); err != nil {
			r.t.Errorf("cannot close: %v", err)
		}
		<-run.done
	})
	return run
}

func (r *running) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.output.String()
}

// wait waits for the agent's end and gives all its output.
func (r *running) wait() (string, Exit) {
	r.t.Helper()
	select {
	case <-r.Exited():
	case <-time.After(patience):
		r.t.Fatalf("the agent doesn't end; output so far:\n%s", r.text())
	}
	<-r.done
	exit, err := r.Wait()
	if err != nil {
		r.t.Fatalf("the agent can't run: %v", err)
	}
	return strings.ReplaceAll(r.text(), "\r\n", "\n"), exit
}

// expect waits until the output holds a text.
func (r *running) expect(text string) {
	r.t.Helper()
	eventually(r.t, func() bool { return strings.Contains(r.text(), text) }, func() string {
		return "no " + text + " in:\n" + r.text()
	})
}

func (r *running) typeIn(text string) {
	r.t.Helper()
	if _, err := r.Terminal().Write([]byte(text)); err != nil {
		r.t.Fatal(err)
	}
}

// eventually polls what only the kernel can tell.
func eventually(t testing.TB, true func() bool, otherwise func() string) {
	t.Helper()
	for end := time.Now().Add(patience); !true(); {
		if time.Now().After(end) {
			t.Fatal(otherwise())
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// sh runs a script as the agent and gives its output.
func (r *rig) sh(script string) (string, Exit) {
	r.t.Helper()
	return r.start("/bin/sh", "-c", script).wait()
}

// This program's own timers may be late, see box/calm.c; the agent's are as the kernel has them.
func TestTimersOfAgent(t *testing.T) {
	if out, _ := newRig(t).sh("cat /proc/self/timerslack_ns"); out != "50000\n" {
		t.Errorf("the agent's timers may be late by %s", out)
	}
}
