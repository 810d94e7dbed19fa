package gate

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

// What the gate finds is what the kernel runs, however a program is named: the
// check of the image would kill the process otherwise.
func TestWaysToNameAProgram(t *testing.T) {
	dir := t.TempDir()
	sub := filepath.Join(dir, "a", "b")
	must.OK(t, os.MkdirAll(sub, 0o755))
	prog := filepath.Join(sub, "prog")
	copyFile(t, prog, "/bin/echo")
	script := filepath.Join(sub, "script")
	must.OK(t, os.WriteFile(script, []byte("#!/bin/sh -e\necho \"$0\" \"$@\"\n"), 0o755))
	for link, to := range map[string]string{
		"link": "prog", "up": "../b/prog", "absolute": prog, "chain": "link", "out": "../../../" + filepath.Base(dir) + "/a/b/prog",
		"folder": "../b", "scriptlink": "script", "self": "/proc/self/cwd/prog", "top": "/../../.." + prog,
	} {
		must.OK(t, os.Symlink(to, filepath.Join(sub, link)))
	}
	for _, c := range []struct {
		name string
		role string
		args []string
		want string // what it says
		prog string // the resolved path, if it isn't prog
	}{
		{"absolute", "execve", []string{prog, "x"}, "x", ""},
		{"relative", "execve", []string{"./prog", "x"}, "x", ""},
		{"bare", "execve", []string{"prog", "x"}, "x", ""},
		{"dots", "execve", []string{"../b/./..//b/prog", "x"}, "x", ""},
		{"link", "execve", []string{"link", "x"}, "x", ""},
		{"link up", "execve", []string{"up", "x"}, "x", ""},
		{"absolute link", "execve", []string{"absolute", "x"}, "x", ""},
		{"chain", "execve", []string{"chain", "x"}, "x", ""},
		{"link out", "execve", []string{"out", "x"}, "x", ""},
		{"through a link", "execve", []string{"folder/folder/prog", "x"}, "x", ""},
		{"beyond the root", "execve", []string{strings.Repeat("/..", 30) + prog, "x"}, "x", ""},
		{"relative beyond the root", "execve", []string{strings.Repeat("../", 30) + prog, "x"}, "x", ""},
		{"a link beyond the root", "execve", []string{"top", "x"}, "x", ""},
		{"own folder in proc", "execve", []string{"/proc/self/cwd/prog", "x"}, "x", ""},
		{"thread's folder in proc", "execve", []string{"/proc/thread-self/cwd/prog", "x"}, "x", ""},
		{"own root in proc", "execve", []string{"/proc/self/root" + prog, "x"}, "x", ""},
		{"a link to proc", "execve", []string{"self", "x"}, "x", ""},
		{"script", "execve", []string{"./script", "x"}, "./script x", script},
		{"link to a script", "execve", []string{"scriptlink", "x"}, "scriptlink x", script},
		{"descriptor", "execveat", []string{"empty", prog}, "one", ""},
		{"descriptor without rights", "execveat", []string{"path", prog}, "one", ""},
		{"from a folder", "execveat", []string{"dir", filepath.Dir(sub), "b/prog"}, "one", ""},
		{"from a folder, up", "execveat", []string{"dir", sub, "../b/prog"}, "one", ""},
		{"from a folder, absolute", "execveat", []string{"dir", "/", prog}, "one", ""},
		{"memory", "execveat", []string{"memory", "/bin/echo"}, "one", "/memfd:prog (deleted)"},
		{"only a check", "execveat", []string{"check", prog}, "", "-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			native := start(t, setup{role: c.role, args: c.args, dir: sub, skip: "native"})
			native.wait()
			b := start(t, setup{role: c.role, args: c.args, dir: sub})
			b.wait()
			if c.prog == "-" { // not known to every kernel
				c.want = strings.TrimSpace(native.out.String())
			}
			if got := strings.TrimSpace(b.out.String()); got != c.want || b.out.String() != native.out.String() {
				t.Errorf("it said %q, want %q; without the gate %q", got, c.want, native.out.String())
			}
			want := c.prog
			if want == "" {
				want = prog
			}
			if c.prog == "-" {
				if len(b.seen()) != 1 {
					t.Error("a check was shown")
				}
				return
			}
			last := b.seen()[len(b.seen())-1]
			if last.Program.Path != want || last.Cwd != sub {
				t.Errorf("it was resolved to %q in %q, want %q", last.Program.Path, last.Cwd, want)
			}
		})
	}
}

