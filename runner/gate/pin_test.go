package gate

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

func init() {
	roles["memfd"] = playMemfd
	prepare["read-only"] = prepareReadOnly
}

// inMemory puts a program into a file in memory, with seals. Its descriptor is
// inherited.
func inMemory(program string, seals int) int {
	fd, err := unix.MemfdCreate("prog", unix.MFD_ALLOW_SEALING)
	if err != nil {
		die("memfd", err)
	}
	b, err := os.ReadFile(program)
	if err != nil {
		die("read", err)
	}
	if _, err := unix.Write(fd, b); err != nil {
		die("write", err)
	}
	if seals != 0 {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
			die("seal", err)
		}
	}
	return fd
}

// playMemfd runs a program in memory: by its descriptor, or as a script's
// interpreter.
func playMemfd(args []string) {
	seals := map[string]int{"none": 0, "write": unix.F_SEAL_WRITE, "future": unix.F_SEAL_FUTURE_WRITE, "others": unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL}[args[0]]
	path := fmt.Sprintf("/proc/self/fd/%d", inMemory("/bin/echo", seals))
	if args[1] == "interpreter" {
		if err := os.WriteFile("script", []byte("#!"+path+"\n"), 0o755); err != nil {
			die("write", err)
		}
		path = "./script"
	}
	say("execve", unix.Exec(path, []string{"name", "ran"}, clean()))
}

// What can be written while it runs isn't what was looked at: a program in
// memory must be sealed against writing.
func TestProgramInMemory(t *testing.T) {
	for _, as := range []string{"path", "interpreter"} {
		for seals, runs := range map[string]bool{"none": false, "write": true, "future": false, "others": false} {
			t.Run(as+" sealed "+seals, func(t *testing.T) {
				b := start(t, setup{role: "memfd", args: []string{seals, as}})
				b.wait()
				if ran := strings.Contains(b.out.String(), "ran\n"); ran != runs {
					t.Errorf("it said %q and %q", b.out.String(), b.err.String())
				}
				if !runs && (b.out.String() != "execve EACCES\n" || !strings.Contains(b.err.String(), "not sealed") || len(b.seen()) != 1 || len(b.logged()) != 1) {
					t.Errorf("it said %q and %q; %d execs were shown; logs %q", b.out.String(), b.err.String(), len(b.seen()), b.logged())
				}
			})
		}
	}
}

// mapped changes a file through a mapping that was there before, so that its
// times tell nothing.
func mapped(t *testing.T, path string) (change func(text string)) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must.OK(t, err)
	defer f.Close()
	m, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	must.OK(t, err)
	t.Cleanup(func() { unix.Munmap(m) })
	m[0] = '#' // from now on the kernel sees no more writes
	return func(text string) { copy(m, text) }
}

// inShell are the arguments of a shell.
func inShell(e *Exec) []string {
	if filepath.Base(e.Program.Path) == "dash" || filepath.Base(e.Path) == "sh" {
		return append(slices.Clone(e.Argv[1:]), "/dev/stdin")
	}
	return nil
}

