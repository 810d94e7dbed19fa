package terminal

import (
	"cmp"
	"os"

	"golang.org/x/sys/unix"
)

// literal turns piped input into what has to be typed at a terminal so that the
// agent reads those very bytes. A terminal that reads by lines gives some bytes a
// meaning, and cuts lines of 4,096 bytes or more (termios(3)): such bytes are
// quoted, and a long line is handed over in pieces. One goroutine uses it.
type literal struct {
	column int // bytes since the reader was last handed some
}

const (
	endOfFile   = 4    // VEOF: hands over what there is; nothing is the end
	quoteNext   = 0x16 // VLNEXT
	longestLine = 4000 // that is handed over whole
)

// typed is what to type for p.
func (l *literal) typed(p []byte) []byte {
	out := make([]byte, 0, len(p)+len(p)/8)
	for _, c := range p {
		if c == '\n' {
			out, l.column = append(out, c), 0
			continue
		}
		if l.column == longestLine {
			out, l.column = append(out, endOfFile), 0
		}
		if c < ' ' && c != '\t' || c == 0x7f {
			out = append(out, quoteNext)
		}
		out = append(out, c)
		l.column++
	}
	return out
}

// end is what to type for the end of the input.
func (l *literal) end() []byte {
	if l.column > 0 {
		return []byte{endOfFile, endOfFile} // the first one ends the line only
	}
	return []byte{endOfFile}
}

// byLines says whether a terminal, given by its master, reads by lines now and
// knows how to quote. A program with a screen of its own reads each byte as it is.
func byLines(pty *os.File) bool {
	const both = unix.ICANON | unix.IEXTEN
	is := false
	err := modes(pty, func(_ int, t *unix.Termios) error {
		is = t.Lflag&both == both
		return nil
	})
	return err == nil && is
}

// silence turns off the echo of a terminal, given by its master.
func silence(pty *os.File) error {
	return modes(pty, func(fd int, t *unix.Termios) error {
		t.Lflag &^= unix.ECHO
		return unix.IoctlSetTermios(fd, unix.TCSETS, t)
	})
}

// modes hands over a terminal's modes, see termios(3).
func modes(pty *os.File, f func(fd int, t *unix.Termios) error) error {
	raw, err := pty.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		t, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
		if err == nil {
			err = f(int(fd), t)
		}
		failed = err
	})
	return cmp.Or(err, failed)
}
