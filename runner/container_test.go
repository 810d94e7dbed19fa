package runner

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"stepbox/runner/box"
)

// coveredEtc says in the environment that something is mounted below /etc.
const coveredEtc = "STEPBOX_TEST_COVERED_ETC"

// TestEtcCovered: in containers files of /etc are mounts, and the kernel makes
// no overlay over such a folder.
func TestEtcCovered(t *testing.T) {
	if os.Getenv(coveredEtc) != "" {
		r := newRig(t)
		run := r.start("/bin/sh", "-c", "cat /etc/resolv.conf /etc/hosts /etc/passwd /etc/shadow; touch /etc/new 2>/dev/null && echo WROTE")
		out, _ := run.wait()
		for _, want := range []string{"nameserver 192.0.0.1\n", "localhost stepbox\n", "root:x:0:0:root:/home/agent:"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in:\n%s", want, out)
			}
		}
		for _, secret := range []string{"root:*", "root:$", "root:!"} {
			if strings.Contains(out, secret) {
				t.Errorf("it reads /etc/shadow:\n%s", out)
			}
		}
		notes := strings.Join(run.Notes(), "\n")
		if !strings.Contains(notes, "in /etc while the session runs could be reached") || os.Getuid() == 0 && !strings.Contains(notes, "in /etc while the session runs could be read") {
			t.Errorf("what isn't covered isn't said: %q", notes)
		}
		if strings.Contains(out, "WROTE") || strings.Contains(out, "outer") {
			t.Errorf("/etc is the host's:\n%s", out)
		}
		return
	}
	if os.Getuid() != 0 {
		t.Skip("mounting takes root")
	}
	self, err := box.Self()
	if err != nil {
		t.Fatal(err)
	}
	hosts := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(hosts, []byte("127.0.0.1 outer\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, uid := range []int{0, unprivilegedUID} {
		home := t.TempDir()
		if err := os.Chown(home, uid, uid); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Dir(home), 0o755); err != nil {
			t.Fatal(err)
		}
		script := `mount --make-rprivate / && mount --bind "$0" /etc/hosts && exec setpriv --reuid "$1" --regid "$1" --clear-groups /proc/self/fd/3 -test.run '^TestEtcCovered$'`
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script, hosts, strconv.Itoa(uid))
		cmd.Env = append(os.Environ(), coveredEtc+"=1", asUnprivileged+"=1", "HOME="+home, "TMPDIR="+os.TempDir())
		cmd.Dir = "/"
		cmd.ExtraFiles = []*os.File{self}
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("as uid %d: %v\n%s", uid, err, out)
		}
	}
}
