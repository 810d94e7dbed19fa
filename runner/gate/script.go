package gate

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// headSize is how much of a program the kernel looks at to tell its format,
// BINPRM_BUF_SIZE in linux/binfmts.h.
const headSize = 256

// maxInterpreters is how many scripts may interpret each other (fs/exec.c).
const maxInterpreters = 5

// format is what the head of a file says that it is.
type format int

const (
	formatOther format = iota // nothing that the kernel runs by itself
	formatELF
	formatScript
)

// headFormat tells the format of a program from its first bytes. ELF files
// for other machines count as other: they would need binfmt_misc and thus
// another program, or could make no system call.
func headFormat(head []byte) format {
	switch {
	case len(head) >= 20 && bytes.HasPrefix(head, []byte("\x7fELF\x02\x01")):
		if binary.LittleEndian.Uint16(head[18:]) == nativeMachine {
			return formatELF
		}
	case bytes.HasPrefix(head, []byte("#!")):
		return formatScript
	}
	return formatOther
}

// parseScript reads the first line of a script as the kernel does
// (fs/binfmt_script.c): the interpreter and at most one argument, which takes
// in all that follows. Head is the first headSize bytes, fewer when the file
// is shorter.
func parseScript(head []byte) (interpreter, argument string, hasArgument bool, err error) {
	var buffer [headSize]byte // beyond the end of a short file there are zeroes
	copy(buffer[:], head)
	if buffer[0] != '#' || buffer[1] != '!' {
		return "", "", false, unix.ENOEXEC
	}
	end := bytes.IndexByte(buffer[:], '\n')
	if z := bytes.IndexByte(buffer[:], 0); z >= 0 && z < end {
		end = -1 // the kernel looks for the line's end up to the first zero only
	}
	if end < 0 {
		i := skipBlanks(buffer[:], 2)
		// Without a blank or an end after it the interpreter's name may go on.
		if i < 0 || nextBlank(buffer[:], i) < 0 {
			return "", "", false, unix.ENOEXEC
		}
		end = len(buffer) - 1
	}
	for isBlank(buffer[end-1]) {
		end--
	}
	line := buffer[:end]
	i := skipBlanks(line, 2)
	if i < 0 {
		return "", "", false, unix.ENOEXEC
	}
	j := nextBlank(line, i)
	if j < 0 {
		return upToZero(line[i:]), "", false, nil
	}
	interpreter = upToZero(line[i:j])
	if line[j] != 0 {
		if k := skipBlanks(line, j); k >= 0 {
			argument, hasArgument = upToZero(line[k:]), true
		}
	}
	return interpreter, argument, hasArgument, nil
}

func isBlank(b byte) bool { return b == ' ' || b == '\t' }

// skipBlanks is the index of the first byte from i on that isn't blank, -1
// when there is none.
func skipBlanks(b []byte, i int) int {
	for ; i < len(b); i++ {
		if !isBlank(b[i]) {
			return i
		}
	}
	return -1
}

// nextBlank is the index of the first blank or zero from i on.
func nextBlank(b []byte, i int) int {
	for ; i < len(b); i++ {
		if isBlank(b[i]) || b[i] == 0 {
			return i
		}
	}
	return -1
}

func upToZero(b []byte) string {
	if z := bytes.IndexByte(b, 0); z >= 0 {
		b = b[:z]
	}
	return string(b)
}
