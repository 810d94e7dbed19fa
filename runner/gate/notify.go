package gate

import (
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Requests of a listener, linux/seccomp.h; the unix package has the first two.
const (
	ioctlNotifyIDValid  = 0x40082102
	ioctlNotifySetFlags = 0x40082104
)

// notification is struct seccomp_notif. TID is in the reader's pid namespace.
type notification struct {
	ID    uint64
	TID   uint32
	Flags uint32
	Nr    int32
	Arch  uint32
	IP    uint64
	Args  [6]uint64
}

// response is struct seccomp_notif_resp.
type response struct {
	ID    uint64
	Val   int64
	Error int32
	Flags uint32
}

// listener is the supervisor's end of a filter. Its methods may be called
// from several goroutines, as long as it isn't closed meanwhile.
type listener struct {
	fd   int
	file *os.File
}

// listen makes a listener of a file, which it owns. Go's own poller waits for it,
// so that no thread has to.
func listen(file *os.File) (listener, error) {
	defer file.Close()
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		procDir(fd).close()
		return listener{}, fmt.Errorf("cannot wait for execs: %w", err)
	}
	return listener{fd: fd, file: os.NewFile(uintptr(fd), "listener")}, nil
}

// errOver says that the last process under the filter is gone.
var errOver = errors.New("nobody is left under the filter")

// wait waits for a notification.
func (l listener) wait() (err error) {
	e := whenReadable(l.file, func() bool {
		ready := []unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}}
		if k, e := unix.Poll(ready, 0); k == 0 || e != nil {
			return false
		}
		if ready[0].Revents&unix.POLLIN == 0 {
			err = errOver
		}
		return true
	})
	return errors.Join(err, e)
}

// end makes wait fail with os.ErrDeadlineExceeded.
func (l listener) end() { _ = l.file.SetReadDeadline(time.Unix(1, 0)) }

// whenReadable calls f now and whenever the file may have become readable, until
// it says yes or the file's deadline has passed.
func whenReadable(file *os.File, f func() bool) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	return conn.Read(func(uintptr) bool { return f() })
}

func (l listener) ioctl(request uintptr, arg unsafe.Pointer) error {
	for {
		_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), request, uintptr(arg))
		switch e {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return e
		}
	}
}

// wakeUpInPlace asks the kernel to run the two sides of a notification on the
// same processor, which saves a good part of its cost (Linux 6.6; no matter
// where it is missing).
func (l listener) wakeUpInPlace() {
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), ioctlNotifySetFlags, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
}

// receive takes the next notification; ok is false when the one that was
// there went away again.
func (l listener) receive() (n notification, ok bool, err error) {
	// A kernel with a larger struct writes more than we know of.
	var buffer [32]uint64
	err = l.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&buffer))
	if errors.Is(err, unix.ENOENT) {
		return n, false, nil
	}
	if err != nil {
		return n, false, err
	}
	return *(*notification)(unsafe.Pointer(&buffer)), true, nil
}

// valid says whether the thread of a notification still waits for its answer.
// Asked after something was read by its thread id, a yes means that it was
// read from that thread.
func (l listener) valid(id uint64) bool {
	return l.ioctl(ioctlNotifyIDValid, unsafe.Pointer(&id)) == nil
}

// proceed lets the system call happen.
func (l listener) proceed(id uint64) error {
	r := response{ID: id, Flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	return l.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
}

// fail makes the system call fail.
func (l listener) fail(id uint64, e unix.Errno) error {
	r := response{ID: id, Error: -int32(e)}
	return l.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
}
