package e2e

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"stepbox/session/e2e/must"
	"stepbox/session/e2e/pairstest"
)

// BenchmarkWhole measures whole commands as a person feels them, from their
// start to their exit, beside other tools that show the same folders, as this
// user and as an ordinary one:
//
//	go test -run '^$' -bench Whole ./session/e2e
func BenchmarkWhole(b *testing.B) {
	b.Run(fmt.Sprintf("uid=%d", os.Getuid()), func(b *testing.B) {
		ways := []pairstest.Way{{Name: "stepbox", Run: whole(b, ours(b))}}
		if command, ok := pairstest.Bwrap(b, "true"); ok {
			ways = append(ways, pairstest.Way{Name: "bwrap", Run: whole(b, command)})
		}
		if command, ok := pairstest.Runc(b, "true"); ok {
			ways = append(ways, pairstest.Way{Name: "runc", Run: whole(b, command)})
		}
		pairstest.Compare(b, ways...)
	})
	if os.Getuid() != 0 {
		return
	}
	cmd, err := again(b, "-test.run=^$", "-test.bench=^BenchmarkWhole$", "-test.benchtime="+flag.Lookup("test.benchtime").Value.String())
	must.OK(b, err)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		b.Fatalf("as uid %d: %v", ordinary, err)
	}
}

// ours is the program's run command, over an empty project and with a record of
// its own; the home is the person's real one, whose tools are shown.
func ours(b *testing.B) func() *exec.Cmd {
	dir, err := os.MkdirTemp("", "b") // short, and not below the home folder
	must.OK(b, err)
	b.Cleanup(func() { os.RemoveAll(dir) })
	for _, name := range []string{"project", "run"} {
		must.OK(b, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	return func() *exec.Cmd {
		cmd := exec.CommandContext(b.Context(), program, "run", "--mode", "watch", "--", "true")
		cmd.Dir = filepath.Join(dir, "project")
		cmd.Env = append(os.Environ(), "STEPBOX_DATA="+filepath.Join(dir, "data"), "XDG_RUNTIME_DIR="+filepath.Join(dir, "run"))
		return cmd
	}
}

// whole runs a command to its end.
func whole(b *testing.B, command func() *exec.Cmd) func() time.Duration {
	return func() time.Duration {
		cmd := command()
		began := time.Now()
		out, err := cmd.CombinedOutput()
		took := time.Since(began)
		if err != nil || len(out) > 0 {
			b.Fatalf("%s: %v\n%s", cmd.Path, err, out)
		}
		return took
	}
}

// again is this binary with other arguments for an ordinary user, whose home it
// is in.
func again(tb testing.TB, args ...string) (*exec.Cmd, error) {
	dir, err := os.MkdirTemp("", "u")
	if err != nil {
		return nil, err
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	exe := filepath.Join(dir, "e2e.test") // the one of go test is where only root can go
	syscall.ForkLock.RLock()              // a child made meanwhile would have it open for writing: ETXTBSY
	err = errors.Join(os.WriteFile(exe, self, 0o755), os.Chown(dir, ordinary, ordinary))
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(tb.Context(), exe, args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "GORACE=" + os.Getenv("GORACE"),
		ready + "=" + program, asUser + "=1",
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}}
	return cmd, nil
}
