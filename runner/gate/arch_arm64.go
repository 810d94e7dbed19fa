package gate

import (
	"debug/elf"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	nativeMachine = uint16(elf.EM_AARCH64)
	nativeArch    = unix.AUDIT_ARCH_AARCH64
)

// untag removes what a pointer may carry beside an address: programs may use
// the top byte for themselves (Documentation/arch/arm64/tagged-pointers.rst).
func untag(p uint64) uint64 { return p &^ (0xff << 56) }

// result is what the system call that a stopped thread made has returned, or
// its first argument where it is to be made again.
func result(tid int) (int64, error) {
	var r unix.PtraceRegs
	v := unix.Iovec{Base: (*byte)(unsafe.Pointer(&r)), Len: uint64(unsafe.Sizeof(r))}
	const prstatus = 1 // NT_PRSTATUS, linux/elf.h
	_, err := ptrace(unix.PTRACE_GETREGSET, tid, prstatus, uintptr(unsafe.Pointer(&v)))
	return int64(r.Regs[0]), err
}
