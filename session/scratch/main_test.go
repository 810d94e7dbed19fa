package scratch

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"stepbox/runner"
	"stepbox/session/e2e/must"
)

// unprivilegedUID is who the tests run as a second time.
const unprivilegedUID = 12345

// asUnprivileged guards TestAsUnprivileged against itself.
const asUnprivileged = "STEPBOX_TEST_UNPRIVILEGED"

func TestMain(m *testing.M) {
	runner.Reexec()                                               // the sandboxes' own processes are this binary too
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")) // else each process of a build with -race takes a second to end
	if err := seal(); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, must.LeftByRunc)
}

// seal has this process run from its sealed copy, as a supervisor does.
func seal() error {
	if exe, err := os.Readlink("/proc/self/exe"); err != nil || strings.HasPrefix(exe, "/memfd:") {
		return err
	}
	cmd, err := runner.Command(os.Args[1:]...)
	if err != nil {
		return err
	}
	return syscall.Exec(cmd.Path, cmd.Args, os.Environ())
}

// byUser are the tests of what isn't the same for all users: what a sandbox is made of, who owns what is put back, and
// what git takes from whom. The others are about a repository's bytes, which are read in the same sandbox.
const byUser = "Checks(HaveNoNetwork|LeaveNothing|HaveBuildCaches|SucceedAndFail)|StateIsExact|CommitsComeAsCommits|WhereTheGitFolderIsOutside|" +
	"ModesAndSubmodulesThatArePutBack|Configured|Killed|WhatIsWrittenOverWithoutAHistory"

// TestAsUnprivileged runs those again as an ordinary user.
func TestAsUnprivileged(t *testing.T) {
	if os.Getuid() != 0 || os.Getenv(asUnprivileged) != "" {
		t.Skip("this is the ordinary user")
	}
	args := []string{"-test.count=1", "-test.run=^Test(" + byUser + ")$"}
	for _, name := range []string{"test.v", "test.short", "test.timeout"} {
		args = append(args, "-"+name+"="+flag.Lookup(name).Value.String())
	}
	base, err := os.MkdirTemp("", "stepbox-user-")
	must.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(base) })
	env := []string{asUnprivileged + "=1", "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "GORACE=" + os.Getenv("GORACE")}
	for name, dir := range map[string]string{"HOME": "home", "TMPDIR": "tmp", "XDG_RUNTIME_DIR": "run"} {
		path := filepath.Join(base, dir)
		must.OK(t, os.Mkdir(path, 0o700))
		must.OK(t, os.Chown(path, unprivilegedUID, unprivilegedUID))
		env = append(env, name+"="+path)
	}
	must.OK(t, os.Chmod(base, 0o755))
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", args...)
	cmd.Env, cmd.Dir = env, filepath.Join(base, "tmp")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivilegedUID, Gid: unprivilegedUID}}
	out, err := cmd.CombinedOutput()
	t.Logf("as uid %d:\n%s", unprivilegedUID, out)
	if err != nil {
		t.Fatalf("the tests fail as uid %d: %v", unprivilegedUID, err)
	}
}
