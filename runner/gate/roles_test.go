package gate

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() {
	roles["search"] = playSearch
	roles["execve"] = playExecve
	roles["thread"] = playThread
	roles["flip"] = playFlip
	roles["big"] = playBig
	roles["orphan"] = playOrphan
	roles["zombie"] = playZombie
	roles["traceme"] = playTraceMe
	roles["execveat"] = playExecveat
	roles["threads"] = playThreads
	roles["retry"] = playRetry
	roles["failers"] = playFailers
}

// say prints what a call brought, by the name of its error.
func say(what string, err error) {
	var e unix.Errno
	switch {
	case err == nil:
		fmt.Println(what, "ok")
	case errors.As(err, &e):
		fmt.Println(what, unix.ErrnoName(e))
	default:
		fmt.Println(what, err)
	}
}

// clean is the environment without what the tests put there.
func clean() []string {
	var l []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, roleEnv) {
			l = append(l, v)
		}
	}
	return l
}

// playSearch tries a program in folder after folder, as execvp(3) does.
func playSearch(args []string) {
	for _, dir := range strings.Split(args[0], ":") {
		say(dir, unix.Exec(dir+"/"+args[1], args[1:], clean()))
	}
}

// playRetry execs the same file several times.
func playRetry(args []string) {
	for range 3 {
		say("try", unix.Exec(args[0], args, clean()))
		time.Sleep(2 * repeatTime)
	}
}

// playExecve execs one program and says why it couldn't.
func playExecve(args []string) {
	say("execve", unix.Exec(args[0], args, clean()))
}

// playThread execs from a thread that isn't the first, which a goroutine may be on that
// isn't main's.
func playThread(args []string) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() { // it keeps this thread
		go playThread(args)
		select {}
	}
	say("execve", unix.Exec(args[0], args, clean()))
	os.Exit(1)
}

// playThreads execs from several threads at once.
func playThreads(args []string) {
	path, argv, env := fixed(args[0]), []*byte{}, []*byte{nil}
	for _, a := range args {
		argv = append(argv, &cString(a)[0])
	}
	argv = append(argv, nil)
	for range 4 {
		go func() {
			runtime.LockOSThread()
			// Not by way of package syscall, which lets only one do so.
			_, _, e := unix.Syscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(&path[0])), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&env[0])))
			say("execve", e)
		}()
	}
	select {}
}

// playFailers execs from several threads again and again what the kernel
// refuses.
func playFailers(args []string) {
	path, argv, env := fixed(args[0]), []*byte{&fixed("x")[0], nil}, []*byte{nil}
	var group sync.WaitGroup
	var wrong atomic.Int64
	for range 4 {
		group.Go(func() {
			runtime.LockOSThread()
			for range 25 {
				_, _, e := unix.Syscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(&path[0])), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&env[0])))
				if e != unix.ENOEXEC {
					wrong.Add(1)
				}
			}
		})
	}
	group.Wait()
	fmt.Println("wrong", wrong.Load())
}

// cString is memory of our own that doesn't move.
func cString(s string) []byte { return append([]byte(s), 0) }

// playFlip makes attempts, one after the other, to run something evil.
func playFlip(args []string) {
	rounds, _ := strconv.Atoi(args[0])
	for range rounds {
		c := exec.Command("/proc/self/exe", args[1])
		c.Env = append(clean(), roleEnv+"=flipper")
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		_ = c.Run() // the reader of the output sees what became of it
	}
}

func init() { roles["flipper"] = playFlipper }

// playFlipper execs while another thread flips something between two states.
func playFlipper(args []string) {
	path, arg, env := fixed("bin/good"), fixed("good"), fixed("V=good")
	good, evil := word("good"), word("evil")
	flip := func(at *uint32) func() {
		now := good
		return func() {
			now = good + evil - now
			atomic.StoreUint32(at, now)
		}
	}
	var flips func()
	switch args[0] {
	case "path":
		flips = flip((*uint32)(unsafe.Pointer(&path[4])))
	case "argument":
		copy(path, "bin/echo")
		flips = flip((*uint32)(unsafe.Pointer(&arg[0])))
	case "variable":
		// To flip it at once it has to lie on a word.
		v := fixed("\x00\x00V=good")[2:]
		copy(path, "bin/echo")
		copy(arg, "\x00")
		env = v
		flips = flip((*uint32)(unsafe.Pointer(&v[2])))
	case "linker":
		copy(path, "bin/prog")
		flips = func() {
			_ = unix.Renameat2(unix.AT_FDCWD, "bin/linker", unix.AT_FDCWD, "bin/other", unix.RENAME_EXCHANGE)
		}
	case "folder":
		// By a path that is the same in both.
		copy(path, "../bin/here\x00")
		_ = unix.Chdir("good")
		there := "evil"
		flips = func() {
			_ = unix.Chdir("../" + there)
			there = map[string]string{"evil": "good", "good": "evil"}[there]
		}
	case "file":
		copy(path, "bin/one\x00")
		copy(arg, "it i")
		arg = fixed("it is evil")
		flips = func() { _ = unix.Renameat2(unix.AT_FDCWD, "bin/one", unix.AT_FDCWD, "bin/two", unix.RENAME_EXCHANGE) }
	}
	var stop atomic.Bool
	go func() {
		runtime.LockOSThread()
		for !stop.Load() {
			flips()
			for range 30 {
				runtime.KeepAlive(path)
			}
		}
	}()
	argv := []*byte{&path[0], &arg[0], nil}
	envp := []*byte{&env[0], nil}
	_, _, e := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(&path[0])), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envp[0])))
	stop.Store(true)
	say("execve", e)
}

