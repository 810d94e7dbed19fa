package gate

import "golang.org/x/sys/unix"

// privilegedHere lists calls that only this architecture has and that nobody
// without rights on the machine can use, or that no program needs any more.
func privilegedHere() []uintptr {
	return []uintptr{
		unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_CREATE_MODULE, unix.SYS_GET_KERNEL_SYMS, unix.SYS_QUERY_MODULE,
		unix.SYS_USELIB, unix.SYS_SYSFS, unix.SYS__SYSCTL,
	}
}