// A working directory that was removed, and one that has another's name now.
func TestLostWorkingDirectory(t *testing.T) {
	dir := t.TempDir()
	b := start(t, setup{args: []string{"sh", "-c", "mkdir d; cp /bin/echo d/prog; cd d; rm prog; cd ..; mkdir e; cd e; rmdir ../e; mkdir '../e (deleted)'; cp /bin/echo '../e (deleted)/prog'; /bin/echo a; ./prog b; echo $?"}, dir: dir})
	b.wait()
	if b.out.String() != "a\n127\n" {
		t.Errorf("it said %q", b.out.String())
	}
	if e := b.find("echo"); !strings.HasSuffix(e.Cwd, "/e (deleted)") {
		t.Errorf("in %q", e.Cwd)
	}
}

// A process that has changed its root sees other files by the same names.
func TestChangedRoot(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, os.MkdirAll(filepath.Join(dir, "root", "bin"), 0o755))
	copyFile(t, filepath.Join(dir, "root", "bin", "prog"), "/proc/self/exe") // static or not, it resolves
	must.OK(t, os.Symlink("/bin/prog", filepath.Join(dir, "root", "link")))
	for _, path := range []string{"/bin/prog", "link", "/../../link"} {
		b := start(t, setup{role: "chroot", args: []string{filepath.Join(dir, "root"), path}, decide: func(e *Exec) {
			if e.Path == path {
				e.Deny("seen")
				return
			}
			e.Allow()
		}})
		b.wait()
		if len(b.seen()) != 2 || b.seen()[1].Program.Path != filepath.Join(dir, "root", "bin", "prog") {
			t.Errorf("%q: shown were %d, the last as %+v; it said %q", path, len(b.seen()), b.seen()[len(b.seen())-1].Program, b.out.String())
		}
	}
}

func init() {
	roles["chroot"] = func(args []string) {
		if err := unix.Chroot(args[0]); err != nil {
			say("chroot", err)
		}
		if err := unix.Chdir("/"); err != nil {
			say("chdir", err)
		}
		say("execve", unix.Exec(args[1], args[1:], clean()))
	}
}

// The first line of a script means to the gate what it means to the kernel.
func TestScripts(t *testing.T) {
	dir := t.TempDir()
	echo := filepath.Join(dir, "e") // short, to fit into a line
	copyFile(t, echo, "/bin/echo")
	inner := filepath.Join(dir, "inner")
	must.OK(t, os.WriteFile(inner, []byte("#!"+echo+" in\n"), 0o755))
	long := strings.Repeat("y", 300)
	for i, head := range []string{
		"#!" + echo + "\n", "#!" + echo, "#! " + echo + " \n", "#!\t" + echo + "\t\t\n", "#!" + echo + " a b  c \nrest",
		"#!" + echo + " a", "#!" + echo + " " + long, "#!" + echo + " " + long + "\n", "#!/" + long + "\n", "#!/" + long,
		"#!\n", "#!", "#! \n", "#!   ", "#!" + echo + "\x00x\n", "#!" + echo + " a\x00b\n", "#!" + echo + " \x00\n",
		"#!" + echo + "\r\n", "#!" + inner + " x y\n", "#!" + inner + "\n", "#!e\n", "#!./e a\n", "#!" + strings.Repeat(" ", 260) + echo + "\n",
		"#!" + echo + strings.Repeat(" ", 260) + "a\n", "#!" + echo + strings.Repeat(" ", 251-len(echo)) + "abcdef\n",
		"#!" + strings.Repeat(" ", 253-len(echo)) + echo, "#!" + strings.Repeat(" ", 254-len(echo)) + echo,
		"#!" + strings.Repeat(" ", 253-len(echo)) + echo + "\n", "#!" + strings.Repeat(" ", 254-len(echo)) + echo + "\n",
		"\x7fELF", "# !" + echo,
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			script := filepath.Join(dir, fmt.Sprint("s", i))
			must.OK(t, os.WriteFile(script, []byte(head), 0o755))
			args := []string{"./" + filepath.Base(script), "one", "two words"}
			native := start(t, setup{role: "execve", args: args, dir: dir, skip: "native"})
			native.wait()
			b := start(t, setup{role: "execve", args: args, dir: dir})
			b.wait()
			if !bytes.Equal(b.out.Bytes(), native.out.Bytes()) || len(b.failures()) > 0 {
				t.Errorf("%q: it said %q, without the gate %q; failures %q", cut([]string{head}), cut([]string{b.out.String()}), cut([]string{native.out.String()}), b.failures())
			}
		})
	}
}

