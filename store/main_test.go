package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"stepbox/session/e2e/must"
)

// childEnv names what a re-executed test binary does instead of testing.
const childEnv = "STEPBOX_STORE_TEST_CHILD"

// children are the programs that tests run as other processes.
var children = map[string]func(args []string) error{}

func TestMain(m *testing.M) {
	if name := os.Getenv(childEnv); name != "" {
		if err := children[name](strings.Split(os.Getenv(childEnv+"_ARGS"), "\x1f")); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")) // else each process of a build with -race takes a second to end
	goleak.VerifyTestMain(m)
}

// child prepares a process of this binary that runs one of children.
func child(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	if children[name] == nil {
		t.Fatalf("there is no child %q", name)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"="+name, childEnv+"_ARGS="+strings.Join(args, "\x1f"))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// withRights are the tests that root's rights could hide a fault from.
const withRights = "^Test(Dir|Own|NotPrivate|NotAFolder|ReadOnlyDisk|ReadOnlyFolder|TakenAway|FullDisk|DatabaseMissing|Journal|Kill9|Record|Bodies|Sweep|RemoveAndCollect|CollectFailsClosed|ConcurrentProcesses)$"

// TestAsUnprivileged runs those again without root's rights.
func TestAsUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("these tests run unprivileged already")
		return
	}
	dir, err := os.MkdirTemp("", "stepbox-store")
	must.OK(t, err)
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	must.OK(t, os.Chown(dir, 12345, 12345))
	args := []string{"-test.timeout=240s", "-test.run=" + withRights}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", args...)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir, "TMPDIR=" + dir, "PATH=" + os.Getenv("PATH"), "STEPBOX_STORE_TEST_AGAIN=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}, Pdeathsig: syscall.SIGKILL}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("as uid 12345: %v\n%s", err, out)
	}
}

// open opens a new store that is closed with the test.
func open(t testing.TB) *Store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "data"))
}

func openAt(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), dir)
	must.OK(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, ErrCorrupt) {
			t.Error(err)
		}
	})
	return s
}

// session creates a session.
func session(t testing.TB, s *Store, id string) string {
	t.Helper()
	if _, err := s.CreateSession(t.Context(), id, json.RawMessage(`{"id":"`+id+`","name":"n","state":"running"}`)); err != nil {
		t.Fatal(err)
	}
	return id
}

// fact is an action in some state.
func fact(n int64, state string) Fact {
	return Fact{Kind: KindAction, Key: n, Event: "action." + state, Doc: json.RawMessage(fmt.Sprintf(`{"n":%d,"kind":"command","state":%q,"title":"go test ./... # %d"}`, n, state, n))}
}

func appendFacts(t testing.TB, s *Store, id string, facts ...Fact) []Event {
	t.Helper()
	events, err := s.Append(t.Context(), id, facts...)
	must.OK(t, err)
	return events
}

// Verify is Examine in an error.
func (s *Store) Verify(ctx context.Context, session string, more ...References) error {
	found, err := s.Examine(ctx, session, Examination{More: more})
	for _, p := range found.Problems {
		err = errors.Join(err, p)
	}
	return err
}

func verify(t testing.TB, s *Store, id string) {
	t.Helper()
	must.OK(t, s.Verify(context.Background(), id))
}
