package box

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// seals make a memfd immutable, themselves included.
const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE

// mfdExec (MFD_EXEC, Linux 6.3) asks for an executable memfd in so many words,
// which kernels with vm.memfd_noexec want to be told.
const mfdExec = 0x10

var self = sync.OnceValues(seal)

// Self is this program as a sealed memfd, opened for reading only: what a
// sandbox executes can't be replaced, neither by the agent through
// /proc/PID/exe nor by an update of the file while a session lives. It is made
// once per process and stays open; nobody closes it. See memfd_create(2).
func Self() (*os.File, error) { return self() }

func sealed(f *os.File) bool {
	have, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
	return err == nil && have&seals == seals
}

func seal() (*os.File, error) {
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, fmt.Errorf("cannot open this program: %w", err)
	}
	defer exe.Close()
	if sealed(exe) { // as a supervisor's is
		return highNumber(exe)
	}
	fd, err := unix.MemfdCreate("stepbox", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|mfdExec)
	if err == unix.EINVAL {
		fd, err = unix.MemfdCreate("stepbox", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make a memfd for this program: %w", err)
	}
	memory := os.NewFile(uintptr(fd), "stepbox")
	defer memory.Close()
	if err := copyLoaded(memory, exe); err != nil {
		return nil, fmt.Errorf("cannot copy this program into memory: %w", err)
	}
	if err := unix.Fchmod(fd, 0o555); err != nil {
		return nil, fmt.Errorf("cannot make the copy of this program executable: %w", err)
	}
	if err := addSeals(fd); err != nil {
		return nil, fmt.Errorf("cannot seal the copy of this program: %w", err)
	}
	// A descriptor that may write keeps execve from working (ETXTBSY).
	again, err := os.Open("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return nil, fmt.Errorf("cannot reopen the copy of this program: %w", err)
	}
	defer again.Close()
	return highNumber(again)
}

// highNumber is a file under a number that is no other file's in a child: exec.Cmd
// numbers a child's from 0, and moves them and its own beyond the highest of them.
func highNumber(f *os.File) (*os.File, error) {
	least := uint64(leastNumber)
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		least = min(least, limit.Cur/2)
	}
	number, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, int(least))
	if err != nil {
		return nil, fmt.Errorf("cannot keep the copy of this program open: %w", err)
	}
	return os.NewFile(uintptr(number), "stepbox"), nil
}

// addSeals seals a memfd that nobody else has. Where the kernel itself holds pages
// of it, to move or to count them, it waits a little for those, then says EBUSY.
func addSeals(fd int) (err error) {
	for range 100 {
		if _, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != unix.EBUSY {
			break
		}
	}
	return err
}

// leastNumber is above the descriptors that children are given, and those that this
// process has when it starts them: many, where many programs are held.
const leastNumber = 4096

// copyLoaded copies what the kernel loads of a program, which comes first in the
// file: the third that follows is for debuggers. All processors take part, since
// somebody waits for each start.
func copyLoaded(to, from *os.File) error {
	program, err := elf.NewFile(from)
	if err != nil {
		return err
	}
	var size int64
	for _, part := range program.Progs {
		if part.Type == elf.PT_LOAD {
			size = max(size, int64(part.Off+part.Filesz))
		}
	}
	if err := to.Truncate(size); err != nil {
		return err
	}
	mapped, err := unix.Mmap(int(from.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED) // as the kernel has it for who runs it
	if err != nil {
		return err
	}
	defer unix.Munmap(mapped)
	failures := make([]error, runtime.GOMAXPROCS(0))
	share := (size + int64(len(failures)) - 1) / int64(len(failures))
	var copying sync.WaitGroup
	for i := range failures {
		copying.Go(func() {
			at := int64(i) * share
			_, failures[i] = to.WriteAt(mapped[at:min(at+share, size)], at)
		})
	}
	copying.Wait()
	return errors.Join(failures...)
}
