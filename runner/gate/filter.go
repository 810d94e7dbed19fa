package gate

import "golang.org/x/sys/unix"

// newestSyscall is the last system call whose effect was weighed for this
// filter; newer ones don't exist for the sandbox. x32 calls, which are amd64
// calls with bit 30 set, are above it too.
const newestSyscall = unix.SYS_FILE_SETATTR

// guard is one thing that the filter keeps a sandbox from.
type guard struct {
	name  string
	rules []rule
}

// rule answers system calls whose arguments meet all its conditions. The first
// rule that matches a call counts, and a call that none matches is let pass.
type rule struct {
	calls  []uintptr
	when   []condition
	answer uint32 // SECCOMP_RET_…
}

// condition compares an argument's low half under a mask: the kernel looks at
// no more of arguments that are int or unsigned int, whatever the rest of the
// register holds. Of a pointer the high half counts too.
type condition struct {
	arg         int // or'd with high for the other half
	mask, value uint32
}

const high = 8

const whole = 0xffffffff

func is(arg int, value uint32) condition { return condition{arg, whole, value} }

// Answers of rules.
const (
	notify = unix.SECCOMP_RET_USER_NOTIF
	pass   = unix.SECCOMP_RET_ALLOW
	kill   = unix.SECCOMP_RET_KILL_PROCESS
)

