package runner

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"stepbox/session/e2e/must"
)

// unprivilegedUID is who the tests run as a second time.
const unprivilegedUID = 12345

// asUnprivileged guards TestAsUnprivileged against itself.
const asUnprivileged = "STEPBOX_TEST_UNPRIVILEGED"

func TestMain(m *testing.M) {
	Reexec()
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")) // else each process of a build with -race takes a second to end
	if err := seal(); err != nil {
		panic(err)
	}
	if len(os.Args) > 1 && os.Args[1] == "test-supervisor" {
		testSupervisor()
	}
	goleak.VerifyTestMain(m)
}

// seal has this process run from its sealed copy, as a supervisor does.
func seal() error {
	if exe, err := os.Readlink("/proc/self/exe"); err != nil || strings.HasPrefix(exe, "/memfd:") {
		return err
	}
	cmd, err := Command(os.Args[1:]...)
	if err != nil {
		return err
	}
	return syscall.Exec(cmd.Path, cmd.Args, os.Environ())
}

// alike are the tests whose subject is the same for every user: the terminal, signals, words.
const alike = "Terminal|Resize|ExitBySignal|JobControl|SignalsAreDefault|LastOutput|Self|SelfsNumber|MemoryFiles|AtLeast|HelpersRefuse|OddNames|StartErrors|NotAProgram|SocketFloods|SocketReplaced|SocketsEnd|NoSockets|CheckWorkspace|Activity|HolderStopped|SweepSparesNewcomers"

// TestAsUnprivileged runs the others as an ordinary user.
func TestAsUnprivileged(t *testing.T) {
	runAs(t, unprivilegedUID, flag.Lookup("test.run").Value.String())
}

// runAs runs tests of this binary again as an ordinary user.
func runAs(t *testing.T, uid int, pattern string, more ...string) {
	if os.Getuid() != 0 || os.Getenv(asUnprivileged) != "" {
		t.Skip("this is the ordinary user")
	}
	args := []string{"-test.count=1", "-test.skip=^Test(AsUnprivileged|DelegatedV1|" + alike + ")$", "-test.run=" + pattern}
	for _, name := range []string{"test.v", "test.short", "test.timeout"} {
		args = append(args, "-"+name+"="+flag.Lookup(name).Value.String())
	}
	out, err := again(t, uid, args, more...).CombinedOutput()
	t.Logf("as uid %d:\n%s", uid, out)
	if err != nil {
		t.Fatalf("the tests fail as uid %d: %v", uid, err)
	}
}

// benchAsUnprivileged runs a benchmark again as an ordinary user.
func benchAsUnprivileged(b *testing.B, pattern string) {
	if os.Getuid() != 0 {
		return // that was it already
	}
	cmd := again(b, unprivilegedUID, []string{"-test.run=^$", "-test.bench=" + pattern, "-test.benchtime=" + flag.Lookup("test.benchtime").Value.String()})
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		b.Fatalf("the benchmark fails as uid %d: %v", unprivilegedUID, err)
	}
}

// again is this binary with other arguments, for an ordinary user with folders
// of their own.
func again(t testing.TB, uid int, args []string, more ...string) *exec.Cmd {
	base, err := os.MkdirTemp("", "stepbox-user-")
	must.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(base) })
	env := append([]string{asUnprivileged + "=1", "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "GORACE=" + os.Getenv("GORACE")}, more...)
	for name, dir := range map[string]string{"HOME": "home", "TMPDIR": "tmp", "XDG_RUNTIME_DIR": "run", "XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "config"} {
		path := filepath.Join(base, dir)
		must.OK(t, os.Mkdir(path, 0o700))
		must.OK(t, os.Chown(path, uid, uid))
		env = append(env, name+"="+path)
	}
	must.OK(t, os.Chmod(base, 0o755))
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", args...)
	cmd.Env = env
	cmd.Dir = filepath.Join(base, "tmp")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	return cmd
}
