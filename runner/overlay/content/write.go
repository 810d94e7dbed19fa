package content

import (
	"io"

	"golang.org/x/sys/unix"
)

// HoleUnit is the shortest run of zeros, in bytes, that WriteData leaves out.
const HoleUnit = 4096

// WriteData writes b at off of an open file, but for whole pages of zeros: what is
// there must be zeros already, or beyond the end.
func WriteData(fd int, b []byte, off int64) error {
	for len(b) > 0 {
		n := 0
		for n < len(b) && (len(b)-n < HoleUnit || !IsZero(b[n:n+HoleUnit])) {
			n = min(n+HoleUnit, len(b))
		}
		for w := 0; w < n; {
			k, err := unix.Pwrite(fd, b[w:n], off+int64(w))
			if err == unix.EINTR {
				continue
			}
			if err != nil {
				return err
			}
			if k == 0 {
				return io.ErrShortWrite
			}
			w += k
		}
		b, off = b[n:], off+int64(n)
		for len(b) >= HoleUnit && IsZero(b[:HoleUnit]) {
			b, off = b[HoleUnit:], off+HoleUnit
		}
	}
	return nil
}
