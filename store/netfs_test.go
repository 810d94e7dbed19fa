package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A network filesystem is refused before anything is written to it. FUSE
// stands for them all, since it is the one that can be had without a network.
func TestNetworkFilesystem(t *testing.T) {
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		t.Skipf("this user can't mount what the test needs: %v", err)
	} else if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	inNamespace(t, "fuse", t.TempDir())
}

// onFUSE mounts the emptiest filesystem under the name of sshfs.
func onFUSE(args []string) error {
	dir := args[0]
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	opts := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd)
	if err := unix.Mount("host:/", dir, "fuse.sshfs", unix.MS_NOSUID|unix.MS_NODEV, opts); err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- serveFUSE(fd) }()
	_, err = Open(context.Background(), dir)
	_, rerr := OpenReadOnly(context.Background(), dir)
	if err := errors.Join(
		wants("Open", err, ErrNetwork, "STEPBOX_DATA", "fuse.sshfs"),
		unix.Unmount(dir, unix.MNT_DETACH),
	); err != nil {
		return err
	}
	if rerr == nil {
		return errors.New("it was opened for reading")
	}
	return <-served
}

// serveFUSE answers just enough for stat(2) and statfs(2) of the root
// (linux/fuse.h), until it is unmounted.
func serveFUSE(fd int) error {
	const (
		getattr, statfs, initialise, forget, batchForget, interrupt = 3, 17, 26, 2, 42, 36
	)
	buf := make([]byte, 1<<18)
	for {
		n, err := unix.Read(fd, buf)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENOENT):
			continue
		case errors.Is(err, unix.ENODEV):
			return unix.Close(fd)
		case err != nil:
			return err
		case n < 40:
			return fmt.Errorf("a request of %d bytes", n)
		}
		var out bytes.Buffer
		errno := int32(0)
		switch binary.NativeEndian.Uint32(buf[4:]) {
		case initialise:
			out.Write(make([]byte, 64))
			b := out.Bytes()
			binary.NativeEndian.PutUint32(b[0:], 7)
			binary.NativeEndian.PutUint32(b[4:], 31)
			binary.NativeEndian.PutUint32(b[20:], 1<<16) // the largest write
		case getattr:
			out.Write(make([]byte, 104))
			b := out.Bytes()
			binary.NativeEndian.PutUint64(b[16:], 1)       // ino
			binary.NativeEndian.PutUint32(b[76:], 0o40700) // mode
			binary.NativeEndian.PutUint32(b[80:], 2)       // nlink
			binary.NativeEndian.PutUint32(b[84:], uint32(os.Geteuid()))
		case statfs:
			out.Write(make([]byte, 80))
		case forget, batchForget, interrupt:
			continue
		default:
			errno = -int32(unix.ENOSYS)
		}
		h := make([]byte, 16)
		binary.NativeEndian.PutUint32(h[0:], uint32(16+out.Len()))
		binary.NativeEndian.PutUint32(h[4:], uint32(errno))
		copy(h[8:], buf[8:16]) // unique
		if _, err := unix.Write(fd, append(h, out.Bytes()...)); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
}

func TestMountType(t *testing.T) {
	for dir, want := range map[string]string{"/proc": "proc", "/sys": "sysfs"} {
		if got, err := mountType(dir); got != want {
			t.Errorf("%s is on %q, %v", dir, got, err)
		}
	}
	if _, err := mountType(t.TempDir()); err != nil {
		t.Error(err)
	}
}
