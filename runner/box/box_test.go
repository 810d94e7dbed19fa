package box

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"stepbox/runner/holder"
	"stepbox/session/e2e/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestEscape reads back what overlayfs would: see ovl_next_opt and
// ovl_parse_layer in the kernel.
func TestEscape(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		paths := rapid.SliceOfN(rapid.StringOf(rapid.SampledFrom([]rune(`a/\:, =é`))), 1, 4).Draw(t, "paths")
		escaped := make([]string, len(paths))
		for i, path := range paths {
			escaped[i] = escape(path)
		}
		option := "lowerdir=" + strings.Join(escaped, ":")
		var got []string
		var part strings.Builder
		for rest := strings.TrimPrefix(option, "lowerdir="); ; {
			if rest == "" {
				got = append(got, part.String())
				break
			}
			c := rest[0]
			rest = rest[1:]
			switch c {
			case '\\':
				part.WriteByte(rest[0])
				rest = rest[1:]
			case ',':
				t.Fatalf("%q ends early", option)
			case ':':
				got = append(got, part.String())
				part.Reset()
			default:
				part.WriteByte(c)
			}
		}
		if !slices.Equal(got, paths) {
			t.Fatalf("%q is read as %q", paths, got)
		}
	})
}

func TestParseStatus(t *testing.T) {
	line := func(name string) []byte {
		fields := []string{"S", "7", "42", "42", "34816", "42", "4194304", "1", "0", "0", "0", "150", "50", "0", "0", "20", "0", "3", "0", "123456", "1000000", "10"}
		return []byte("42 (" + name + ") " + strings.Join(append(fields, "0", "0"), " ") + "\n")
	}
	for _, name := range []string{"sh", "a) R 1 (b", "", ")", "x\ny", "((("} {
		got, err := parseStatus(42, line(name))
		want := Status{PID: 42, Name: name, State: 'S', Parent: 7, Start: 123456, CPU: 2 * time.Second, Memory: 10 * int64(os.Getpagesize()), Count: 3}
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", name, got, err)
		}
	}
	for _, text := range []string{"", "42", "42 (sh", "42 (sh) S 1", ") (", "42 (sh) SS " + strings.Repeat("1 ", 30)} {
		if got, err := parseStatus(42, []byte(text)); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func FuzzParseStatus(f *testing.F) {
	text, err := os.ReadFile("/proc/self/stat")
	must.OK(f, err)
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) { _, _ = parseStatus(1, text) })
}

func TestOwnStatus(t *testing.T) {
	status, err := ReadStatus(os.Getpid())
	if err != nil || status.Parent != os.Getppid() || status.Start == 0 || status.Memory == 0 {
		t.Errorf("%+v, %v", status, err)
	}
	if _, err := ReadStatus(1 << 30); err == nil {
		t.Error("a process that can't exist has a state")
	}
	inode, err := PIDNamespace(os.Getpid())
	must.OK(t, err)
	if members, err := Members(inode, func(int) bool { return true }); err != nil || !slices.Contains(members, os.Getpid()) {
		t.Errorf("members are %v, %v", members, err)
	}
	if !slices.Contains(Threads(os.Getpid()), os.Getpid()) {
		t.Error("a process isn't among its threads")
	}
}

func TestSubmountsOf(t *testing.T) {
	var mounts []*mountinfo.Info
	for _, point := range []string{"/", "/a", "/a/b", "/a/bc/d", "/ab", "/a b"} {
		mounts = append(mounts, &mountinfo.Info{Mountpoint: point})
	}
	for folder, want := range map[string][]string{"/a": {"/a/b", "/a/bc/d"}, "/a/b": nil, "/a b": nil, "/c": nil} {
		if got := submounts(mounts, folder); !slices.Equal(got, want) {
			t.Errorf("%q: %q", folder, got)
		}
	}
}

func TestHide(t *testing.T) {
	workspace, front := t.TempDir(), filepath.Join(t.TempDir(), "front")
	for _, dir := range []string{"a", "a/b"} {
		must.OK(t, os.Mkdir(filepath.Join(workspace, dir), 0o700))
	}
	for _, name := range []string{".env", "a/b/key"} {
		must.OK(t, os.WriteFile(filepath.Join(workspace, name), nil, 0o600))
	}
	must.OK(t, os.Symlink("a", filepath.Join(workspace, "link")))
	must.OK(t, os.Chmod(filepath.Join(workspace, "a"), 0o711))
	covered, err := hide(front, workspace, []string{".env", "a/b/key", "none", "link/b/key", ".env"})
	if err != nil || len(covered) != 0 {
		t.Fatalf("covered %v, %v", covered, err)
	}
	for _, name := range []string{".env", "a/b/key"} {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(front, name), &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != 0 {
			t.Errorf("%q isn't a whiteout: %+v, %v", name, st, err)
		}
	}
	if info, err := os.Stat(filepath.Join(front, "a")); err != nil || info.Mode().Perm() != 0o711 {
		t.Errorf("the folder looks different: %v, %v", info, err)
	}
	if _, err := os.Lstat(filepath.Join(front, "link")); err == nil {
		t.Error("something is made behind a link")
	}
	for _, path := range []string{"../x", "/etc/passwd", ".", ""} {
		if _, err := hide(front, workspace, []string{path}); err == nil {
			t.Errorf("%q is taken", path)
		}
	}
}

