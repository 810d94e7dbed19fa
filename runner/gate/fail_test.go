package gate

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

// both runs a test with exits told by pidfds and by tracing.
func both(t *testing.T, f func(t *testing.T, o Options)) {
	for name, o := range map[string]Options{"pidfd": {}, "trace": {traceExits: true}} {
		t.Run(name, func(t *testing.T) { f(t, o) })
	}
}

// What the kernel refuses after it was allowed fails as it would anywhere, and
// is told.
func TestFailingExec(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, mode os.FileMode, content []byte) string {
		p := filepath.Join(dir, name)
		must.OK(t, os.WriteFile(p, content, mode))
		return p
	}
	program, err := os.ReadFile("/bin/true")
	must.OK(t, err)
	broken := slices.Clone(program)
	binary.LittleEndian.PutUint16(broken[54:], 3) // e_phentsize
	foreign := slices.Clone(program)
	binary.LittleEndian.PutUint16(foreign[18:], uint16(elf.EM_SPARC))
	busy := write("busy", 0o755, program)
	open, err := os.OpenFile(busy, os.O_WRONLY, 0)
	must.OK(t, err)
	defer open.Close()
	lost := strings.Replace(string(program), "/lib64/ld-linux", "/lib64/no-linux", 1)
	loop := filepath.Join(dir, "loop")
	must.OK(t, os.Symlink("loop", loop))
	for _, c := range []struct {
		name  string
		role  string
		args  []string
		want  string
		shown bool // to the gate's owner, who allows it
	}{
		{"broken program", "execve", []string{write("broken", 0o755, broken)}, "execve ENOEXEC", true},
		{"no linker", "execve", []string{write("lost", 0o755, []byte(lost))}, "execve ENOENT", true},
		{"busy", "execve", []string{busy}, "execve ETXTBSY", true},
		{"too big for its stack", "big", []string{"1000000", "/bin/true", "1000000"}, "limit ok\nexecve E2BIG", true},
		{"too big for all", "big", []string{strconv.Itoa(7 << 20), "/bin/true"}, "execve E2BIG", false},
		{"missing, and too big", "big", []string{strconv.Itoa(7 << 20), dir + "/missing"}, "execve ENOENT", false},
		{"missing behind a link", "execve", []string{"/proc/self/cwd/missing"}, "execve ENOENT", false},
		{"no program", "execve", []string{write("text", 0o755, []byte("echo hello\n"))}, "execve ENOEXEC", false},
		{"foreign", "execve", []string{write("foreign", 0o755, foreign)}, "execve ENOEXEC", false},
		{"empty", "execve", []string{write("empty", 0o755, nil)}, "execve ENOEXEC", false},
		{"not executable", "execve", []string{write("plain", 0o644, program)}, "execve EACCES", false},
		{"a folder", "execve", []string{dir}, "execve EACCES", false},
		{"a file as folder", "execve", []string{busy + "/x"}, "execve ENOTDIR", false},
		{"a file with a slash", "execve", []string{busy + "/"}, "execve ENOTDIR", false},
		{"missing", "execve", []string{dir + "/missing"}, "execve ENOENT", false},
		{"no name", "execve", []string{""}, "execve ENOENT", false},
		{"too long", "execve", []string{"/" + strings.Repeat("x", 5000)}, "execve ENAMETOOLONG", false},
		{"a loop", "execve", []string{loop}, "execve ELOOP", false},
		{"no interpreter", "execve", []string{write("s1", 0o755, []byte("#!/nonexistent/sh\n"))}, "execve ENOENT", false},
		{"its own interpreter", "execve", []string{write("s2", 0o755, []byte("#!"+dir+"/s2\n"))}, "execve ELOOP", false},
		{"a pipe", "execve", []string{fifo(t, dir)}, "execve EACCES", false},
		{"bad descriptors", "execveat", []string{"baddir", "/bin/true"}, "execveat EBADF\nexecveat ENOTDIR\nexecveat ENOENT\nexecveat EACCES", false},
		{"unknown flags", "execveat", []string{"flags", "/bin/true"}, "execveat EINVAL", false},
		{"a link not to be followed", "execveat", []string{"nofollow", "/bin/sh"}, "execveat ELOOP", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			native := start(t, setup{role: c.role, args: c.args, dir: dir, skip: "native"})
			native.wait()
			both(t, func(t *testing.T, o Options) {
				b := start(t, setup{role: c.role, args: c.args, dir: dir, options: o})
				if code := b.wait(); code != 0 {
					t.Errorf("it ended with %d", code)
				}
				if got := strings.TrimSpace(b.out.String()); got != c.want || got != strings.TrimSpace(native.out.String()) {
					t.Errorf("it said %q, want %q; without the gate %q", got, c.want, native.out.String())
				}
				if got := len(b.seen()) == 2; got != c.shown {
					t.Errorf("%d execs were shown", len(b.seen()))
				}
				if c.shown {
					b.oneFailure()
				} else if len(b.failures()) > 0 {
					t.Errorf("failures: %q", b.failures())
				}
				// The process that failed to exec goes on and ends as what it was.
				if x := b.exitOf(b.seen()[0]); !x.Known || x.Code != 0 {
					t.Errorf("its exit: %+v", x)
				}
			})
		})
	}
}

func fifo(t *testing.T, dir string) string {
	t.Helper()
	p := filepath.Join(dir, "fifo")
	must.OK(t, unix.Mkfifo(p, 0o755))
	return p
}

// Threads that exec at the same time get in each other's way: the kernel puts
// one off and calls again. Each attempt is shown once all the same.
func TestFailingExecsAtOnce(t *testing.T) {
	program, err := os.ReadFile("/bin/true")
	must.OK(t, err)
	binary.LittleEndian.PutUint16(program[54:], 3) // e_phentsize
	broken := filepath.Join(t.TempDir(), "broken")
	must.OK(t, os.WriteFile(broken, program, 0o755))
	both(t, func(t *testing.T, o Options) {
		b := start(t, setup{role: "failers", args: []string{broken}, options: o})
		b.wait()
		if b.out.String() != "wrong 0\n" {
			t.Errorf("it said %q", b.out.String())
		}
		b.eventually("all have failed", func() bool { return len(b.failures()) >= 100 })
		if n, m := len(b.seen())-1, len(b.failures()); n != 100 || m != 100 {
			t.Errorf("of 100 attempts %d were shown and %d failed", n, m)
		}
	})
}
