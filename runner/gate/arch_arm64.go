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

// callInstruction makes a system call.
var callInstruction = []byte{0x01, 0x00, 0x00, 0xd4} // svc #0

// Sets of registers, linux/elf.h.
const (
	setGeneral    = 1     // NT_PRSTATUS
	setSystemCall = 0x404 // NT_ARM_SYSTEM_CALL
)

// untag removes what a pointer may carry beside an address: programs may use
// the top byte for themselves (Documentation/arch/arm64/tagged-pointers.rst).
func untag(p uint64) uint64 { return p &^ (0xff << 56) }

func registers(request, tid, set int, at unsafe.Pointer, size uintptr) error {
	v := unix.Iovec{Base: (*byte)(at), Len: uint64(size)}
	_, err := ptrace(request, tid, uintptr(set), uintptr(unsafe.Pointer(&v)))
	return err
}

// result is what the system call that a stopped thread made has returned, or
// its first argument where it is to be made again.
func result(tid int) (int64, error) {
	var r unix.PtraceRegs
	err := registers(unix.PTRACE_GETREGSET, tid, setGeneral, unsafe.Pointer(&r), unsafe.Sizeof(r))
	return int64(r.Regs[0]), err
}

// setResult changes what the system call that a stopped thread made returns.
func setResult(tid int, v int64) error {
	var r unix.PtraceRegs
	if err := registers(unix.PTRACE_GETREGSET, tid, setGeneral, unsafe.Pointer(&r), unsafe.Sizeof(r)); err != nil {
		return err
	}
	r.Regs[0] = uint64(v)
	return registers(unix.PTRACE_SETREGSET, tid, setGeneral, unsafe.Pointer(&r), unsafe.Sizeof(r))
}

// setCall makes a system call of one argument a stopped thread's next: the one
// that it has just entered, or else one in the place of its next instruction.
func setCall(tid int, number, argument uint64, entered bool) error {
	var r unix.PtraceRegs
	if err := registers(unix.PTRACE_GETREGSET, tid, setGeneral, unsafe.Pointer(&r), unsafe.Sizeof(r)); err != nil {
		return err
	}
	r.Regs[0], r.Regs[8] = argument, number
	if entered {
		n := int32(number)
		if err := registers(unix.PTRACE_SETREGSET, tid, setSystemCall, unsafe.Pointer(&n), unsafe.Sizeof(n)); err != nil {
			return err
		}
	} else if err := pokeCall(tid, r.Pc); err != nil {
		return err
	}
	return registers(unix.PTRACE_SETREGSET, tid, setGeneral, unsafe.Pointer(&r), unsafe.Sizeof(r))
}