// Every way to change a file behind what is held, between its being shown and
// its being approved, makes the approval void.
func TestChangedWhileHeld(t *testing.T) {
	const good, evil = "#!/bin/sh\necho it is good\n", "#!/bin/sh\necho it is evil\n"
	write := func(t *testing.T, path, text string) {
		t.Helper()
		must.OK(t, os.WriteFile(path, []byte(text), 0o755))
	}
	ways := map[string]func(t *testing.T, path string) (change func()){
		"in place": func(t *testing.T, path string) func() { return func() { write(t, path, evil) } },
		"by rename": func(t *testing.T, path string) func() {
			return func() {
				write(t, path+".new", evil)
				must.OK(t, os.Rename(path+".new", path))
			}
		},
		"with its times set back": func(t *testing.T, path string) func() {
			return func() {
				st, err := os.Stat(path)
				must.OK(t, err)
				write(t, path, evil)
				must.OK(t, os.Chtimes(path, st.ModTime(), st.ModTime()))
			}
		},
		"through a mapping": func(t *testing.T, path string) func() {
			change := mapped(t, path)
			return func() { change(evil) }
		},
		"by its link": func(t *testing.T, path string) func() {
			write(t, path+".good", good)
			write(t, path+".evil", evil)
			must.OK(t, os.Remove(path))
			must.OK(t, os.Symlink(path+".good", path))
			return func() {
				must.OK(t, os.Symlink(path+".evil", path+".link"))
				must.OK(t, os.Rename(path+".link", path))
			}
		},
		"not at all": func(t *testing.T, path string) func() { return func() {} },
	}
	for as, command := range map[string]string{"argument": "sh ./file", "script": "./file", "input": "sh <file"} {
		for way, prepare := range ways {
			t.Run(as+" "+way, func(t *testing.T) {
				dir, err := os.MkdirTemp("/dev/shm", "gate") // where times tell least
				if err != nil {
					t.Skip(err)
				}
				t.Cleanup(func() { os.RemoveAll(dir) })
				path := filepath.Join(dir, "file")
				write(t, path, good)
				change := prepare(t, path)
				first := true
				b := start(t, setup{
					args: []string{"sh", "-c", command + "; echo $?"}, dir: dir, options: Options{Scripts: inShell},
					decide: func(e *Exec) {
						if first {
							first = false
							e.Allow()
						}
					},
				})
				b.eventually("it is held", func() bool { return len(b.seen()) == 2 && b.seen()[1].shown() })
				e := b.seen()[1]
				if len(e.Unpinned) == 0 || !strings.Contains(strings.Join(e.Unpinned, "\n"), "read when it runs") {
					t.Errorf("nobody is told that the file is read later: %q", e.Unpinned)
				}
				e.Cover()
				change()
				e.Allow()
				b.wait()
				switch {
				case way == "not at all":
					if b.out.String() != "it is good\n0\n" {
						t.Errorf("it said %q and %q", b.out.String(), b.err.String())
					}
				case as == "input" && (way == "by rename" || way == "by its link"): // it is open already
					if b.out.String() != "it is good\n0\n" && b.out.String() != "126\n" {
						t.Errorf("it said %q and %q", b.out.String(), b.err.String())
					}
				case b.out.String() != "126\n" || !strings.HasPrefix(b.err.String(), front+"the file "):
					t.Errorf("it said %q and %q; failures %q", b.out.String(), b.err.String(), b.failures())
				default:
					b.oneFailure()
				}
			})
		}
	}
}

// A path among the arguments is what it was when it was shown: nothing, a link to what nobody can
// write, a name that looks like an option or has a line break in it, a name from another folder.
func TestArgumentBecomesAnother(t *testing.T) {
	const evil = "echo it is evil\n"
	for name, c := range map[string]struct {
		args   []string
		before func(t *testing.T, dir string)
	}{
		"absent":         {[]string{"sh", "./file"}, func(*testing.T, string) {}},
		"a link":         {[]string{"sh", "./file"}, func(t *testing.T, dir string) { must.OK(t, os.Symlink("/usr/bin/ldd", filepath.Join(dir, "file"))) }},
		"a folder":       {[]string{"sh", "./file"}, func(t *testing.T, dir string) { must.OK(t, os.Mkdir(filepath.Join(dir, "file"), 0o755)) }},
		"a dash":         {[]string{"sh", "--", "-file"}, func(*testing.T, string) {}},
		"a line break":   {[]string{"sh", "a\nfile"}, func(*testing.T, string) {}},
		"another folder": {[]string{"env", "-C", "sub", "sh", "file"}, func(t *testing.T, dir string) { must.OK(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755)) }},
	} {
		for _, changed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s changed %v", name, changed), func(t *testing.T) {
				dir := t.TempDir()
				c.before(t, dir)
				b := start(t, setup{
					args: c.args, dir: dir, decide: allowBut(c.args[0]), env: []string{prepareEnv + "=read-only"}, options: Options{Scripts: func(e *Exec) []string { return e.Argv[1:] }},
				})
				e := b.await(c.args[0])
				e.Cover()
				if changed {
					file := filepath.Join(dir, c.args[len(c.args)-1])
					if c.args[0] == "env" {
						file = filepath.Join(dir, "sub", "file")
					}
					must.OK(t, os.WriteFile(file+".new", []byte(evil), 0o755))
					_ = os.Remove(file) // a folder, which nothing can be renamed over
					must.OK(t, os.Rename(file+".new", file))
				}
				e.Allow()
				b.wait()
				if strings.Contains(b.out.String(), "evil") || changed != strings.Contains(b.err.String(), front+"the file ") {
					t.Errorf("it said %q and %q", b.out.String(), b.err.String())
				}
			})
		}
	}
}

