package gate

import (
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

func init() { roles["attack"] = playAttack }

// playAttack tries one thing that a sandbox must not do and prints what came
// of it.
func playAttack(args []string) {
	runtime.LockOSThread()
	raw := func(number uintptr, a ...uintptr) error {
		var v [6]uintptr
		copy(v[:], a)
		_, _, e := unix.Syscall6(number, v[0], v[1], v[2], v[3], v[4], v[5])
		if e == 0 {
			return nil
		}
		return e
	}
	run := func(flags uintptr) error {
		c := exec.Command("/bin/true")
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		c.Env = clean()
		return c.Run()
	}
	zeroes := func() uintptr { return uintptr(unsafe.Pointer(&make([]byte, 256)[0])) }
	const high = 0x7fffffff << 32
	switch args[0] {
	case "userns by clone":
		say("is", run(unix.CLONE_NEWUSER))
	case "userns by unshare":
		say("is", raw(unix.SYS_UNSHARE, unix.CLONE_NEWUSER))
	case "userns by clone3":
		// A size of 64 bytes, flags first, in memory that no filter reads.
		a := [8]uint64{unix.CLONE_NEWUSER, 0, 0, 0, uint64(unix.SIGCHLD)}
		pid, _, e := unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&a)), unsafe.Sizeof(a), 0)
		if pid == 0 && e == 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		if e != 0 {
			say("is", e)
		} else {
			say("is", nil)
		}
	case "setns":
		fd, err := unix.Open("/proc/self/ns/user", unix.O_RDONLY, 0)
		if err != nil {
			say("open", err)
		}
		say("is", raw(unix.SYS_SETNS, uintptr(fd), 0))
	case "keyring":
		say("is", raw(unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, uintptr(^uint(2)+0), 1))
	case "add_key":
		kind, name := cString("user"), cString("k")
		say("is", raw(unix.SYS_ADD_KEY, uintptr(unsafe.Pointer(&kind[0])), uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(&name[0])), 1, ^uintptr(2)))
	case "io_uring":
		say("is", raw(unix.SYS_IO_URING_SETUP, 4, zeroes()))
	case "vsock":
		say("is", raw(unix.SYS_SOCKET, unix.AF_VSOCK, unix.SOCK_STREAM, 0))
	case "alg":
		say("is", raw(unix.SYS_SOCKET, unix.AF_ALG, unix.SOCK_SEQPACKET, 0))
	case "netlink":
		say("is", raw(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER))
	case "packet":
		say("is", raw(unix.SYS_SOCKET, unix.AF_PACKET, unix.SOCK_RAW, 0))
	case "listener", "plain filter":
		flags := uintptr(0)
		if args[0] == "listener" {
			flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
		}
		unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		p := []unix.SockFilter{give(pass)}
		say("is", raw(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&unix.SockFprog{Len: 1, Filter: &p[0]}))))
	case "TIOCSTI":
		say("is", raw(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&cString("x")[0]))))
	case "TIOCSTI with high bits":
		say("is", raw(unix.SYS_IOCTL, 0, high|unix.TIOCSTI, uintptr(unsafe.Pointer(&cString("x")[0]))))
	case "x32":
		say("is", raw(0x40000000|unix.SYS_GETPID))
	case "x32 exec":
		path := cString("/bin/true")
		say("is", raw(0x40000000|520, uintptr(unsafe.Pointer(&path[0])), 0, 0))
	case "mount":
		dir := cString("/tmp")
		kind := cString("tmpfs")
		say("is", raw(unix.SYS_MOUNT, uintptr(unsafe.Pointer(&kind[0])), uintptr(unsafe.Pointer(&dir[0])), uintptr(unsafe.Pointer(&kind[0])), 0, 0))
	case "fsopen":
		kind := cString("tmpfs")
		say("is", raw(unix.SYS_FSOPEN, uintptr(unsafe.Pointer(&kind[0])), 0))
	case "userfaultfd":
		say("is", raw(unix.SYS_USERFAULTFD, 1)) // UFFD_USER_MODE_ONLY
	case "perf":
		a := make([]uint64, 16)
		a[0] = 1 | 128<<32 // software, size
		a[5] = 1<<5 | 1<<6 // without the kernel
		say("is", raw(unix.SYS_PERF_EVENT_OPEN, uintptr(unsafe.Pointer(&a[0])), 0, ^uintptr(0), ^uintptr(0), 0))
	case "bpf":
		say("is", raw(unix.SYS_BPF, 5, zeroes(), 120)) // BPF_PROG_LOAD
	case "handle":
		say("is", raw(unix.SYS_OPEN_BY_HANDLE_AT, 0, zeroes(), 0))
	case "share a folder":
		pid, _, e := unix.RawSyscall6(unix.SYS_CLONE, unix.CLONE_FS|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if pid == 0 && e == 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		if e != 0 {
			say("is", e)
		} else {
			say("is", nil)
		}
	case "attach", "attach to a thread", "attach with high bits", "attach to nobody", "attach to the first", "seize", "write into", "take a descriptor":
		say("is", reachFor(args[0], raw))
	case "another's mark":
		say("is", raw(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_LOCKS, zeroes(), 0))
	case "another's limit":
		say("is", raw(unix.SYS_PRLIMIT64, uintptr(unix.Getppid()), unix.RLIMIT_CORE, zeroes(), 0))
	case "another's mark by an odd pointer":
		const odd = 1 << 32
		_ = raw(unix.SYS_MMAP, odd, 4096, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED, ^uintptr(0), 0)
		say("is", raw(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_LOCKS, odd, 0))
	case "another's mark the old way":
		say("is", raw(unix.SYS_SETRLIMIT, unix.RLIMIT_LOCKS, zeroes()))
	case "old syscall":
		say("is", raw(1000))
	case "i386":
		say("is", int80())
	}
}

