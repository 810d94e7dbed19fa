package gate

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

func TestReasonGoesWhereTheProgramWrites(t *testing.T) {
	b := start(t, setup{
		args:   []string{"sh", "-c", "echo first >err.txt; /bin/echo hello 2>>err.txt; /bin/ls 2>&-; echo done"},
		decide: denyAll("because"),
	})
	b.wait()
	got, err := os.ReadFile(filepath.Join(b.dir, "err.txt"))
	must.OK(t, err)
	if !strings.HasPrefix(string(got), "first\nstepbox: denied: because\n") {
		t.Errorf("the file has %q", got)
	}
	if b.out.String() != "done\n" {
		t.Errorf("it said %q", b.out.String())
	}
}

// Whoever reads a denied program's errors may not do so: the gate goes on.
func TestReasonNeverWaits(t *testing.T) {
	full, reader := fullPipe(t)
	defer reader.Close()
	master, slave, err := pty.Open()
	must.OK(t, err)
	defer master.Close()
	if err := fill(slave); err != nil { // nobody reads from the master
		t.Fatal(err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must.OK(t, err)
	socket, peer := os.NewFile(uintptr(pair[0]), "socket"), os.NewFile(uintptr(pair[1]), "peer")
	defer peer.Close()
	must.OK(t, fill(socket))
	for name, stderr := range map[string]*os.File{"pipe": full, "terminal": slave, "socket": socket} {
		t.Run(name, func(t *testing.T) {
			before := time.Now()
			b := start(t, setup{role: "execve", args: []string{"/bin/echo", "hello"}, decide: denyAll("because"), stderr: stderr})
			b.wait()
			if b.out.String() != "execve EACCES\n" {
				t.Errorf("it said %q", b.out.String())
			}
			if d := time.Since(before); d > patience/2 {
				t.Errorf("it took %v", d)
			}
		})
		stderr.Close()
	}
}

// fullPipe is a pipe that takes no more bytes.
func fullPipe(t *testing.T) (w, r *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	must.OK(t, err)
	must.OK(t, fill(w))
	return w, r
}

// fill writes to a file until it would wait, and leaves it such that writing waits.
func fill(f *os.File) error {
	own, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(own)
	if err := unix.SetNonblock(own, true); err != nil {
		return err
	}
	for size := 4096; size > 0; {
		_, err := unix.Write(own, make([]byte, size))
		if errors.Is(err, unix.EAGAIN) {
			size /= 2
		} else if err != nil {
			return err
		}
	}
	return unix.SetNonblock(own, false)
}

// A reason is never written where writing is a command: the gate has rights
// that the agent lacks.
func TestReasonIsNoCommand(t *testing.T) {
	fd, err := unix.Open("/proc/self/oom_score_adj", unix.O_RDWR|unix.O_CLOEXEC, 0)
	must.OK(t, err)
	defer unix.Close(fd)
	if !acts(fd) {
		t.Error("a file of /proc counts as an ordinary one")
	}
	f, err := os.CreateTemp(t.TempDir(), "")
	must.OK(t, err)
	defer f.Close()
	if acts(int(f.Fd())) {
		t.Error("an ordinary file counts as one of the kernel's")
	}
}

func TestReasonOnTerminal(t *testing.T) {
	master, slave, err := pty.Open()
	must.OK(t, err)
	defer master.Close()
	b := start(t, setup{args: []string{"sh", "-c", "/bin/echo hello"}, decide: denyAll("because"), stderr: slave, stdin: slave})
	slave.Close()
	var got bytes.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(&got, master) // ends with EIO when the last program is gone
	}()
	b.wait()
	<-done
	if !strings.Contains(got.String(), "stepbox: denied: because\r\n") {
		t.Errorf("the terminal has %q", got.String())
	}
	if !b.seen()[0].Open || b.seen()[0].Stdin != 0 {
		t.Error("its standard input isn't seen to be a terminal")
	}
}

func FuzzMessage(f *testing.F) {
	f.Add("no")
	f.Add("a\nb\x1b[2J\u202e\xff")
	f.Add(strings.Repeat("ä", 400))
	f.Fuzz(func(t *testing.T, reason string) {
		m := message(reason)
		if !bytes.HasPrefix(m, []byte(front)) || m[len(m)-1] != '\n' || bytes.Count(m, []byte("\n")) != 1 {
			t.Errorf("%q isn't a line", m)
		}
		if !utf8.Valid(m) || bytes.ContainsAny(m, "\x1b\r\t\x00") || len(m) > maxMessage+len(front+"\n") {
			t.Errorf("%q isn't fit for a terminal or too long", m)
		}
	})
}