// fixed is a string in memory that is aligned and doesn't move.
func fixed(s string) []byte {
	words := make([]uint64, max(8, len(s)/8+1)) // a path may be long
	b := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))
	copy(b, s)
	return b
}

func word(s string) uint32 { return *(*uint32)(unsafe.Pointer(&[]byte(s)[0])) }

// playBig execs with arguments of many bytes.
func playBig(args []string) {
	size, _ := strconv.Atoi(args[0])
	if len(args) > 2 { // with room for few
		limit, _ := strconv.Atoi(args[2])
		say("limit", unix.Setrlimit(unix.RLIMIT_STACK, &unix.Rlimit{Cur: uint64(limit), Max: uint64(limit)}))
	}
	argv := []string{args[1]}
	for ; size > 0; size -= 100 << 10 {
		argv = append(argv, strings.Repeat("x", min(size, 100<<10)))
	}
	say("execve", unix.Exec(args[1], argv, clean()))
}

// playOrphan starts a program through a child that goes away at once.
func playOrphan(args []string) {
	c := exec.Command("sh", "-c", args[0]+" & echo started")
	c.Stdout = os.Stdout
	c.Env = clean()
	if err := c.Run(); err != nil {
		fmt.Println(err)
	}
	time.Sleep(patience) // until killed
}

// playZombie starts a program and never waits for it.
func playZombie(args []string) {
	_, err := syscall.ForkExec(args[0], args, &syscall.ProcAttr{Env: clean(), Files: []uintptr{0, 1, 2}})
	say("start", err)
	time.Sleep(patience) // until killed
}

// playTraceMe starts a program under its own ptrace(2), as strace does.
func playTraceMe(args []string) {
	runtime.LockOSThread()
	_, err := syscall.ForkExec(args[0], args, &syscall.ProcAttr{
		Env: clean(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Ptrace: true},
	})
	say("start", err)
}

// playExecveat execs through descriptors. Modes: empty FILE, memory FILE, dir
// DIR NAME, check FILE, flags, nofollow FILE, baddir.
func playExecveat(args []string) {
	at := func(fd int, path string, flags uintptr) {
		p := cString(path)
		argv := []*byte{&cString("name")[0], &cString("one")[0], nil}
		env := []*byte{&cString("A=b")[0], nil}
		_, _, e := unix.RawSyscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(&p[0])),
			uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&env[0])), flags, 0)
		if e != 0 {
			say("execveat", e)
		} else {
			say("execveat", nil)
		}
	}
	open := func(path string, flags int) int {
		fd, err := unix.Open(path, flags, 0)
		if err != nil {
			say("open", err)
			os.Exit(1)
		}
		return fd
	}
	switch args[0] {
	case "empty":
		at(open(args[1], unix.O_RDONLY), "", unix.AT_EMPTY_PATH)
	case "path":
		at(open(args[1], unix.O_PATH), "", unix.AT_EMPTY_PATH)
	case "memory":
		at(inMemory(args[1], unix.F_SEAL_WRITE), "", unix.AT_EMPTY_PATH)
	case "dir":
		at(open(args[1], unix.O_PATH|unix.O_DIRECTORY), args[2], 0)
	case "check":
		at(unix.AT_FDCWD, args[1], 0x10000)
	case "flags":
		at(unix.AT_FDCWD, args[1], 0x40000)
	case "nofollow":
		at(unix.AT_FDCWD, args[1], unix.AT_SYMLINK_NOFOLLOW)
	case "baddir":
		at(77, "x", 0)
		at(open(args[1], unix.O_RDONLY), "x", 0)
		at(unix.AT_FDCWD, "", 0)
		at(unix.AT_FDCWD, "", unix.AT_EMPTY_PATH)
	}
}

// execRaw execs with lists as they are.
//
//go:norace
func execRaw(path string, argv, env []*byte) unix.Errno {
	p := fixed(path)
	_, _, e := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(&p[0])), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&env[0])))
	return e
}
