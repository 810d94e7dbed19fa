package runner

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"stepbox/runner/box"
	"stepbox/session/e2e/must"
)

// inside says in the environment that this is the container.
const inside = "STEPBOX_TEST_CONTAINER"

// TestContainer: in containers files of /etc are mounts, and the kernel makes no overlay
// over such a folder; their root is an overlay itself, so that of a program's file little
// is as elsewhere.
func TestContainer(t *testing.T) {
	if os.Getenv(inside) != "" {
		for _, f := range Preflight(t.Context(), t.TempDir()) {
			if f.Fatal && !f.OK {
				t.Errorf("%s: %s", f.Name, f.Detail)
			}
		}
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
	must.OK(t, err)
	hosts := filepath.Join(t.TempDir(), "hosts")
	must.OK(t, os.WriteFile(hosts, []byte("127.0.0.1 outer\n"), 0o644))
	for name, root := range map[string]string{"plain": "true", "overlay": overlayRoot} {
		for _, uid := range []int{0, unprivilegedUID} {
			home, mnt := t.TempDir(), t.TempDir()
			must.OK(t, os.Chown(home, uid, uid))
			must.OK(t, os.Chmod(filepath.Dir(home), 0o755))
			script := `mount --make-rprivate / && ` + root + ` && mount --bind "$0" /etc/hosts && exec setpriv --reuid "$1" --regid "$1" --clear-groups /proc/self/fd/3 -test.run '^TestContainer$'`
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script, hosts, strconv.Itoa(uid), mnt, os.TempDir())
			cmd.Env = append(os.Environ(), inside+"=1", asUnprivileged+"=1", "HOME="+home, "TMPDIR="+os.TempDir())
			cmd.Dir = "/"
			cmd.ExtraFiles = []*os.File{self}
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("root %s, as uid %d: %v\n%s", name, uid, err, out)
			}
		}
	}
}

// overlayRoot makes an overlay the root, as engines of containers do, in the folder $2.
// The folder $3 for temporary files stays as it is: a session's can't be on an overlay.
const overlayRoot = `mount -t tmpfs container "$2" && mkdir "$2/upper" "$2/work" "$2/root" &&
mount -t overlay container -o "lowerdir=/,upperdir=$2/upper,workdir=$2/work" "$2/root" &&
for d in /dev /proc /sys /run "$3"; do mount --rbind "$d" "$2/root$d" || exit; done &&
cd "$2/root" && pivot_root . . && umount -l . && cd /`

// TestConfined: what an engine of containers refuses is named, with what lifts it, in
// the words of the engine.
func TestConfined(t *testing.T) {
	switch os.Getenv(inside) {
	case "filtered": // the filter goes on to the program
		refuseNamespaces(t)
		os.Setenv(inside, "confined")
		t.Fatal(syscall.Exec("/proc/self/fd/3", []string{"test", "-test.run=^TestConfined$"}, os.Environ()))
	case "confined":
		spec := newRig(t).spec
		spec.Argv = []string{"/bin/true"}
		_, err := Start(t.Context(), spec, Handlers{Gate: allowAll()})
		fmt.Println("start:", err)
		for _, f := range Preflight(t.Context(), t.TempDir()) {
			if !f.OK {
				fmt.Printf("%s: %s\nfix: %s\n", f.Name, f.Detail, f.Fix)
			}
		}
		return
	}
	self, err := box.Self()
	must.OK(t, err)
	cases := []struct {
		name, script, inside string
		env                  []string
		want                 []string
	}{
		{"seccomp", "true", "filtered", nil, []string{"its seccomp profile refuses", "fix: start the container with --security-opt seccomp=unconfined, and a volume"}},
		{"seccomp of a pod", "true", "filtered", []string{"KUBERNETES_SERVICE_HOST=192.0.2.1"}, []string{"a pod of Kubernetes", "its seccomp profile refuses", "seccompProfile.type: Unconfined; and a volume"}},
	}
	if !inContainer() {
		cases[0].want = []string{"fix: a seccomp filter that this runs under refuses them"}
	}
	if os.Getuid() == 0 {
		cases = append(cases, cases[1])
		c := &cases[len(cases)-1]
		c.name, c.script, c.inside = "masked /proc of a pod", "mount --make-rprivate / && findmnt -rno TARGET -t proc | grep -vx /proc | xargs -r umount -l; mount -t tmpfs masked /proc/fs", "confined"
		c.want = []string{"fix: start the pod with securityContext.procMount", "its /proc is covered in part", "/proc/fs", "hostUsers: false"}
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			user, _ := exec.LookPath("setpriv")
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", c.script+` && exec "$@"`, "sh", user, "--clear-groups", "--reuid", strconv.Itoa(unprivilegedUID), "--regid", strconv.Itoa(unprivilegedUID), "/proc/self/fd/3", "-test.run=^TestConfined$")
			if os.Getuid() == 0 {
				cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
			} else {
				cmd.Args = slices.Delete(cmd.Args, 4, 10)
			}
			cmd.Env = append(append(os.Environ(), inside+"="+c.inside, "TMPDIR=/tmp"), c.env...)
			cmd.ExtraFiles = []*os.File{self}
			out, err := cmd.CombinedOutput()
			for _, want := range c.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("no %q (%v) in:\n%s", want, err, out)
				}
			}
		})
	}
}

// refuseNamespaces has the kernel refuse this thread's programs what engines of
// containers refuse by default: user namespaces of their own.
func refuseNamespaces(t *testing.T) {
	runtime.LockOSThread()
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	end := func(with uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: with}
	}
	is := func(number uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number, Jf: skip}
	}
	const number, first = 0, 16 // offsets in struct seccomp_data
	filter := []unix.SockFilter{
		load(number),
		is(unix.SYS_CLONE3, 1), end(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)),
		is(unix.SYS_UNSHARE, 1), end(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)),
		is(unix.SYS_CLONE, 3), load(first),
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: unix.CLONE_NEWUSER, Jf: 1}, end(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)),
		end(unix.SECCOMP_RET_ALLOW),
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	must.OK(t, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
		t.Fatal(errno)
	}
}

// TestWithoutCgroups: where none are mounted a sandbox starts, bounded by rlimits, and
// says so.
func TestWithoutCgroups(t *testing.T) {
	if os.Getenv(inside) != "" {
		r := newRig(t)
		r.spec.Limits.Pids = 64
		run := r.start("/bin/sh", "-c", "echo ran")
		out, _ := run.wait()
		if _, source := run.Limits(); out != "ran\n" || source != box.SourceNone || !slices.Contains(run.Notes(), noCgroups) {
			t.Errorf("it said %q; limits by %s, notes %q", out, source, run.Notes())
		}
		return
	}
	if os.Getuid() != 0 {
		t.Skip("unmounting takes root")
	}
	self, err := box.Self()
	must.OK(t, err)
	for _, uid := range []string{"0", strconv.Itoa(unprivilegedUID)} {
		const script = `mount --make-rprivate / && umount -R /sys/fs/cgroup && exec setpriv --reuid "$0" --regid "$0" --clear-groups /proc/self/fd/3 -test.run '^TestWithoutCgroups$'`
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script, uid)
		cmd.Env = append(os.Environ(), inside+"=1", asUnprivileged+"=1", "TMPDIR=/tmp")
		cmd.ExtraFiles = []*os.File{self}
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("as uid %s: %v\n%s", uid, err, out)
		}
	}
}
