package restore

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

const (
	helperEnv       = "STEPBOX_OVERLAY_TEST_HELPER"
	unprivilegedEnv = "STEPBOX_OVERLAY_TEST_UNPRIVILEGED"
	otherUID        = 12345
)

func TestMain(m *testing.M) {
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")) // else each process of a build with -race takes a second to end
	if os.Getenv(helperEnv) != "" {
		helperMain()
		os.Exit(0)
	}
	// Histories of files on a real overlay, twice for two users: the command line may ask for more of them.
	if err := flag.Set("rapid.checks", "40"); err != nil {
		panic(err)
	}
	flag.Parse()
	if err := userNamespaces(); err != nil {
		fmt.Fprintf(os.Stderr, "these tests need user namespaces with overlay mounts, and can't make one here: %v\n"+
			"On Ubuntu: sysctl kernel.apparmor_restrict_unprivileged_userns=0. On Debian: sysctl kernel.unprivileged_userns_clone=1. Everywhere: user.max_user_namespaces must not be 0.\n", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// userNamespaces says why tests couldn't run here.
func userNamespaces() error {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{helperEnv + "=probe", "GORACE=" + os.Getenv("GORACE")}
	cmd.SysProcAttr = namespaces()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w %s", err, out)
	}
	return nil
}

func namespaces() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:                 syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings:                []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings:                []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
		GidMappingsEnableSetgroups: false,
		Pdeathsig:                  syscall.SIGKILL,
	}
}

// TestAsUnprivileged runs all other tests as an ordinary user too, with a quarter of the histories, but for those of what
// is the same for every user: where a write stops, and what comes in between.
func TestAsUnprivileged(t *testing.T) {
	if os.Getenv(unprivilegedEnv) != "" {
		return
	}
	if os.Geteuid() != 0 {
		t.Log("already an ordinary user")
		return
	}
	home, err := os.MkdirTemp("", "stepbox-overlay-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	for _, dir := range []string{"tmp", "run", "data"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(filepath.Join(home, dir), otherUID, otherUID); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(home, otherUID, otherUID); err != nil {
		t.Fatal(err)
	}
	args := []string{"-test.v=" + fmt.Sprint(testing.Verbose()), "-test.timeout=8m", "-test.skip=^Test(CrashWhile.*|AttackSwap.*|ManyLinks)$"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	if r := flag.Lookup("test.run").Value.String(); r != "" {
		args = append(args, "-test.run="+r)
	}
	checks, err := strconv.Atoi(flag.Lookup("rapid.checks").Value.String())
	if err != nil {
		t.Fatal(err)
	}
	args = append(args, fmt.Sprint("-rapid.checks=", max(1, checks/4)), "-rapid.nofailfile")
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", args...)
	cmd.Dir = home
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home + "/tmp",
		"XDG_RUNTIME_DIR=" + home + "/run", "XDG_DATA_HOME=" + home + "/data", unprivilegedEnv + "=1", "GORACE=" + os.Getenv("GORACE"),
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: otherUID, Gid: otherUID}, Pdeathsig: syscall.SIGKILL,
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("as uid %d: %v\n%s", otherUID, err, out)
	}
	if testing.Verbose() {
		t.Logf("as uid %d:\n%s", otherUID, out)
	}
}

// patience bounds waits for what should happen at once: on a busy machine it
// takes long, and only a test that fails waits for all of it.
const patience = 2 * time.Minute

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
