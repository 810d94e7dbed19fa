package gate

import (
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"stepbox/session/e2e/must"
)

const otherUser = 12345

// byUser are the tests of what the kernel allows one user and not another: filters without rights, tracing, reading
// what another process is.
const byUser = "^Test(Attacks|Denied(FromC|FromRuntimes|RunsNothing|Replacement|WhileTraced|Job)|Exits|NoExit|HoldExit|ParentHears|Allow|Deny|Hold|KilledWhileHeld|ListenerGone|NoLeaks|Mark|Overlay|ProgramInMemory|ChangedWhileHeld|DynamicLinker|ExecFromAnotherThread|Programs|Traced|Swapped|Reach|ChangedRoot|UnreadableProgram|TextIsProtectedAsSaid)$"

// TestAsUnprivileged runs those as an ordinary user, who is the one that the gate is made for.
func TestAsUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("is one already")
	}
	home, err := os.MkdirTemp("", "gate")
	must.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(home) })
	// The binary may lie where only root may look.
	binary := filepath.Join(home, "gate.test")
	copyFile(t, binary, "/proc/self/exe")
	for _, p := range []string{home, binary} {
		must.OK(t, os.Chown(p, otherUser, otherUser))
	}
	args := []string{"-test.timeout=" + flag.Lookup("test.timeout").Value.String(), "-test.count=1", "-test.run=" + byUser}
	if testing.Verbose() {
		args = append(args, "-test.v")
	}
	cmd := exec.Command(binary, args...)
	cmd.Dir = home
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + home, "TMPDIR=" + home, "GORACE=" + os.Getenv("GORACE")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: otherUser, Gid: otherUser}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("as an ordinary user: %v\n%s", err, out)
	}
	if testing.Verbose() {
		t.Logf("as an ordinary user:\n%s", out)
	}
}

func copyFile(t *testing.T, to, from string) {
	t.Helper()
	r, err := os.Open(from)
	must.OK(t, err)
	defer r.Close()
	w, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	must.OK(t, err)
	if _, err := io.Copy(w, r); err != nil {
		t.Fatal(err)
	}
	must.OK(t, w.Close())
}
