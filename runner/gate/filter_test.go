package gate

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/bpf"
	"gvisor.dev/gvisor/pkg/seccomp"

	"stepbox/session/e2e/must"
)

func BenchmarkFilter(b *testing.B) {
	for b.Loop() {
		Filter()
	}
}

// library is what gVisor's own compiler makes of the same guards.
func library(t *testing.T, list []guard) bpf.Program {
	t.Helper()
	actions := map[uint32]seccomp.Action{notify: seccomp.UserNotify, pass: seccomp.Allow}
	var sets []seccomp.RuleSet
	for _, g := range list {
		for _, r := range g.rules {
			action, ok := actions[r.answer]
			if !ok {
				action = seccomp.ReturnError.Code(uint16(r.answer))
			}
			var how seccomp.SyscallRule = seccomp.MatchAll{}
			if len(r.when) > 0 {
				var args seccomp.PerArg
				var mask, value [6]uintptr
				for _, c := range r.when {
					arg, shift := c.arg&^high, c.arg&high*4
					mask[arg] |= uintptr(c.mask) << shift
					value[arg] |= uintptr(c.value) << shift
					args[arg] = seccomp.MaskedEqual(mask[arg], value[arg])
				}
				how = args
			}
			m := map[uintptr]seccomp.SyscallRule{}
			for _, c := range r.calls {
				m[c] = how
			}
			sets = append(sets, seccomp.RuleSet{Rules: seccomp.MakeSyscallRules(m), Action: action})
		}
	}
	p := seccomp.Program{RuleSets: sets, Options: seccomp.ProgramOptions{
		DefaultAction: seccomp.Allow, BadArchAction: seccomp.KillProcess,
	}}
	instructions, _, err := p.Build()
	must.OK(t, err)
	return load2(t, instructions)
}

func load2(t *testing.T, instructions []bpf.Instruction) bpf.Program {
	t.Helper()
	program, err := bpf.Compile(instructions, false)
	must.OK(t, err)
	return program
}

func ours(t *testing.T, filter []unix.SockFilter) bpf.Program {
	t.Helper()
	var l []bpf.Instruction
	for _, i := range filter {
		l = append(l, bpf.Instruction{OpCode: i.Code, JumpIfTrue: i.Jt, JumpIfFalse: i.Jf, K: i.K})
	}
	return load2(t, l)
}

// call is a system call as a filter sees it, struct seccomp_data.
func call(number, arch uint32, args ...uint64) bpf.Input {
	b := make([]byte, 64)
	binary.LittleEndian.PutUint32(b, number)
	binary.LittleEndian.PutUint32(b[4:], arch)
	for i, a := range args {
		binary.LittleEndian.PutUint64(b[16+8*i:], a)
	}
	return b
}

func answerOf(t *testing.T, p bpf.Program, in bpf.Input) uint32 {
	t.Helper()
	r, err := bpf.Exec[bpf.NativeEndian](p, in)
	must.OK(t, err)
	return r
}

// TestFilterAgainstLibrary compares the program with one that a compiler we
// don't own makes of the same rules, for every call and for every argument
// that a rule cares for and its neighbours.
func TestFilterAgainstLibrary(t *testing.T) {
	a, b := ours(t, assemble(guards(), false)), library(t, guards())
	values := map[uint64]bool{0: true, 1: true, ^uint64(0): true}
	for _, g := range guards() {
		for _, r := range g.rules {
			for _, c := range r.when {
				for _, v := range []uint32{c.value, c.mask, c.value - 1, c.value + 1, c.value | 0x80000000} {
					values[uint64(v)] = true
				}
				values[uint64(c.value)|0xdeadbeef<<32] = true
			}
		}
	}
	for i := range 32 {
		values[1<<i] = true
	}
	n := 0
	for number := range uint32(newestSyscall + 8) {
		full := map[uint32]bool{unix.SYS_SOCKET: true, unix.SYS_SOCKETPAIR: true, unix.SYS_PRLIMIT64: true}[number]
		for x := range values {
			inputs := []bpf.Input{call(number, nativeArch, x, x, x, x, x, x), call(number, nativeArch, x), call(number, nativeArch, 0, x)}
			if full {
				inputs = inputs[:0]
				for y := range values {
					for _, z := range []uint64{0, 1, 6, 16, 17, 58, 132, 262, 1 << 32} {
						inputs = append(inputs, call(number, nativeArch, x, y, z))
					}
				}
			}
			for _, in := range inputs {
				n++
				if got, want := answerOf(t, a, in), answerOf(t, b, in); got != want {
					t.Fatalf("call %d with %x: %#x, but the library's program says %#x", number, in[16:40], got, want)
				}
			}
		}
	}
	t.Logf("%d calls compared", n)
}

