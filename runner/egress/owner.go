package egress

import (
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxOwners   = 256              // sockets whose process is remembered
	maxRecent   = 8                // processes that are looked at first
	ownerTTL    = 30 * time.Second // of what is remembered
	scanNow     = 2000             // descriptors and processes to look at while the program waits
	scanLater   = 50000            // and once it has its answer
	maxProgName = 4096
)

// owners finds out which process has a socket open. The search is over the
// sandbox's own processes only, those that had the last sockets first.
type owners struct {
	processes func() []int

	mu     sync.Mutex
	recent []holder         // guarded by mu; newest first
	known  map[uint64]owner // guarded by mu; by inode
}

// holder is a process that had a socket, and at which descriptor: its next one
// is often at the same.
type holder struct {
	pid int
	fd  string
}

type owner struct {
	pid     int
	program string
	changed time.Time // its file
	found   time.Time
}

// find looks for the socket's owner among at most so many descriptors: time is no
// bound, since on a busy machine nobody would be found. Of several holders of
// one socket the first found is taken.
func (o *owners) find(inode uint64, most int) (owner, bool) {
	if inode == 0 || o.processes == nil {
		return owner{}, false
	}
	o.mu.Lock()
	was, ok := o.known[inode]
	recent := slices.Clone(o.recent)
	o.mu.Unlock()
	if ok && time.Since(was.found) < ownerTTL {
		return was, true
	}
	want := "socket:[" + strconv.FormatUint(inode, 10) + "]"
	for _, h := range recent {
		if linksTo(unix.AT_FDCWD, descriptors(h.pid)+h.fd, want) {
			return o.remember(inode, h), true
		}
	}
	for _, h := range recent {
		if fd, ok := holds(h.pid, want, &most); ok {
			return o.remember(inode, holder{h.pid, fd}), true
		}
	}
	pids := o.processes()
	// The newest processes are the likeliest to have just connected.
	slices.SortFunc(pids, func(a, b int) int { return b - a })
	for _, pid := range pids {
		if most <= 0 {
			break
		}
		if slices.ContainsFunc(recent, func(h holder) bool { return h.pid == pid }) {
			continue
		}
		if fd, ok := holds(pid, want, &most); ok {
			return o.remember(inode, holder{pid, fd}), true
		}
	}
	return owner{}, false
}

func (o *owners) remember(inode uint64, h holder) owner {
	found := owner{pid: h.pid, found: time.Now()}
	found.program, found.changed = program(h.pid)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.recent = slices.DeleteFunc(o.recent, func(old holder) bool { return old.pid == h.pid })
	o.recent = slices.Insert(o.recent, 0, h)
	o.recent = o.recent[:min(len(o.recent), maxRecent)]
	if len(o.known) >= maxOwners {
		clear(o.known)
	}
	o.known[inode] = found
	return found
}

// holds says which of the process's descriptors is the wanted socket. It takes
// what it looked at off most.
func holds(pid int, want string, most *int) (fd string, ok bool) {
	*most--
	dir, err := os.Open(descriptors(pid))
	if err != nil {
		return "", false // it ended
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(256)
		for _, name := range slices.Backward(names) {
			if linksTo(int(dir.Fd()), name, want) {
				return name, true
			}
		}
		if *most -= len(names); err != nil || *most <= 0 {
			return "", false
		}
	}
}

// descriptors is the folder of a process's descriptors.
func descriptors(pid int) string { return "/proc/" + strconv.Itoa(pid) + "/fd/" }

// linksTo reads a link only: a look at the file itself could hang, on a network
// filesystem for one.
func linksTo(dir int, name, want string) bool {
	var target [64]byte
	n, err := unix.Readlinkat(dir, name, target[:])
	return err == nil && string(target[:n]) == want
}

// program is the path of a process's executable in its own view, and when that file last
// changed: there may be another at the path by now, or none. "" when it has ended.
func program(pid int) (path string, changed time.Time) {
	exe := "/proc/" + strconv.Itoa(pid) + "/exe"
	path, err := os.Readlink(exe)
	var st unix.Stat_t
	if err != nil || unix.Stat(exe, &st) != nil {
		return "", time.Time{}
	}
	return path[:min(len(path), maxProgName)], time.Unix(st.Ctim.Unix())
}
