package gate

import (
	"debug/elf"

	"golang.org/x/sys/unix"
)

const (
	nativeMachine = uint16(elf.EM_X86_64)
	nativeArch    = unix.AUDIT_ARCH_X86_64
)

// callInstruction makes a system call.
var callInstruction = []byte{0x0f, 0x05} // syscall

// untag removes what a pointer may carry beside an address.
func untag(p uint64) uint64 { return p }

// result is what the system call that a stopped thread made has returned.
func result(tid int) (int64, error) {
	var r unix.PtraceRegs
	err := unix.PtraceGetRegs(tid, &r)
	return int64(r.Rax), err
}

// setResult changes what the system call that a stopped thread made returns.
func setResult(tid int, v int64) error {
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &r); err != nil {
		return err
	}
	r.Rax = uint64(v)
	return unix.PtraceSetRegs(tid, &r)
}

// setCall makes a system call of one argument a stopped thread's next: the one
// that it has just entered, or else one in the place of its next instruction.
func setCall(tid int, number, argument uint64, entered bool) error {
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &r); err != nil {
		return err
	}
	r.Rdi = argument
	if entered {
		r.Orig_rax = number
	} else {
		r.Rax = number
		if err := pokeCall(tid, r.Rip); err != nil {
			return err
		}
	}
	return unix.PtraceSetRegs(tid, &r)
}
