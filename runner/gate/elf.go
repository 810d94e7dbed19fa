package gate

import (
	"debug/elf"
	"encoding/binary"
	"strings"

	"golang.org/x/sys/unix"
)

// Sizes of a 64-bit ELF file's headers, and what the kernel takes of them at
// most (fs/binfmt_elf.c).
const (
	elfHeaderSize   = 64
	programSize     = 56
	maxProgramBytes = 64 << 10
)

// dynamicLinker is the path in an open program's headers of the one that the
// kernel starts in its place (PT_INTERP), empty when there is none or the
// kernel won't run the program.
func dynamicLinker(fd int, head []byte) string {
	if len(head) < elfHeaderSize {
		return ""
	}
	le := binary.LittleEndian
	at, size, count := le.Uint64(head[32:]), le.Uint16(head[54:]), int(le.Uint16(head[56:]))
	if size != programSize || count == 0 || count*programSize > maxProgramBytes || at > 1<<62 {
		return ""
	}
	headers := make([]byte, count*programSize)
	if n, err := unix.Pread(fd, headers, int64(at)); err != nil || n < len(headers) {
		return ""
	}
	for ; len(headers) > 0; headers = headers[programSize:] {
		if elf.ProgType(le.Uint32(headers)) != elf.PT_INTERP {
			continue
		}
		offset, length := le.Uint64(headers[8:]), le.Uint64(headers[32:])
		if length < 2 || length > unix.PathMax || offset > 1<<62 {
			return ""
		}
		name := make([]byte, length)
		if n, err := unix.Pread(fd, name, int64(offset)); err != nil || n < len(name) || name[length-1] != 0 {
			return ""
		}
		path, _, _ := strings.Cut(string(name), "\x00")
		return path
	}
	return ""
}
