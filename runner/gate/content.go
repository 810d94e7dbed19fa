package gate

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"github.com/zeebo/blake3"
	"golang.org/x/sys/unix"
)

// pin takes the hash of a file that the agent can write, unless it is too large.
func (f *file) pin(known *contents) (err error) {
	if f.large = f.stat.Size > maxPinned; f.fixed || f.large {
		return nil
	}
	f.hash, err = known.of(f)
	return err
}

func selfFD(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

var hashBuffers = sync.Pool{New: func() any { return new([256 << 10]byte) }}

// open opens a file to be read, not to be held up by a lease that the agent took on it.
func (f *file) open() (fd int, err error) {
	fd, err = unix.Open(selfFD(f.fd), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		err = unreadable{f.path}
	}
	return fd, err
}

// content is the hash of what a file holds now.
func (f *file) content() (sum [32]byte, err error) {
	fd, err := f.open()
	if err != nil {
		return sum, err
	}
	r := os.NewFile(uintptr(fd), f.path)
	defer r.Close()
	b := hashBuffers.Get().(*[256 << 10]byte)
	defer hashBuffers.Put(b)
	h := blake3.New()
	if _, err := io.CopyBuffer(struct{ io.Writer }{h}, io.LimitReader(r, maxPinned+1), b[:]); err != nil {
		return sum, unreadable{f.path}
	}
	h.Sum(sum[:0])
	return sum, nil
}

// contents remembers the hashes of files. A file whose times tell of no change
// can still have been written to through a mapping: before an exec that a
// person saw is let go, contents are hashed anew.
type contents struct {
	mu     sync.Mutex
	hashes map[version][32]byte // guarded by mu
}

// version names one state of one file.
type version struct {
	dev, ino   uint64
	size       int64
	ctim, mtim unix.Timespec
}

func versionOf(f *file) version {
	return version{f.stat.Dev, f.stat.Ino, f.stat.Size, f.stat.Ctim, f.stat.Mtim}
}

const (
	maxContents = 4096            // hashes remembered
	settled     = 2 * time.Second // after which a change would get another time
)

func (c *contents) of(f *file) ([32]byte, error) {
	v := versionOf(f)
	c.mu.Lock()
	hash, ok := c.hashes[v]
	c.mu.Unlock()
	if ok {
		return hash, nil
	}
	hash, err := f.content()
	if err != nil || time.Since(time.Unix(f.stat.Ctim.Unix())) < settled {
		return hash, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hashes == nil || len(c.hashes) >= maxContents {
		c.hashes = map[version][32]byte{}
	}
	c.hashes[v] = hash
	return hash, nil
}

// textProtected says whether the kernel keeps the file of a running program
// from being written, also through a mapping that was there before. Linux 6.11
// didn't; that was taken back in 6.13 and some releases between. One that does
// doesn't run a file that is open for writing: an empty one, which no kernel runs.
var textProtected = sync.OnceValue(func() bool {
	fd, err := unix.MemfdCreate("", unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	writer, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_WRONLY|unix.O_CLOEXEC, 0) // what made it doesn't count as one
	if err != nil {
		return false
	}
	defer unix.Close(writer)
	argv := [2]*byte{new(byte)}
	_, _, errno := unix.Syscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(argv[0])),
		uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&argv[1])), unix.AT_EMPTY_PATH, 0)
	return errno == unix.ETXTBSY
})

// memoryDevice is the device of the files that memfd_create(2) makes.
var memoryDevice = sync.OnceValues(func() (uint64, error) {
	fd, err := unix.MemfdCreate("", unix.MFD_CLOEXEC)
	if err != nil {
		return 0, fmt.Errorf("cannot tell files in memory from others: %w", err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, fmt.Errorf("cannot tell files in memory from others: %w", err)
	}
	return st.Dev, nil
})

// unsealed says whether an open file is one in memory that isn't sealed against
// writing. Its text can be changed at any time, as the kernel doesn't protect
// what a memfd holds while it runs.
func unsealed(fd int, st *unix.Stat_t, kind int64) (bool, error) {
	dev, err := memoryDevice()
	if err != nil {
		return false, err
	}
	if st.Dev != dev && kind != unix.HUGETLBFS_MAGIC {
		return false, nil
	}
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	return err != nil || seals&unix.F_SEAL_WRITE == 0, nil
}