func TestListeningBelow(t *testing.T) {
	dir, err := os.MkdirTemp("", "stepbox-test-") // sockets want short paths
	must.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must.OK(t, err)
	defer unix.Close(fd)
	must.OK(t, unix.Bind(fd, &unix.SockaddrUnix{Name: filepath.Join(dir, "a socket")}))
	must.OK(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	if got, err := listeningBelow(dir); err != nil || !slices.Equal(got, []string{"a socket"}) {
		t.Errorf("%q, %v", got, err)
	}
	if err := refuseSockets(dir); err == nil || !strings.Contains(err.Error(), "a socket") {
		t.Errorf("the folder isn't refused: %v", err)
	}
	if err := refuseSockets(filepath.Join(dir, "file")); err != nil {
		t.Errorf("a file is refused: %v", err)
	}
}

// TestSelf: the copy runs, and nobody can change it.
func TestSelf(t *testing.T) {
	self, err := Self()
	must.OK(t, err)
	if again, err := Self(); err != nil || again != self {
		t.Errorf("it is made twice: %v", err)
	}
	if !sealed(self) {
		t.Error("it isn't sealed")
	}
	if _, err := self.Write([]byte("x")); err == nil {
		t.Error("it can be written")
	}
	path := "/proc/self/fd/" + strconv.Itoa(int(self.Fd()))
	if f, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
		if _, err := f.WriteAt([]byte("x"), 0); err == nil {
			t.Error("it can be reopened and written")
		}
		f.Close()
	}
	if err := unix.Ftruncate(int(self.Fd()), 0); err == nil {
		t.Error("it can be truncated")
	}
}

// TestSealWaits: a page that is in use for a while keeps nothing from being sealed.
// A pipe holds one here; in life it is the kernel, on a busy machine.
func TestSealWaits(t *testing.T) {
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	must.OK(t, err)
	defer unix.Close(fd)
	page := make([]byte, os.Getpagesize())
	if _, err := unix.Pwrite(fd, page, 0); err != nil {
		t.Fatal(err)
	}
	out, in, err := os.Pipe()
	must.OK(t, err)
	defer out.Close()
	defer in.Close()
	var start int64
	if n, err := unix.Splice(fd, &start, int(in.Fd()), nil, len(page), 0); err != nil || int(n) != len(page) {
		t.Fatalf("spliced are %d bytes: %v", n, err)
	}
	freed := make(chan error)
	go func() {
		for range 2 {
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != unix.EBUSY {
				freed <- fmt.Errorf("a page in use is no hindrance: %w", err)
				return
			}
		}
		_, err := io.ReadFull(out, page)
		freed <- err
	}()
	if err := addSeals(fd); err != nil {
		t.Error(err)
	}
	must.OK(t, <-freed)
	if have, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0); err != nil || have != seals {
		t.Errorf("the seals are %#x: %v", have, err)
	}
}

// TestCgroupsLeaveNothing: every folder is noted before any is made, so that
// one that was made by who died next isn't there for good.
func TestCgroupsLeaveNothing(t *testing.T) {
	var noted holder.Guard
	id := "box-test-" + strconv.Itoa(os.Getpid())
	c, err := MakeCgroups(t.Context(), id, Limits{Memory: 64 << 20, CPUs: 0.5, Pids: 10}, func(g holder.Guard) error {
		noted = g
		for _, folder := range g.Cgroups {
			if _, err := os.Stat(folder); err == nil {
				t.Errorf("%q was made before it was noted", folder)
			}
		}
		return nil
	})
	must.OK(t, err)
	for _, folder := range c.Folders() {
		if !slices.Contains(noted.Cgroups, folder) {
			t.Errorf("%q isn't noted", folder)
		}
	}
	for _, write := range c.ThawWrites() {
		if !slices.Contains(noted.Thaw, write) {
			t.Errorf("%+v isn't noted", write)
		}
	}
	t.Logf("%s: %+v", c.Source, c.InForce)
	if err := c.Guard().Clean(context.Background(), -1); err != nil {
		t.Error(err)
	}
	for _, folder := range c.Folders() {
		if _, err := os.Stat(folder); err == nil {
			t.Errorf("%q is left", folder)
		}
	}
}
