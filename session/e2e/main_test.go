package e2e

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"stepbox/session/e2e/must"
)

const (
	// ready names a program that was built already; without it the tests build theirs.
	ready = "STEPBOX_TEST_PROGRAM"
	// asUser says that these tests were re-run by themselves as an ordinary user.
	asUser = "STEPBOX_TEST_AS_USER"
	// ordinary is a uid that needs no account.
	ordinary = 12345
)

// program is the file that is tested.
var program = os.Getenv(ready)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if program == "" {
		dir, err := os.MkdirTemp("", "program")
		if err == nil {
			defer os.RemoveAll(dir)
			program, err = build(dir)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "cannot build the program: %v\n", err)
			return 1
		}
	}
	// A job in a script's background ignores it, and so would all that it starts.
	if signal.Ignored(syscall.SIGINT) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGINT)
	}
	// Most of the time is spent waiting; the command line may say otherwise.
	if err := flag.Set("test.parallel", "4"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := goleak.Find(must.LeftByRunc); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// build makes the program of the module that this package is in.
func build(dir string) (string, error) {
	file := filepath.Join(dir, "stepbox")
	out, err := exec.Command("go", "build", "-o", file, "stepbox").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	if len(out) > 0 {
		return "", fmt.Errorf("a plain build isn't quiet:\n%s", out)
	}
	return file, os.Chmod(dir, 0o755) // for the ordinary user
}

// listed has a change of any file of the program run the tests: go test keeps results of
// what it can't see change, and sees what is looked at while tests run, not before.
var listed = sync.OnceValue(func() error {
	if os.Getenv(ready) != "" {
		return nil // it wasn't built here
	}
	return filepath.WalkDir("../..", func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && e.Name() == ".git" {
			return fs.SkipDir
		}
		return err
	})
})

// TestAsOrdinaryUser runs the main ways through the program as a user with no
// rights at all.
func TestAsOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the tests run as an ordinary user already")
	}
	t.Parallel()
	cmd, err := again(t, "-test.run", "^(TestDemo|TestDetachAndAttach|TestKilledInterface|TestApplyLive|TestApplyKilled|TestCredential|TestNoCredential)$/^120x35$", "-test.v="+fmt.Sprint(testing.Verbose()))
	must.OK(t, err)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "PASS") {
		t.Fatalf("as uid %d: %v\n%s", ordinary, err, out)
	}
}