// Standard input is what it was shown to be, whoever shares the descriptors and puts another there
// meanwhile, and what speaks is told from what only lies there.
func TestInputBecomesAnother(t *testing.T) {
	for _, c := range []struct {
		from, to string
		open     bool
	}{
		{"null", "null", false}, {"null", "pipe", false}, {"file", "file", false}, {"file", "null", false}, {"file", "socket", false}, {"closed", "closed", false}, {"closed", "pipe", false},
		{"pipe", "pipe", true}, {"pipe", "null", true}, {"socket", "socket", true}, {"proc", "proc", true}, {"inotify", "inotify", true}, {"event", "event", true}, {"random", "random", false}, {"full", "file", false},
		{"pipe that closes", "pipe that closes", true}, {"null that closes", "null that closes", false},
	} {
		t.Run(c.from+" to "+c.to, func(t *testing.T) {
			b := start(t, setup{role: "input", args: []string{c.from, c.to}, dir: t.TempDir(), decide: allowBut("true")})
			e := b.await("true")
			if e.Open != c.open {
				t.Errorf("others can speak by it: %v", e.Open)
			}
			if e.Given != (c.open || c.from == "file") {
				t.Errorf("others say what it reads: %v", e.Given)
			}
			e.Cover()
			must.OK(t, os.WriteFile(filepath.Join(b.dir, "shown"), nil, 0o644)) // now it puts the other there
			b.eventually("it is another", func() bool {
				_, err := os.Stat(filepath.Join(b.dir, "another"))
				return err == nil
			})
			e.Allow()
			b.wait()
			refused := c.from != c.to || c.from == "null that closes"
			if refused {
				b.oneFailure()
			}
			if got := strings.Join(b.failures(), "\n"); refused != strings.Contains(got, "its standard input or terminal was made another") {
				t.Errorf("failures %q", got)
			}
		})
	}
}

// allowBut lets all run but one program, which stays held.
func allowBut(name string) func(*Exec) {
	return func(e *Exec) {
		if filepath.Base(e.Path) != name {
			e.Allow()
		}
	}
}

func init() { roles["input"] = playInput }

