package seqpacket

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair makes two connected ends.
func pair(t *testing.T) (a, b *Conn) {
	t.Helper()
	a, theirs, err := Pair()
	must.OK(t, err)
	defer theirs.Close()
	number, err := Number(theirs)
	must.OK(t, err)
	fd, err := unix.FcntlInt(uintptr(number), unix.F_DUPFD_CLOEXEC, 0)
	must.OK(t, err)
	if b, err = New(fd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must.OK(t, err)
	return len(entries)
}

func TestMessages(t *testing.T) {
	a, b := pair(t)
	for _, text := range []string{"one", "two"} {
		must.OK(t, a.Send([]byte(text)))
	}
	buffer := make([]byte, 16)
	for _, want := range []string{"one", "two"} {
		if n, files, err := b.Receive(buffer, 0); err != nil || len(files) != 0 || string(buffer[:n]) != want {
			t.Errorf("received %q, %v, %v", buffer[:n], files, err)
		}
	}
	a.Close()
	if _, _, err := b.Receive(buffer, 0); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	if err := b.Send([]byte("x")); !errors.Is(err, unix.EPIPE) {
		t.Errorf("sending to nobody: %v", err)
	}
}

func TestFiles(t *testing.T) {
	a, b := pair(t)
	r, w, err := os.Pipe()
	must.OK(t, err)
	defer r.Close()
	must.OK(t, a.Send([]byte("pipe"), w))
	w.Close()
	_, files, err := b.Receive(make([]byte, 16), 1)
	if err != nil || len(files) != 1 {
		t.Fatalf("received %v, %v", files, err)
	}
	flags, err := unix.FcntlInt(files[0].Fd(), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("the file would be inherited: %v", err)
	}
	if _, err := files[0].WriteString("through"); err != nil {
		t.Fatal(err)
	}
	files[0].Close()
	if text, err := io.ReadAll(r); err != nil || string(text) != "through" {
		t.Errorf("read %q, %v", text, err)
	}
}

// TestHostilePeer: what isn't wanted is an error, and its files don't stay open.
func TestHostilePeer(t *testing.T) {
	a, b := pair(t)
	null, err := os.Open("/dev/null")
	must.OK(t, err)
	defer null.Close()
	before := openFiles(t)
	for name, send := range map[string]func() error{
		"too large":            func() error { return a.Send([]byte(strings.Repeat("x", 17))) },
		"too large with files": func() error { return a.Send([]byte(strings.Repeat("x", 17)), null) },
		"two files":            func() error { return a.Send([]byte("x"), null, null) },
		"many files":           func() error { return a.Send([]byte("x"), null, null, null, null, null, null, null, null) },
	} {
		must.OK(t, send())
		if n, files, err := b.Receive(make([]byte, 16), 1); err == nil {
			t.Errorf("%s: received %d bytes, %v", name, n, files)
		}
	}
	must.OK(t, a.Send([]byte("x"), null))
	if _, _, err := b.Receive(make([]byte, 16), 0); err == nil {
		t.Error("a file that nobody wants is received")
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d files stay open", after-before)
	}
}

func TestNotASocket(t *testing.T) {
	fds := make([]int, 2)
	must.OK(t, unix.Pipe2(fds, unix.O_CLOEXEC))
	defer unix.Close(fds[1])
	if _, err := New(fds[0]); err == nil {
		t.Error("a pipe is taken for a socket")
	}
	stream, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must.OK(t, err)
	defer unix.Close(stream[1])
	if _, err := New(stream[0]); err == nil {
		t.Error("a stream is taken for packets")
	}
}

func TestDeadlineAndClose(t *testing.T) {
	a, _ := pair(t)
	must.OK(t, a.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
	if _, _, err := a.Receive(make([]byte, 1), 0); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
	must.OK(t, a.SetReadDeadline(time.Time{}))
	done := make(chan error)
	go func() {
		_, _, err := a.Receive(make([]byte, 1), 0)
		done <- err
	}()
	a.Close()
	if err := <-done; !errors.Is(err, os.ErrClosed) {
		t.Errorf("after closing: %v", err)
	}
}