func errno(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

func calls(numbers ...uintptr) []uintptr { return numbers }

// namespaceFlags are the flags of clone(2) and unshare(2) that make
// namespaces. CLONE_NEWTIME is the odd one: clone(2) reads that bit as part
// of the exit signal, and only clone3(2), which is gone here, and unshare(2)
// make time namespaces.
const namespaceFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

const tiocLinux = 0x541c // TIOCLINUX, asm-generic/ioctls.h

// guards lists what the filter does.
func guards() []guard {
	return []guard{
		{"exec", []rule{
			{calls: calls(unix.SYS_EXECVE, unix.SYS_EXECVEAT), answer: notify},
		}},
		{"tracing", []rule{
			{calls(unix.SYS_PTRACE), []condition{is(0, unix.PTRACE_ATTACH)}, notify},
			{calls(unix.SYS_PTRACE), []condition{is(0, unix.PTRACE_SEIZE)}, notify},
			{calls(unix.SYS_PTRACE), []condition{is(0, unix.PTRACE_TRACEME)}, notify}, // by its parent
		}},
		// Who gets the children of programs that it kills could have them traced. PID 1 reaps them: all but that is as asked for.
		{"orphans", []rule{
			{calls(unix.SYS_PRCTL), []condition{is(0, unix.PR_SET_CHILD_SUBREAPER)}, errno(0)},
		}},
		// Nothing that works on one's own children needs these.
		{"injecting", []rule{
			{calls: calls(unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD), answer: errno(unix.EPERM)},
		}},
		// A child that isn't a thread and shares its working directory keeps
		// doing so as another program.
		{"sharing", []rule{
			{calls(unix.SYS_CLONE), []condition{{0, namespaceFlags | unix.CLONE_PTRACE | unix.CLONE_FS | unix.CLONE_THREAD, unix.CLONE_FS}}, notify},
		}},
		{"signals", signalRules()},
		// Programs may read this bound, in which marks are kept, but not set it.
		{"marks", []rule{
			{calls(unix.SYS_PRLIMIT64), []condition{is(1, unix.RLIMIT_LOCKS), is(2, 0), is(2|high, 0)}, pass},
			{calls(unix.SYS_PRLIMIT64), []condition{is(1, unix.RLIMIT_LOCKS)}, errno(unix.EPERM)},
			// A limit that is reached is a signal to whom it is set for. That is known here only of oneself.
			{calls(unix.SYS_PRLIMIT64), []condition{is(0, 0)}, pass},
			{calls(unix.SYS_PRLIMIT64), []condition{is(2, 0), is(2|high, 0)}, pass},
			{calls: calls(unix.SYS_PRLIMIT64), answer: errno(unix.EPERM)},
			{calls(unix.SYS_SETRLIMIT), []condition{is(0, unix.RLIMIT_LOCKS)}, errno(unix.EPERM)},
		}},
		{"namespaces", []rule{
			// CLONE_PTRACE would hand a child to the gate's own tracer.
			{calls(unix.SYS_CLONE), []condition{{0, namespaceFlags | unix.CLONE_PTRACE, 0}}, pass},
			{calls(unix.SYS_UNSHARE), []condition{{0, namespaceFlags | unix.CLONE_NEWTIME, 0}}, pass},
			{calls: calls(unix.SYS_CLONE, unix.SYS_UNSHARE, unix.SYS_SETNS), answer: errno(unix.EPERM)},
			// The flags that clone3 takes are in memory, out of a filter's
			// reach; C libraries fall back to clone.
			{calls: calls(unix.SYS_CLONE3), answer: errno(unix.ENOSYS)},
		}},
		{"keyrings", []rule{
			{calls: calls(unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL), answer: errno(unix.EPERM)},
		}},
		{"io_uring", []rule{
			{calls: calls(unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER), answer: errno(unix.EPERM)},
		}},
		{"sockets", socketRules()},
		{"terminals", []rule{
			{calls(unix.SYS_IOCTL), []condition{is(1, unix.TIOCSTI)}, errno(unix.EPERM)},
			{calls(unix.SYS_IOCTL), []condition{is(1, tiocLinux)}, errno(unix.EPERM)},
		}},
		{"listeners", []rule{
			{calls(unix.SYS_SECCOMP), []condition{{1, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER}}, errno(unix.EPERM)},
		}},
		{"mounts", []rule{{calls: calls(
			unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG,
			unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR,
			unix.SYS_MOUNT_SETATTR, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
		), answer: errno(unix.EPERM)}}},
		{"kernel", []rule{{calls: calls(append(privilegedHere(),
			unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_OPEN_BY_HANDLE_AT,
			unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE,
			unix.SYS_DELETE_MODULE, unix.SYS_REBOOT, unix.SYS_ACCT, unix.SYS_SYSLOG, unix.SYS_LOOKUP_DCOOKIE,
			unix.SYS_NFSSERVCTL, unix.SYS_VHANGUP, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME,
		)...), answer: errno(unix.EPERM)}}},
	}
}

// socketRules let pass unix sockets, TCP, UDP and ping over IP, and the
// netlink family that getaddrinfo(3) and ip(8) ask for routes and addresses.
// Every other family or protocol would be kernel code that nothing here
// needs, or (AF_VSOCK) a way past the network namespace.
func socketRules() []rule {
	const sockTypeMask = 0xf // the rest of a socket's type is flags
	socket := calls(unix.SYS_SOCKET)
	rules := []rule{
		{socket, []condition{is(0, unix.AF_UNIX)}, pass},
		{socket, []condition{is(0, unix.AF_NETLINK), is(2, unix.NETLINK_ROUTE)}, pass},
		{socket, []condition{is(0, unix.AF_NETLINK)}, errno(unix.EPROTONOSUPPORT)},
	}
	for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
		for _, kind := range []uint32{unix.SOCK_STREAM, unix.SOCK_DGRAM} {
			ip := []condition{is(0, family), {1, sockTypeMask, kind}}
			for _, protocol := range []uint32{unix.IPPROTO_IP, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6} {
				rules = append(rules, rule{socket, append(ip[:2:2], is(2, protocol)), pass})
			}
			rules = append(rules, rule{socket, ip, errno(unix.EPROTONOSUPPORT)})
		}
		rules = append(rules, rule{socket, []condition{is(0, family)}, errno(unix.EPERM)}) // raw, as without rights
	}
	return append(rules,
		rule{calls: socket, answer: errno(unix.EAFNOSUPPORT)},
		rule{calls(unix.SYS_SOCKETPAIR), []condition{is(0, unix.AF_UNIX)}, pass},
		rule{calls: calls(unix.SYS_SOCKETPAIR), answer: errno(unix.EAFNOSUPPORT)})
}

// Filter is the filter's program, in the form that seccomp(2) takes. It lets
// pass what no guard names, so that any agent and any compiler runs; what
// contains a sandbox is its namespaces, and the filter keeps it in them.
func Filter() []unix.SockFilter { return assemble(guards(), true) }
