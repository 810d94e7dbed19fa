package box

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Status is what /proc/PID/stat says of a process or thread.
type Status struct {
	PID    int
	Name   string // hostile: a process names itself
	State  byte   // R, S, D, T, t, Z, X, I
	Parent int
	Start  uint64        // clock ticks after boot; with PID it names the process
	CPU    time.Duration // used so far, children not included
	Waited time.Duration // the same of children that ended and were waited for
	Memory int64         // resident bytes
	Count  int           // threads
}

const (
	ticksPerSecond = 100 // USER_HZ, the same on every Linux that Go runs on
	statFields     = 22  // fields after the name that are used
)

// readShort reads a short file of /proc, which comes whole with one call. It is
// done for each process at each checkpoint: os.ReadFile makes nine calls of it.
func readShort(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var b [4096]byte
	n, err := unix.Read(fd, b[:])
	if err != nil {
		return nil, err
	}
	return bytes.Clone(b[:n]), nil
}

// readAll reads a file of the kernel's that may be long. os.ReadFile makes twice the
// calls of it.
func readAll(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	text := make([]byte, 0, 4096)
	for {
		n, err := unix.Read(fd, text[len(text):cap(text)])
		if n <= 0 || err != nil {
			return text, err
		}
		text = slices.Grow(text[:len(text)+n], 1024)
	}
}

// ReadStatus reads a process's or thread's state. A process that is gone gives
// fs.ErrNotExist. See proc_pid_stat(5).
func ReadStatus(pid int) (Status, error) {
	text, err := readShort("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		if errors.Is(err, unix.ESRCH) {
			err = fs.ErrNotExist
		}
		return Status{}, fmt.Errorf("cannot read the state of process %d: %w", pid, err)
	}
	return parseStatus(pid, text)
}

func parseStatus(pid int, text []byte) (Status, error) {
	// The name is in parentheses and may hold any of the bytes around it.
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return Status{}, errors.New("cannot read a process's state: it has no name")
	}
	fields := strings.Fields(string(text[end+1:]))
	if len(fields) < statFields || len(fields[0]) != 1 {
		return Status{}, errors.New("cannot read a process's state: fields are missing")
	}
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(fields[i], 10, 64)
		return n
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return Status{}, fmt.Errorf("cannot read a process's state: %w", err)
	}
	return Status{
		PID: pid, Name: string(text[open+1 : end]), State: fields[0][0],
		Parent: int(number(1)), Start: start,
		CPU:    time.Duration(number(11)+number(12)) * time.Second / ticksPerSecond,
		Waited: time.Duration(number(13)+number(14)) * time.Second / ticksPerSecond,
		Count:  int(number(17)),
		Memory: number(21) * int64(os.Getpagesize()),
	}, nil
}

// Threads lists a process's threads; none when it is gone.
func Threads(pid int) []int {
	entries, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return nil
	}
	threads := make([]int, 0, len(entries))
	for _, entry := range entries {
		if id, err := strconv.Atoi(entry.Name()); err == nil {
			threads = append(threads, id)
		}
	}
	return threads
}

// Ran is what each thread of a process has run so far, by its id: a text that
// grows with each time that it is given a processor, "" of one that is gone.
// Running says whether one of them ran at that moment. A text is read before the
// state is: what runs in between counts for the next look.
func Ran(pid int) (threads map[int]string, status Status, running bool, err error) {
	dir := "/proc/" + strconv.Itoa(pid)
	threads = map[int]string{pid: ranIn(dir)}
	status, err = ReadStatus(pid)
	if err != nil || status.Count <= 1 {
		return threads, status, status.State == 'R', err
	}
	for _, thread := range Threads(pid) {
		of := dir + "/task/" + strconv.Itoa(thread)
		threads[thread] = ranIn(of)
		text, err := readShort(of + "/stat")
		if end := bytes.LastIndexByte(text, ')'); err == nil && end > 0 && end+2 < len(text) {
			running = running || text[end+2] == 'R'
		}
	}
	return threads, status, running, nil
}

// ranIn reads what the thread with that folder in /proc has run.
func ranIn(dir string) string {
	text, err := readShort(dir + "/schedstat")
	if err != nil || bytes.Equal(bytes.TrimSpace(text), []byte("0 0 0")) { // a kernel without it
		if text, err = switches(dir); err != nil {
			return ""
		}
	}
	return string(text)
}

// switches counts how often a thread gave its processor away, proc_pid_status(5).
func switches(dir string) ([]byte, error) {
	text, err := readShort(dir + "/status")
	if err != nil {
		return nil, err
	}
	_, counts, ok := bytes.Cut(text, []byte("\nvoluntary_ctxt_switches:"))
	if !ok {
		return nil, errors.New("cannot tell what a thread has run")
	}
	return counts, nil
}

// moment is more than a thread runs to be frozen, on a busy machine too.
const moment = 2 * time.Millisecond

// OnlyFroze says whether a thread ran only for the moment that it takes to be frozen
// between two texts of Ran's. It may take several turns for that on a busy machine.
func OnlyFroze(before, now string) bool {
	var was, is time.Duration // nanoseconds that it ran, proc_pid_schedstat
	var waited, turns int64
	for text, ran := range map[string]*time.Duration{before: &was, now: &is} {
		if n, _ := fmt.Sscan(text, ran, &waited, &turns); n != 3 {
			return false
		}
	}
	return is-was <= moment
}

// Members lists the processes of a pid namespace, host pids, by looking at all
// that this process can see and that may be, which is asked first. namespace is
// the inode of /proc/PID/ns/pid.
func Members(namespace uint64, may func(pid int) bool) ([]int, error) {
	all, err := everyone()
	return slices.DeleteFunc(all, func(pid int) bool {
		if !may(pid) {
			return true
		}
		inode, err := PIDNamespace(pid)
		return err != nil || inode != namespace
	}), err
}

// everyone lists all processes that this process can see.
func everyone() ([]int, error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w", err)
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("cannot list processes: %w", err)
	}
	var all []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			all = append(all, pid)
		}
	}
	return all, nil
}

// CountTasks counts a user's threads, but for a process's, as far as this process
// sees them: what the kernel bounds by RLIMIT_NPROC.
func CountTasks(uid, but int) (tasks int64, err error) {
	all, err := everyone()
	for _, pid := range all {
		if pid == but {
			continue
		}
		text, err := readShort("/proc/" + strconv.Itoa(pid) + "/status")
		if err != nil {
			continue // it is gone
		}
		word := func(name string) (first int64) {
			_, value, _ := bytes.Cut(text, []byte("\n"+name+":"))
			_, _ = fmt.Fscan(bytes.NewReader(value), &first)
			return first
		}
		if word("Uid") == int64(uid) {
			tasks += word("Threads")
		}
	}
	return tasks, err
}

// PIDNamespace is the inode number of a process's pid namespace.
func PIDNamespace(pid int) (uint64, error) {
	link, err := os.Readlink(namespacePath(pid, "pid"))
	if err != nil {
		return 0, err
	}
	inode, ok := strings.CutPrefix(link, "pid:[")
	if !ok {
		return 0, fmt.Errorf("cannot read a namespace's name %q", link)
	}
	return strconv.ParseUint(strings.TrimSuffix(inode, "]"), 10, 64)
}
