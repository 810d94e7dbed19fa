package gate

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Process is one process. A pid is used again after its process is gone; the
// start time, in clock ticks after boot (proc_pid_stat(5)), tells them apart.
type Process struct {
	PID   int // on the host
	Start uint64
	Name  string // of its main thread, of any bytes
}

// Program is the file that an exec runs. Interpreter is empty unless that is a
// script; then it is the file that is loaded in the end, and Path, Dev and Ino
// are the script's.
type Program struct {
	Path     string // resolved, as the sandbox sees it
	Dev, Ino uint64
}

// Exec is one held program start. The exported fields don't change; strings
// are of any bytes. Methods may be called from any goroutine.
//
// Files that aren't there or can't be run are never shown: the caller gets the
// error that the kernel would give, and searches on along its PATH.
type Exec struct {
	ID     uint64 // names the exec in its gate
	PID    int    // the process's id on the host
	TID    int    // the thread that execs; becomes the process's only one
	Parent int
	PGID   int
	Start  uint64 // with PID names the process

	Path      string   // as the caller gave it
	Argv      []string // may be cut off, see Truncated
	Env       []string
	Truncated bool     // Argv or Env aren't whole
	Digest    [32]byte // SHA-256 over path, arguments and environment, always whole
	Cwd       string
	Program   Program
	Ancestors []Process // nearest first, without the sandbox's PID 1
	Stdin     uint64    // inode of the pipe that it is, else 0
	Stdout    uint64
	Open      bool     // others can put words into its standard input while it runs: that is a pipe, a socket, a terminal, all but files and /dev/null
	Own       bool     // it is the session's own terminal, at which a person types
	Given     bool     // others say what it reads: it is Open and not Own, or a file that the sandbox can write, or its terminal isn't the session's own
	Writes    []string // files that its standard output and error are written to
	Pipes     []uint64 // inodes of the pipes and terminals among the arguments that it may read as scripts

	Linker   string   // its dynamic linker, if the agent can write that: it can be another when it runs
	Unpinned []string // what may be another when it runs than when it was looked at, in sentences for a person

	Files  []File   // what is loaded: the file that was named, interpreters in turn, the program
	Prefix []string // what the kernel puts in the place of Argv[0] when the first of Files is a script
	Mark   uint64   // the caller's, as [SetMark] has put it

	gate      *Gate
	thread    procDir
	leader    procDir // of the process; the same as thread when that is its main thread
	pidfd     int     // -1 once it is the exit watch's
	image     *image
	view      *view
	place     place
	input     input
	scripts   []script
	argv      words
	env       words
	state     atomic.Int32
	watched   int   // number of the watch for the caller's end
	origin    *Exec // the one that was shown, when the kernel made the caller ask again
	allowed   Allowance
	contents  [32]byte // over the files behind it
	elsewhere [32]byte // the same without devices
	covered   atomic.Bool
	newborn   bool   // its process has run no program yet
	denied    bool   // by its owner, or an approval couldn't be carried out
	reason    string // for that
	onBegin   func() error
	unchecked bool   // see Unchecked
	line      string // that its standard error gets first

	mu      sync.Mutex
	showing bool   // guarded by mu; the Exec callback runs
	after   func() // guarded by mu; what ends the Exec once it has returned

	looking sync.Mutex // held while Same looks: close waits for that
	closed  bool       // guarded by looking
	left    func()     // gives its place back; nil until it has one
}

// Why an Exec failed, for its owner.
const (
	whyGone   = "its process went away while it was held"
	whyKilled = "its process was killed before it ran"
)

// What has become of an Exec.
const (
	execHeld     int32 = iota
	execResolved       // allowed, denied, or failed
)

// Allowance changes what Allow does.
type Allowance uint8

const (
	// NoExit says that nobody wants to know how the process ends.
	NoExit Allowance = 1 << iota
	// Unverified lets a program run without the check that it is the one
	// that was shown: for verdicts that would be the same for any program.
	Unverified
	// HoldExit keeps the process traced and has Exiting called before its
	// end can be noticed. Each signal to its main thread costs a detour then.
	HoldExit
	// Unfiltered keeps a program from running if whoever starts it has put more filters
	// over its system calls, seccomp(2), than all of the sandbox has: they outlive the exec, and decide
	// what each call of the program returns.
	Unfiltered
)

