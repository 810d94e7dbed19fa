//go:build amd64 || arm64 || riscv64

package inode

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// LstatRaw is lstatAt for a name as getdents64(2) gave it: the byte after it
// is NUL, so that it needn't be copied. A scan is mostly this call.
func LstatRaw(dirfd int, name []byte, st *unix.Stat_t) error {
	for {
		_, _, no := unix.Syscall6(unix.SYS_NEWFSTATAT, uintptr(dirfd), uintptr(unsafe.Pointer(unsafe.SliceData(name))),
			uintptr(unsafe.Pointer(st)), unix.AT_SYMLINK_NOFOLLOW, 0, 0)
		switch no {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return no
		}
	}
}
