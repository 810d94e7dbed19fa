package watch

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

const (
	asUser   = "STEPBOX_TEST_AS_USER"
	ordinary = 12345
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestAsOrdinaryUser runs all other tests as an ordinary user too.
func TestAsOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 || os.Getenv(asUser) != "" {
		return
	}
	home, err := os.MkdirTemp("", "stepbox-watch-")
	must(t, err)
	defer os.RemoveAll(home)
	must(t, os.Chown(home, ordinary, ordinary))
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.v="+fmt.Sprint(testing.Verbose()), "-test.run="+flag.Lookup("test.run").Value.String())
	cmd.Dir, cmd.Env = home, []string{"HOME=" + home, "TMPDIR=" + home, asUser + "=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}, Pdeathsig: syscall.SIGKILL}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("as uid %d: %v\n%s", ordinary, err, out)
	}
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// set gives a variable another value until the test ends.
func set[T any](t *testing.T, v *T, to T) {
	old := *v
	*v = to
	t.Cleanup(func() { *v = old })
}

// patience bounds waits for what should happen at once: on a busy machine it
// takes long, and only a test that fails waits for all of it.
const patience = 2 * time.Minute
