package box

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// seals make a memfd immutable, themselves included.
const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE

// mfdExec (MFD_EXEC, Linux 6.3) asks for an executable memfd in so many words,
// which kernels with vm.memfd_noexec want to be told.
const mfdExec = 0x10

var self struct {
	once sync.Once
	file *os.File
	err  error
}

// Self is this program as a sealed memfd, opened for reading only: what a
// sandbox executes can't be replaced, neither by the agent through
// /proc/PID/exe nor by an update of the file while a session lives. It is made
// once per process and stays open; nobody closes it. See memfd_create(2).
func Self() (*os.File, error) {
	self.once.Do(func() { self.file, self.err = seal() })
	return self.file, self.err
}

// Sealed says whether this process itself runs from a sealed memfd, in which
// case it need not be copied to start others.
func Sealed() bool {
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		return false
	}
	defer exe.Close()
	return sealed(exe)
}

func sealed(f *os.File) bool {
	have, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
	return err == nil && have&seals == seals
}

func seal() (*os.File, error) {
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, fmt.Errorf("cannot open this program: %w", err)
	}
	if sealed(exe) {
		return exe, nil
	}
	defer exe.Close()
	fd, err := unix.MemfdCreate("stepbox", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|mfdExec)
	if err == unix.EINVAL {
		fd, err = unix.MemfdCreate("stepbox", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make a memfd for this program: %w", err)
	}
	memory := os.NewFile(uintptr(fd), "stepbox")
	defer memory.Close()
	if _, err := io.Copy(memory, exe); err != nil {
		return nil, fmt.Errorf("cannot copy this program into memory: %w", err)
	}
	if err := unix.Fchmod(fd, 0o555); err != nil {
		return nil, fmt.Errorf("cannot make the copy of this program executable: %w", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return nil, fmt.Errorf("cannot seal the copy of this program: %w", err)
	}
	// A descriptor that may write keeps execve from working (ETXTBSY).
	copied, err := os.Open("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return nil, fmt.Errorf("cannot reopen the copy of this program: %w", err)
	}
	if !sealed(copied) {
		copied.Close()
		return nil, errors.New("cannot seal the copy of this program")
	}
	return copied, nil
}
