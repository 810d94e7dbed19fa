package gate

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// procDir is an open folder /proc/PID. It stays with the process it was
// opened for: once that is gone, reads fail rather than meet another one.
type procDir int

func openProc(pid int) (procDir, error) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("cannot open the process %d: %w", pid, err)
	}
	return procDir(fd), nil
}

func (d procDir) close() {
	if d >= 0 {
		_ = unix.Close(int(d))
	}
}

func (d procDir) open(name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(int(d), name, flags|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// read returns one of the folder's short files, at most max bytes of it. Those
// come whole with one call if there is room.
func (d procDir) read(name string, max int) ([]byte, error) {
	fd, err := d.open(name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	b := make([]byte, max)
	for {
		n, err := unix.Read(fd, b)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return b[:n:n], err
	}
}

// readAll returns one of the folder's files that come page by page. A new image's
// are bounded by its program headers.
func (d procDir) readAll(name string) ([]byte, error) {
	fd, err := d.open(name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var b []byte
	for {
		b = slices.Grow(b, pageSize)
		n, err := unix.Read(fd, b[len(b):cap(b)])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || n == 0:
			return b, err
		default:
			b = b[:len(b)+n]
		}
	}
}

// link reads a symbolic link of the folder.
func (d procDir) link(name string) (string, error) { return readLink(int(d), name) }

// readLink reads a symbolic link below an open folder, or that is open itself
// when the name is empty.
func readLink(dir int, name string) (string, error) {
	for size := 256; ; size = unix.PathMax { // as a rule it is short, and stacks of goroutines begin small
		b := make([]byte, size)
		n, err := unix.Readlinkat(dir, name, b)
		if err != nil {
			return "", err
		}
		if n < size || size == unix.PathMax {
			return string(b[:n]), nil
		}
	}
}

// state is what /proc/PID/stat says of a process, proc_pid_stat(5).
type state struct {
	name   string // the thread's name, of any bytes
	letter byte   // Z when it is gone but not waited for
	parent int
	pgid   int
	tty    int    // its controlling terminal as a device number; 0 for none
	flags  int    // PF_… of linux/sched.h
	start  uint64 // clock ticks after boot
	exit   int    // as waitpid(2) would have it; 0 unless we may know

	argStart, argEnd, envStart, envEnd uint64 // where its strings are; 0 unless we may know
}

func (d procDir) state() (state, error) { return readState(int(d), "stat") }

// countThreads counts the threads of the process that has a number now, those that
// ended and that nobody has waited for among them: the links of a folder
// (fs/proc/base.c, proc_task_getattr) cost less than a line of numbers.
func countThreads(pid int) (int, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/"+strconv.Itoa(pid)+"/task", &st); err != nil {
		return 0, err
	}
	return int(st.Nlink) - 2, nil
}

// threadsOf lists the threads of the process that has a number now.
func threadsOf(pid int) (threads []int, err error) {
	dir, err := os.Open("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	for _, name := range names {
		tid, e := strconv.Atoi(name)
		threads, err = append(threads, tid), errors.Join(err, e)
	}
	return threads, err
}

// stateOf is the state of the process that has a number now.
func stateOf(pid int) (state, error) {
	return readState(unix.AT_FDCWD, "/proc/"+strconv.Itoa(pid)+"/stat")
}

func readState(dir int, name string) (state, error) {
	b, err := procDir(dir).read(name, 1024)
	if err != nil {
		return state{}, err
	}
	return parseState(b)
}

// forkedOnly is the flag of a thread that was made and hasn't executed anything
// since: PF_FORKNOEXEC. A process's first thread tells of the process.
const forkedOnly = 0x40

var errStat = errors.New("cannot understand the state of a process")

// parseState reads a line of /proc/PID/stat. The name stands in parentheses
// and may hold any bytes, parentheses, blanks and line ends too; nothing after
// it can hold a parenthesis.
func parseState(b []byte) (state, error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return state{}, errStat
	}
	s := state{name: string(b[open+1 : end])}
	fields := bytes.Fields(b[end+1:]) // the first is field 3 of the man page
	if len(fields) < 50 || len(fields[0]) != 1 {
		return state{}, errStat
	}
	s.letter = fields[0][0]
	var err error
	number := func(field int) int {
		n, e := strconv.Atoi(string(fields[field-3]))
		err = errors.Join(err, e)
		return n
	}
	s.parent, s.pgid, s.tty, s.flags, s.exit = number(4), number(5), number(7), number(9), number(52)
	for field, to := range map[int]*uint64{22: &s.start, 48: &s.argStart, 49: &s.argEnd, 50: &s.envStart, 51: &s.envEnd} {
		n, e := strconv.ParseUint(string(fields[field-3]), 10, 64)
		*to, err = n, errors.Join(err, e)
	}
	if err != nil {
		return state{}, errStat
	}
	return s, nil
}

// status is what /proc/PID/status says of a thread, proc_pid_status(5).
type status struct {
	tgid   int
	tracer int
	inner  int // its thread id in its own pid namespace
	group  int // its process's id there

	pgrp, session int // its process group and session, there; -1 isn't known
	filters       int // over its system calls, seccomp(2)
	// Signals that wait for it or its process, that it handles, that it ignores, and that it blocks: bits from the lowest on.
	pending, caught, ignored, blocked uint64
}

func (d procDir) status() (status, error) { return readStatus(int(d), "status") }

// statusOf is the status of the process that has a number now.
func statusOf(pid int) (status, error) {
	return readStatus(unix.AT_FDCWD, "/proc/"+strconv.Itoa(pid)+"/status")
}

func readStatus(dir int, name string) (status, error) {
	b, err := procDir(dir).read(name, 4096)
	if err != nil {
		return status{}, err
	}
	return parseStatus(b)
}

var errStatus = errors.New("cannot understand the status of a process")

// parseStatus reads /proc/PID/status. Its first line holds the name, which
// the kernel escapes.
func parseStatus(b []byte) (status, error) {
	s := status{tgid: -1, tracer: -1, inner: -1, group: -1, pgrp: -1, session: -1}
	for len(b) > 0 {
		line, rest, _ := bytes.Cut(b, []byte{'\n'})
		b = rest
		key, value, ok := bytes.Cut(line, []byte{':'})
		if !ok {
			continue
		}
		var to *int
		switch string(key) {
		case "Tgid":
			to = &s.tgid
		case "TracerPid":
			to = &s.tracer
		case "NSpid":
			to = &s.inner
		case "NStgid":
			to = &s.group
		case "NSpgid":
			to = &s.pgrp
		case "NSsid":
			to = &s.session
		case "Seccomp_filters":
			to = &s.filters
		case "SigPnd", "ShdPnd", "SigCgt", "SigIgn", "SigBlk":
			if err := s.readSignals(string(key), value); err != nil {
				return status{}, err
			}
			continue
		default:
			continue
		}
		fields := bytes.Fields(value)
		if len(fields) == 0 {
			return status{}, errStatus
		}
		n, err := strconv.Atoi(string(fields[len(fields)-1]))
		if err != nil || n < 0 {
			return status{}, errStatus
		}
		*to = n
	}
	if s.tgid <= 0 || s.tracer < 0 || s.inner <= 0 || s.group <= 0 {
		return status{}, errStatus
	}
	return s, nil
}

// readSignals reads a set of signals of a status.
func (st *status) readSignals(key string, value []byte) error {
	set, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 16, 64)
	if err != nil {
		return errStatus
	}
	switch key {
	case "SigCgt":
		st.caught = set
	case "SigIgn":
		st.ignored = set
	case "SigBlk":
		st.blocked = set
	default:
		st.pending |= set
	}
	return nil
}