// Tell has a line that begins with "stepbox: " written to the standard error that
// the program will have, before it begins, where that is possible without waiting.
// It gives false, and nothing is written, if that is a file below the folder spare,
// as the sandbox names it, or can't be told. It is for the owner alone, before Allow.
func (e *Exec) Tell(line, spare string) bool {
	at, err := readLink(unix.AT_FDCWD, fmt.Sprintf("/proc/%d/fd/2", e.PID))
	if err != nil || strings.HasPrefix(at, spare+"/") {
		return false
	}
	e.line = line
	return true
}

// Allow lets the program run, after it was checked to be what was shown. It
// returns at once; what comes of it is told by the Exit or Failed callback.
// Allow and Deny resolve an Exec once: later calls, and calls after it failed,
// do nothing.
func (e *Exec) Allow(with ...Allowance) {
	if !e.resolve() {
		return
	}
	for _, a := range with {
		e.allowed |= a
	}
	e.gate.end(e, func() { e.gate.allow(e) })
}

// Deny keeps the program from running. One that a fresh child would have run
// seems to run, prints the reason and exits with 126. A process that would have
// become the program gets the reason and EACCES, and lives on; so does one that
// another process traces. The reason is one line on the standard error that
// begins with "stepbox: denied: ", where that is possible without waiting. Exit
// and Failed don't tell of denied programs. It returns at once.
func (e *Exec) Deny(reason string) {
	if !e.resolve() {
		return
	}
	e.gate.end(e, func() { e.gate.deny(e, reason) })
}

// DenyAsRun is Deny for a process that was started only to become the program:
// to its parent the program seems to run and fail, as if a fresh child had. It
// must have been allowed with NoExit, else kernels before 6.15 have it traced.
func (e *Exec) DenyAsRun(reason string) {
	if !e.resolve() {
		return
	}
	e.newborn = true
	e.gate.end(e, func() { e.gate.deny(e, reason) })
}

// Same says what about the files of an Exec isn't any more as it was shown, so that Allow
// wouldn't let it run. Of one that has ended it says nothing.
func (e *Exec) Same() error {
	e.looking.Lock()
	defer e.looking.Unlock()
	if e.closed {
		return nil
	}
	if err := e.Unchanged(); err != nil || !e.covered.Load() {
		return err
	}
	return e.sameFiles()
}

// Valid says whether the caller still waits for an answer that nobody has
// given yet.
func (e *Exec) Valid() bool {
	return e.state.Load() == execHeld && e.gate.waits(e.ID)
}

func (e *Exec) resolve() bool { return e.state.CompareAndSwap(execHeld, execResolved) }

// show calls the Exec callback, and then ends the Exec if that was decided
// meanwhile, or watches for the end of its process.
func (e *Exec) show() {
	e.mu.Lock()
	e.showing = true
	e.mu.Unlock()
	e.gate.o.Exec(e)
	e.mu.Lock()
	after := e.after
	if after == nil {
		e.gate.mind(e)
	}
	e.showing = false
	e.mu.Unlock()
	if after != nil {
		after()
	}
}

// afterShowing leaves what ends an Exec to the goroutine that shows it, if
// there is one.
func (e *Exec) afterShowing(f func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.showing {
		e.after = f
	}
	return e.showing
}

// shownAs is the Exec that the caller of the gate knows.
func (e *Exec) shownAs() *Exec {
	if e.origin != nil {
		return e.origin
	}
	return e
}

// close gives back what an Exec holds of the system. Nothing may use it any more.
func (e *Exec) close() {
	e.looking.Lock()
	defer e.looking.Unlock()
	e.closed = true
	if e.left != nil {
		defer e.left()
	}
	if e.image != nil {
		e.image.close()
	}
	for i := range e.scripts {
		procDir(e.scripts[i].fd).close()
	}
	e.scripts = nil
	if e.view != nil {
		e.view.close()
	}
	if e.place.open >= 0 {
		procDir(e.place.open).close()
	}
	if e.place.from >= 0 && (e.view == nil || e.place.from != e.view.cwd) {
		procDir(e.place.from).close()
	}
	procDir(e.pidfd).close()
	if e.leader != e.thread {
		e.leader.close()
	}
	e.thread.close()
}

// digest is over all that was given by the caller.
func (e *Exec) digest() [32]byte {
	h := sha256.New()
	part := func(b []byte) {
		_ = binary.Write(h, binary.BigEndian, uint64(len(b)))
		h.Write(b)
	}
	part([]byte(e.place.name))
	for _, w := range []*words{&e.argv, &e.env} {
		_ = binary.Write(h, binary.BigEndian, uint64(w.count))
		part(w.first[:])
		part(w.rest[:])
	}
	var sum [32]byte
	h.Sum(sum[:0])
	return sum
}