func TestFilterAnswers(t *testing.T) {
	filter := Filter()
	if len(filter) > unix.BPF_MAXINSNS {
		t.Fatalf("%d instructions are more than the kernel takes", len(filter))
	}
	p := ours(t, filter)
	const high32 = 0x12345678 << 32
	enosys := errno(unix.ENOSYS)
	eperm := errno(unix.EPERM)
	for _, c := range []struct {
		name string
		in   bpf.Input
		want uint32
	}{
		{"execve", call(unix.SYS_EXECVE, nativeArch), notify},
		{"execveat", call(unix.SYS_EXECVEAT, nativeArch), notify},
		{"read", call(unix.SYS_READ, nativeArch), pass},
		{"being traced", call(unix.SYS_PTRACE, nativeArch, unix.PTRACE_TRACEME), notify},
		{"getting the children of others", call(unix.SYS_PRCTL, nativeArch, unix.PR_SET_CHILD_SUBREAPER, 1), errno(0)},
		{"reading a traced one", call(unix.SYS_PTRACE, nativeArch, unix.PTRACE_PEEKDATA, 1), pass},
		{"attaching", call(unix.SYS_PTRACE, nativeArch, unix.PTRACE_ATTACH, 1), notify},
		{"seizing", call(unix.SYS_PTRACE, nativeArch, unix.PTRACE_SEIZE, 1), notify},
		{"writing into another", call(unix.SYS_PROCESS_VM_WRITEV, nativeArch, 1), eperm},
		{"taking a descriptor", call(unix.SYS_PIDFD_GETFD, nativeArch, 3, 0), eperm},
		{"sharing a folder", call(unix.SYS_CLONE, nativeArch, unix.CLONE_FS|uint64(unix.SIGCHLD)), notify},
		{"sharing it and memory", call(unix.SYS_CLONE, nativeArch, unix.CLONE_FS|unix.CLONE_VM|unix.CLONE_FILES|unix.CLONE_UNTRACED), notify},
		{"sharing in a namespace", call(unix.SYS_CLONE, nativeArch, unix.CLONE_FS|unix.CLONE_NEWPID), eperm},
		{"a thread that shares", call(unix.SYS_CLONE, nativeArch, unix.CLONE_VM|unix.CLONE_FS|unix.CLONE_THREAD), pass},
		{"a thread", call(unix.SYS_CLONE, nativeArch, unix.CLONE_VM|unix.CLONE_THREAD), pass},
		{"a user namespace", call(unix.SYS_CLONE, nativeArch, unix.CLONE_NEWUSER|uint64(unix.SIGCHLD)), eperm},
		{"with high bits", call(unix.SYS_CLONE, nativeArch, high32|unix.CLONE_NEWUSER), eperm},
		{"a child for the tracer", call(unix.SYS_CLONE, nativeArch, unix.CLONE_PTRACE), eperm},
		{"clone3", call(unix.SYS_CLONE3, nativeArch), enosys},
		{"reading one's mark", call(unix.SYS_PRLIMIT64, nativeArch, 0, high32|unix.RLIMIT_LOCKS, 0), pass},
		{"changing one's mark", call(unix.SYS_PRLIMIT64, nativeArch, 0, unix.RLIMIT_LOCKS, 0x7fff0000), eperm},
		{"changing it by a pointer whose low half is zero", call(unix.SYS_PRLIMIT64, nativeArch, 0, high32|unix.RLIMIT_LOCKS, 1<<32), eperm},
		{"changing it the old way", call(unix.SYS_SETRLIMIT, nativeArch, unix.RLIMIT_LOCKS), eperm},
		{"changing another bound", call(unix.SYS_PRLIMIT64, nativeArch, 0, unix.RLIMIT_NOFILE, 0x7fff0000), pass},
		{"unshare files", call(unix.SYS_UNSHARE, nativeArch, unix.CLONE_FILES), pass},
		{"unshare user", call(unix.SYS_UNSHARE, nativeArch, unix.CLONE_NEWUSER), eperm},
		{"unshare time", call(unix.SYS_UNSHARE, nativeArch, unix.CLONE_NEWTIME), eperm},
		{"TIOCSTI", call(unix.SYS_IOCTL, nativeArch, 0, unix.TIOCSTI), eperm},
		{"TIOCSTI with high bits", call(unix.SYS_IOCTL, nativeArch, 0, high32|unix.TIOCSTI), eperm},
		{"TIOCLINUX", call(unix.SYS_IOCTL, nativeArch, 0, tiocLinux), eperm},
		{"TCGETS", call(unix.SYS_IOCTL, nativeArch, 0, unix.TCGETS), pass},
		{"a plain filter", call(unix.SYS_SECCOMP, nativeArch, 1, unix.SECCOMP_FILTER_FLAG_TSYNC), pass},
		{"a listener", call(unix.SYS_SECCOMP, nativeArch, 1, 0x28), eperm},
		{"TCP", call(unix.SYS_SOCKET, nativeArch, unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 6), pass},
		{"ping", call(unix.SYS_SOCKET, nativeArch, unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_ICMPV6), pass},
		{"raw IP", call(unix.SYS_SOCKET, nativeArch, unix.AF_INET, unix.SOCK_RAW, 1), eperm},
		{"packets by the old way", call(unix.SYS_SOCKET, nativeArch, unix.AF_INET, unix.SOCK_PACKET, 3), eperm},
		{"SCTP", call(unix.SYS_SOCKET, nativeArch, unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP), errno(unix.EPROTONOSUPPORT)},
		{"MPTCP", call(unix.SYS_SOCKET, nativeArch, unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP), errno(unix.EPROTONOSUPPORT)},
		{"routes", call(unix.SYS_SOCKET, nativeArch, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE), pass},
		{"nftables", call(unix.SYS_SOCKET, nativeArch, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER), errno(unix.EPROTONOSUPPORT)},
		{"vsock", call(unix.SYS_SOCKET, nativeArch, unix.AF_VSOCK, unix.SOCK_STREAM), errno(unix.EAFNOSUPPORT)},
		{"vsock with high bits", call(unix.SYS_SOCKET, nativeArch, high32|unix.AF_VSOCK, unix.SOCK_STREAM), errno(unix.EAFNOSUPPORT)},
		{"packet", call(unix.SYS_SOCKET, nativeArch, unix.AF_PACKET, unix.SOCK_RAW), errno(unix.EAFNOSUPPORT)},
		{"alg", call(unix.SYS_SOCKET, nativeArch, unix.AF_ALG, unix.SOCK_SEQPACKET), errno(unix.EAFNOSUPPORT)},
		{"a pair of vsocks", call(unix.SYS_SOCKETPAIR, nativeArch, unix.AF_VSOCK, unix.SOCK_STREAM), errno(unix.EAFNOSUPPORT)},
		{"mount", call(unix.SYS_MOUNT, nativeArch), eperm},
		{"bpf", call(unix.SYS_BPF, nativeArch), eperm},
		{"io_uring", call(unix.SYS_IO_URING_SETUP, nativeArch), eperm},
		{"keyctl", call(unix.SYS_KEYCTL, nativeArch), eperm},
		{"the newest", call(newestSyscall, nativeArch), pass},
		{"one too new", call(newestSyscall+1, nativeArch), enosys},
		{"x32", call(0x40000000|520, nativeArch), enosys},
		{"-1", call(0xffffffff, nativeArch), enosys},
		{"another architecture", call(11, unix.AUDIT_ARCH_I386), kill},
	} {
		if got := answerOf(t, p, c.in); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
	}
}