// playInput runs true with one standard input, and puts another there while that is held.
func playInput(args []string) {
	put := func(what string) {
		fd, err, flags := -1, error(nil), 0
		var two [2]int
		switch what {
		case "pipe that closes":
			flags = unix.O_CLOEXEC
			err = unix.Pipe(two[:])
			fd = two[0]
		case "closed":
			_ = unix.Close(0)
			return
		case "null that closes":
			flags = unix.O_CLOEXEC
			fd, err = unix.Open("/dev/null", unix.O_RDONLY, 0)
		case "null", "full", "random":
			fd, err = unix.Open("/dev/"+what, unix.O_RDONLY, 0)
		case "file":
			fd, err = unix.Open("words", unix.O_RDONLY|unix.O_CREAT, 0o644)
		case "proc":
			fd, err = unix.Open("/proc/self/comm", unix.O_RDONLY, 0)
		case "pipe":
			err = unix.Pipe(two[:])
			fd = two[0]
		case "socket":
			two, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			fd = two[0]
		case "inotify":
			fd, err = unix.InotifyInit1(0)
		case "event":
			fd, err = unix.Eventfd(0, 0)
		}
		if err == nil && fd != 0 { // it isn't there already
			err = unix.Dup3(fd, 0, flags)
		}
		if err != nil {
			die("input", err)
		}
	}
	time.Sleep(time.Millisecond) // the runtime has its own descriptors after that
	put(args[0])
	go func() {
		for {
			if _, err := os.Stat("shown"); err == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if args[1] != args[0] {
			put(args[1])
		}
		_ = os.Mkdir("another", 0o755) // without a descriptor, which would be the one that is closed
		select {}
	}()
	// Not by way of package syscall, which lets no thread begin until it is over.
	path := fixed("/bin/true")
	argv, env := []*byte{&path[0], nil}, []*byte{nil}
	_, _, e := unix.Syscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(&path[0])), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&env[0])))
	say("execve", e)
}

// What comes through a pipe is known to nobody.
func TestScriptInPipe(t *testing.T) {
	b := start(t, setup{args: []string{"bash", "-c", "sh <(echo echo a)"}, options: Options{Scripts: inShell}})
	b.wait()
	e := b.find("sh")
	for _, o := range b.seen() {
		if len(o.Argv) == 2 && o.Argv[0] == "sh" {
			e = o
		}
	}
	if b.out.String() != "a\n" || !strings.Contains(strings.Join(e.Unpinned, "\n"), "pipes that it is given to read: /dev/fd/") {
		t.Errorf("it said %q; %q", b.out.String(), e.Unpinned)
	}
}

// An interpreter may run what is in a folder.
func TestScriptInFolder(t *testing.T) {
	b := start(t, setup{args: []string{"sh", "-c", "mkdir d; sh -c true d"}, options: Options{Scripts: inShell}})
	b.wait()
	e := b.seen()[len(b.seen())-1]
	if got := strings.Join(e.Unpinned, "\n"); !strings.Contains(got, "read when it runs") || !strings.Contains(got, b.dir+"/d") {
		t.Errorf("%q: %q", e.Argv, got)
	}
}

// What a digest stands for is contents too.
func TestCoverTellsContents(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	var sums [][32]byte
	for _, text := range []string{"echo a\n", "echo b\n"} {
		must.OK(t, os.WriteFile(path, []byte(text), 0o755))
		b := start(t, setup{args: []string{"sh", "./file"}, dir: dir, options: Options{Scripts: inShell}})
		b.wait()
		sums = append(sums, b.seen()[0].Cover())
	}
	if sums[0] == sums[1] {
		t.Error("two scripts have one digest")
	}
}

// prepareReadOnly makes the system's programs what they are in a session.
func prepareReadOnly(string) error {
	if err := unix.Mount("/usr", "/usr", "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs("/usr", &fs); err != nil {
		return err
	}
	keep := uintptr(fs.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME)
	return unix.Mount("", "/usr", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|keep, "")
}

// linkerOf is the dynamic linker that a program names.
func linkerOf(t *testing.T, program string) string {
	t.Helper()
	f, err := elf.Open(program)
	must.OK(t, err)
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			b := make([]byte, p.Filesz)
			if _, err := p.ReadAt(b, 0); err != nil {
				t.Fatal(err)
			}
			return strings.TrimRight(string(b), "\x00")
		}
	}
	t.Skipf("%s has no dynamic linker", program)
	return ""
}