// Each thing that the filter denies, and what happens without that part of it.
func TestAttacks(t *testing.T) {
	for _, c := range []struct {
		name   string
		guard  string
		denied string
	}{
		{"another's mark", "marks", "is EPERM"},
		{"another's limit", "marks", "is EPERM"},
		{"another's mark by an odd pointer", "marks", "is EPERM"},
		{"another's mark the old way", "marks", "is EPERM"},
		{"userns by clone", "namespaces", "is EPERM"},
		{"userns by unshare", "namespaces", "is EPERM"},
		{"userns by clone3", "namespaces", "is ENOSYS"},
		{"setns", "namespaces", "is EPERM"},
		{"keyring", "keyrings", "is EPERM"},
		{"add_key", "keyrings", "is EPERM"},
		{"io_uring", "io_uring", "is EPERM"},
		{"attach", "tracing", "is EPERM"},
		{"attach to a thread", "tracing", "is EPERM"},
		{"attach with high bits", "tracing", "is EPERM"},
		{"seize", "tracing", "is EPERM"},
		{"write into", "injecting", "is EPERM"},
		{"take a descriptor", "injecting", "is EPERM"},
		{"share a folder", "sharing", "is EPERM"},
		{"vsock", "sockets", "is EAFNOSUPPORT"},
		{"alg", "sockets", "is EAFNOSUPPORT"},
		{"netlink", "sockets", "is EPROTONOSUPPORT"},
		{"packet", "sockets", "is EAFNOSUPPORT"},
		{"listener", "listeners", "is EPERM"},
		{"TIOCSTI", "terminals", "is EPERM"},
		{"TIOCSTI with high bits", "terminals", "is EPERM"},
		{"x32", "bounds", "is ENOSYS"},
		{"x32 exec", "bounds", "is ENOSYS"},
		{"old syscall", "bounds", "is ENOSYS"},
		{"mount", "mounts", "is EPERM"},
		{"fsopen", "mounts", "is EPERM"},
		{"userfaultfd", "kernel", "is EPERM"},
		{"perf", "kernel", "is EPERM"},
		{"bpf", "kernel", "is EPERM"},
		{"handle", "kernel", "is EPERM"},
	} {
		t.Run(c.name, func(t *testing.T) {
			try := func(skip string) string {
				master, slave, err := pty.Open()
				must.OK(t, err)
				defer master.Close()
				defer slave.Close()
				b := start(t, setup{
					role: "attack", args: []string{c.name}, skip: skip, stdin: slave, decide: letGoOf,
					attr: func(a *syscall.SysProcAttr) { a.Setpgid, a.Setsid, a.Setctty, a.Ctty = false, true, true, 0 },
				})
				b.wait()
				return strings.TrimSpace(b.out.String())
			}
			if got := try(""); got != c.denied {
				t.Errorf("with the filter: %q, want %q", got, c.denied)
			}
			without := try(c.guard)
			t.Logf("without the guard: %q", without)
			if without == c.denied {
				known := alsoDenied[c.name]
				if known == "" {
					t.Errorf("without its guard it is %q all the same", without)
				}
				t.Logf("not told apart here: %s", known)
			}
		})
	}
}

// alsoDenied are attacks that this kernel or a sandbox without rights may
// refuse by itself, in the same words, with the reason.
var alsoDenied = map[string]string{
	"setns":       "a process that is root of its user namespace can't join it again: EINVAL; others lack rights",
	"add_key":     "the kernel may be without keyrings",
	"alg":         "the kernel may be without AF_ALG",
	"vsock":       "the kernel may be without AF_VSOCK",
	"x32":         "the kernel may be without x32",
	"x32 exec":    "the kernel may be without x32",
	"old syscall": "there is no such call yet",
	"mount":       "needs CAP_SYS_ADMIN in the mount namespace's owner",
	"fsopen":      "needs CAP_SYS_ADMIN in the user namespace",
	"packet":      "needs CAP_NET_RAW",
	"bpf":         "unprivileged BPF may be off",
	"handle":      "needs CAP_DAC_READ_SEARCH",
	"userfaultfd": "vm.unprivileged_userfaultfd may be off",
	"perf":        "kernel.perf_event_paranoid may forbid it",
}

// What a program does to confine itself still works.
func TestPlainFilterPasses(t *testing.T) {
	b := start(t, setup{role: "attack", args: []string{"plain filter"}})
	b.wait()
	if got := b.out.String(); got != "is ok\n" {
		t.Errorf("it said %q", got)
	}
}

// A system call of another architecture means another filter's numbers.
func TestForeignArchitecture(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("there is no other architecture's call here")
	}
	b := start(t, setup{role: "attack", args: []string{"i386"}, skip: "native"})
	if code := b.wait(); code != 0 {
		t.Skipf("there is none on this machine: without the filter it ended with %d", code)
	}
	b = start(t, setup{role: "attack", args: []string{"i386"}})
	if code := b.wait(); code != 128+int(unix.SIGSYS) {
		t.Errorf("it ended with %d and said %q", code, b.out.String())
	}
}
