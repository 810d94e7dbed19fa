package gate

import (
	"bytes"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestArchitectures holds the filter and what the gate does to registers against
// the kernel's own tables (arch/x86/entry/syscalls/syscall_64.tbl,
// scripts/syscall.tbl), by number, for the architecture that it runs on.
func TestArchitectures(t *testing.T) {
	at, ok := map[string]int{"amd64": 0, "arm64": 1}[runtime.GOARCH]
	if !ok {
		t.Fatalf("nothing is known of %s", runtime.GOARCH)
	}
	const none = -1
	eperm, enosys := errno(unix.EPERM), errno(unix.ENOSYS)
	p := ours(t, Filter())
	arch := [...]uint32{0xc000003e, 0xc00000b7}[at]
	for _, c := range []struct {
		name    string
		numbers [2]int
		args    []uint64
		want    uint32
	}{
		{"execve", [2]int{59, 221}, nil, notify},
		{"execveat", [2]int{322, 281}, nil, notify},
		{"ptrace, attaching", [2]int{101, 117}, []uint64{16}, notify},
		{"ptrace, seizing", [2]int{101, 117}, []uint64{0x4206}, notify},
		{"ptrace, being traced", [2]int{101, 117}, []uint64{0}, notify},
		{"process_vm_writev", [2]int{311, 271}, nil, eperm},
		{"pidfd_getfd", [2]int{438, 438}, nil, eperm},
		{"clone of a process", [2]int{56, 220}, []uint64{17}, pass},
		{"clone with a folder in common", [2]int{56, 220}, []uint64{0x200 | 17}, notify},
		{"clone of a user namespace", [2]int{56, 220}, []uint64{0x10000000 | 17}, eperm},
		{"clone3", [2]int{435, 435}, nil, enosys},
		{"unshare of a user namespace", [2]int{272, 97}, []uint64{0x10000000}, eperm},
		{"setns", [2]int{308, 268}, nil, eperm},
		{"prlimit64 of a mark", [2]int{302, 261}, []uint64{0, 10, 1}, eperm},
		{"prlimit64 of files", [2]int{302, 261}, []uint64{0, 7, 1}, pass},
		{"setrlimit of a mark", [2]int{160, 164}, []uint64{10}, eperm},
		{"ioctl TIOCSTI", [2]int{16, 29}, []uint64{0, 0x5412}, eperm},
		{"seccomp with a listener", [2]int{317, 277}, []uint64{1, 8}, eperm},
		{"mount", [2]int{165, 40}, nil, eperm},
		{"bpf", [2]int{321, 280}, nil, eperm},
		{"io_uring_setup", [2]int{425, 425}, nil, eperm},
		{"socket AF_VSOCK", [2]int{41, 198}, []uint64{40, 1}, errno(unix.EAFNOSUPPORT)},
		{"exit_group", [2]int{231, 94}, nil, pass},
		{"openat", [2]int{257, 56}, nil, pass},
		{"open", [2]int{2, none}, nil, pass},
		{"stat", [2]int{4, none}, nil, pass},
		{"rename", [2]int{82, none}, nil, pass},
		{"fork", [2]int{57, none}, nil, pass},
		{"vfork", [2]int{58, none}, nil, pass},
		{"iopl", [2]int{172, none}, nil, eperm},
		{"uselib", [2]int{134, none}, nil, eperm},
		{"of x32", [2]int{0x40000000 | 520, none}, nil, enosys},
	} {
		if c.numbers[at] == none {
			continue
		}
		if got := answerOf(t, p, call(uint32(c.numbers[at]), arch, c.args...)); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
	}
	other := [...]uint32{0x40000003, 0x40000028}[at] // i386, arm
	if got := answerOf(t, p, call(11, other)); got != kill {
		t.Errorf("a call of the machine's older architecture: %#x, want %#x", got, uint32(kill))
	}
	if want := [...][]byte{{0x0f, 0x05}, {0x01, 0x00, 0x00, 0xd4}}[at]; !bytes.Equal(callInstruction, want) {
		t.Errorf("a call's instruction is %x, want %x", callInstruction, want)
	}
	const tagged, plain = 0x5a00_7fff_1234_5678, 0x0000_7fff_1234_5678
	if got, want := untag(tagged), [...]uint64{tagged, plain}[at]; got != want {
		t.Errorf("a pointer is taken for %#x, want %#x", got, want)
	}
	for i, h := range [2][]byte{{62, 0}, {183, 0}} { // EM_X86_64, EM_AARCH64
		head := append([]byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00"), h...)
		if got, want := headFormat(head), map[bool]format{true: formatELF, false: formatOther}[i == at]; got != want {
			t.Errorf("a program for machine %d is of format %d, want %d", h[0], got, want)
		}
	}
	for _, machine := range []byte{3, 40} { // EM_386, EM_ARM, of 32 bits
		head := append([]byte("\x7fELF\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00"), machine, 0)
		if got := headFormat(head); got != formatOther {
			t.Errorf("a program of 32 bits for machine %d is of format %d", machine, got)
		}
	}
}