// A program starts in its dynamic linker, which is thus as much what runs.
func TestDynamicLinker(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "linker")
	copyFile(t, own, linkerOf(t, "/bin/echo"))
	hello := compiled(t, dir, "gcc", "hello.c", "-Wl,--dynamic-linker="+own)
	evil := filepath.Join(dir, "evil")
	must.OK(t, os.Rename(hello, filepath.Join(dir, "hello")))
	hello = filepath.Join(dir, "hello")
	must.OK(t, os.Rename(compiled(t, dir, "gcc", "linker.c", "-nostdlib", "-static", "-fno-stack-protector"), evil))
	b := start(t, setup{args: []string{"sh", "-c", "/bin/echo a; " + hello}, env: []string{prepareEnv + "=read-only"}})
	b.wait()
	if b.out.String() != "a\nhello\n" || len(b.failures()) > 0 {
		t.Errorf("it said %q and %q; failures %q", b.out.String(), b.err.String(), b.failures())
	}
	if e := b.find("echo"); e.Linker != "" || len(e.Unpinned) > 0 {
		t.Errorf("the system's linker counts as the agent's: %q, %q", e.Linker, e.Unpinned)
	}
	if e := b.find("hello"); e.Linker != own || len(e.Unpinned) == 0 {
		t.Errorf("its linker is %q: %q", e.Linker, e.Unpinned)
	}
	for way, change := range map[string]func(){
		"in place":  func() { copyFile(t, own, evil) },
		"by rename": func() { copyFile(t, own+".new", evil); os.Rename(own+".new", own) },
	} {
		t.Run(way, func(t *testing.T) {
			copyFile(t, own, linkerOf(t, "/bin/echo"))
			b := start(t, setup{args: []string{"sh", "-c", hello + "; echo $?"}, decide: func(e *Exec) { holdBut(e, "sh") }})
			e := b.await("hello")
			e.Cover()
			change()
			e.Allow()
			if b.wait(); b.out.String() != "126\n" {
				t.Errorf("it said %q", b.out.String())
			}
		})
	}
}

// Where programs lie without a name, or in memory but with one.
func TestPlacesOfPrograms(t *testing.T) {
	for _, dir := range []string{"/dev/shm", t.TempDir()} {
		t.Run(dir, func(t *testing.T) {
			b := start(t, setup{role: "unnamed", args: []string{dir}, decide: func(e *Exec) { e.Cover(); e.Allow() }})
			b.wait()
			if b.out.String() != "ran\n" || len(b.failures()) > 0 {
				t.Errorf("it said %q and %q; failures %q", b.out.String(), b.err.String(), b.failures())
			}
		})
	}
}

func init() {
	// Runs a program from a file without a name, by way of its descriptor.
	roles["unnamed"] = func(args []string) {
		fd, err := unix.Open(args[0], unix.O_TMPFILE|unix.O_RDWR, 0o755)
		if err != nil {
			die("open", err)
		}
		b, err := os.ReadFile("/bin/echo")
		if err != nil {
			die("read", err)
		}
		if _, err := unix.Write(fd, b); err != nil {
			die("write", err)
		}
		own, err := unix.Open(selfFD(fd), unix.O_RDONLY, 0) // not the one that may write
		if err != nil {
			die("open", err)
		}
		unix.Close(fd)
		say("execve", unix.Exec(selfFD(own), []string{"name", "ran"}, clean()))
	}
}

// An approved exec that the kernel put off comes again as the same one, in the
// same folder: another thread may have changed it meanwhile.
func TestPutOffIntoAnotherFolder(t *testing.T) {
	held := func(cwd string) *Exec {
		e := &Exec{TID: 1, Cwd: cwd, thread: -1, leader: -1, pidfd: -1, place: place{from: -1, open: -1}}
		e.state.Store(execResolved)
		return e
	}
	for cwd, want := range map[string]bool{"/a": true, "/b": false} {
		g := &Gate{again: map[int]*Exec{1: held("/a")}}
		if got := g.resume(held(cwd)); got != want {
			t.Errorf("approved in /a, it goes on in %s: %v", cwd, got)
		}
	}
}
