package gate

import (
	"debug/elf"

	"golang.org/x/sys/unix"
)

const (
	nativeMachine = uint16(elf.EM_X86_64)
	nativeArch    = unix.AUDIT_ARCH_X86_64
)

// untag removes what a pointer may carry beside an address.
func untag(p uint64) uint64 { return p }

// result is what the system call that a stopped thread made has returned.
func result(tid int) (int64, error) {
	var r unix.PtraceRegs
	err := unix.PtraceGetRegs(tid, &r)
	return int64(r.Rax), err
}