// Arguments too many to be shown are still all covered by the digest.
func TestLargeArguments(t *testing.T) {
	digests := map[[32]byte]bool{}
	for _, size := range []int{1 << 10, 1_500_000, 1_500_100} {
		b := start(t, setup{role: "big", args: []string{strconv.Itoa(size), "/bin/true"}})
		if code := b.wait(); code != 0 || b.out.Len() > 0 {
			t.Errorf("it ended with %d and said %q", code, b.out.String())
		}
		e := b.seen()[1]
		if e.Truncated != (size > keepArgv) || len(b.failures()) > 0 {
			t.Errorf("%d bytes are cut off: %v; failures %q", size, e.Truncated, b.failures())
		}
		kept := 0
		for _, a := range e.Argv {
			kept += len(a) + 1
		}
		if kept > keepArgv+1 {
			t.Errorf("%d bytes were kept", kept)
		}
		digests[e.Digest] = true
	}
	if len(digests) != 3 {
		t.Errorf("%d digests of three lists", len(digests))
	}
}

// However large an environment is, what its owner wants to see of it is kept, or nothing runs.
func TestLargeEnvironment(t *testing.T) {
	telling := func(v string) bool { return strings.HasPrefix(v, "LD_") }
	var junk []string
	for i := range 200 {
		junk = append(junk, fmt.Sprintf("A%d=%01000d", i, 0))
	}
	for _, c := range []struct {
		last string
		size int
		runs bool
	}{{"LD_PRELOAD=/x", 0, true}, {"LD_PRELOAD=", 100_000, false}} {
		env := append(slices.Clone(junk), c.last+strings.Repeat("a", c.size))
		b := start(t, setup{args: []string{"/usr/bin/env", "/bin/true"}, env: env, options: Options{Telling: telling}})
		if code := b.wait(); (code == 0) != c.runs {
			t.Errorf("%d bytes: it ended with %d", c.size, code)
		}
		if seen := b.seen(); c.runs && (len(seen) != 2 || !seen[0].Truncated || !slices.Contains(seen[1].Env, c.last)) {
			t.Errorf("%d execs were seen", len(seen))
		}
	}
}

// Arguments are of any bytes, and may be none.
func TestOddArguments(t *testing.T) {
	b := start(t, setup{role: "odd", args: nil})
	b.wait()
	want := [][]string{{""}, {"", "", "a\nb", "\xff\xfe", ""}}
	var got [][]string
	for _, e := range b.seen()[1:] {
		got = append(got, e.Argv)
	}
	if !slices.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("shown were %q, want %q", got, want)
	}
	if e := b.seen()[2]; !slices.Equal(e.Env, []string{"", "A=1", "no equals sign"}) {
		t.Errorf("the environment is %q", e.Env)
	}
	if len(b.failures()) > 0 {
		t.Errorf("failures: %q", b.failures())
	}
}

func init() {
	roles["odd"] = func([]string) {
		run := func(argv, env []*byte) {
			pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
			if pid == 0 {
				execRaw("/bin/true", argv, env)
				unix.RawSyscall(unix.SYS_EXIT_GROUP, 1, 0, 0)
			}
			unix.Wait4(int(pid), nil, 0, nil)
		}
		run([]*byte{nil}, []*byte{nil})
		text := func(s string) *byte { return &cString(s)[0] }
		run([]*byte{text(""), text(""), text("a\nb"), text("\xff\xfe"), text(""), nil}, []*byte{text(""), text("A=1"), text("no equals sign"), nil})
	}
}

func TestUnreadableProgram(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root can read all")
	}
	prog := filepath.Join(t.TempDir(), "prog")
	copyFile(t, prog, "/bin/true")
	must.OK(t, os.Chmod(prog, 0o111))
	b := start(t, setup{role: "execve", args: []string{prog}})
	b.wait()
	if b.out.String() != "execve EACCES\n" || !strings.Contains(b.err.String(), front+"cannot check") || len(b.logged()) != 1 {
		t.Errorf("it said %q and %q; logs %q", b.out.String(), b.err.String(), b.logged())
	}
}
