package box

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Placed are mounts at paths that the agent could make lead elsewhere: in its home and in /tmp, where it may make and rename
// folders at will. In an overlay over a folder of the host's nothing has to be done: that renames no folder of its
// lower layer (overlayfs.rst, "Renaming directories").
type Placed struct {
	// At are the paths of those mounts.
	At []string
	// Above are the folders above them, outermost first, which are to be mounts themselves: a mount is neither renamed nor
	// removed (rename(2), EBUSY). Else the agent could move them away with what is mounted there, and put what it
	// likes at the paths of the project or of a person's tools.
	Above []string

	areas []string // those folders of the agent's, the innermost first
}

// place finds the mounts of a layout that are so.
func (l *layout) place(spec Spec) (out Placed) {
	out.areas = []string{"/tmp"}
	if spec.Home != "" {
		out.areas = append(out.areas, spec.HomeTo)
	}
	slices.SortFunc(out.areas, func(a, b string) int { return depth(b) - depth(a) })
	for _, m := range l.mounts {
		area := out.area(m.Destination)
		if area == "" {
			continue
		}
		out.At = append(out.At, m.Destination)
		for _, dir := range parents(strings.TrimPrefix(m.Destination, area+"/")) {
			out.Above = append(out.Above, filepath.Join(area, dir))
		}
	}
	mounted := func(path string) bool { return slices.Contains(out.At, path) }
	slices.SortFunc(out.Above, strings.Compare)
	out.Above = slices.DeleteFunc(slices.Compact(out.Above), mounted)
	return out
}

// area is the innermost that a path is in; "" for none.
func (p *Placed) area(path string) string {
	for _, a := range p.areas {
		if strings.HasPrefix(path, a+"/") {
			return a
		}
	}
	return ""
}

// Watch waits for changes of what a box has mounted; nothing in there can mount.
type Watch struct {
	table  *os.File
	epoll  *os.File
	placed Placed
}

// WatchMounts begins to watch a box's mounts: a change after this isn't missed. Close the watch when the box is gone.
func (b *Box) WatchMounts() (*Watch, error) {
	fail := func(err error) (*Watch, error) {
		return nil, fmt.Errorf("cannot watch what the sandbox has mounted: %w", err)
	}
	// A change is told once to each open file, however many wait: it isn't package os's poller that is to hear it.
	name := "/proc/" + strconv.Itoa(b.PID) + "/mountinfo"
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	table := os.NewFile(uintptr(fd), name)
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err == nil {
		if err = unix.SetNonblock(ep, true); err == nil { // for Go's own poller to wait for it
			err = unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLPRI}) // proc_pid_mountinfo(5)
		}
		if err != nil {
			_ = unix.Close(ep)
		}
	}
	if err != nil {
		_ = table.Close()
		return fail(err)
	}
	return &Watch{table, os.NewFile(uintptr(ep), "mounts"), b.Placed}, nil
}

// Changed waits for a change, and gives false once Stop was called.
func (w *Watch) Changed() bool {
	conn, err := w.epoll.SyscallConn()
	if err != nil {
		return false
	}
	woken := false
	return conn.Read(func(uintptr) bool { // whoever was told by the outer poller has taken the change from the inner one
		before := woken
		woken = true
		return before
	}) == nil
}

// Stop has Changed return.
func (w *Watch) Stop() { _ = w.epoll.SetReadDeadline(time.Unix(1, 0)) }

// Close ends the watch; nobody waits any more.
func (w *Watch) Close() {
	_ = w.epoll.Close()
	_ = w.table.Close()
}

// Check says which mount isn't where it was meant to be. An earlier session of a home, or one that runs beside this one, can have
// put a link on the way, and by removing the folder that something is mounted on, in its own view empty, takes the mount away.
func (w *Watch) Check() error {
	if _, err := w.table.Seek(0, 0); err != nil {
		return fmt.Errorf("cannot read what the sandbox has mounted: %w", err)
	}
	mounts, err := mountinfo.GetMountsFromReader(w.table, nil)
	if err != nil {
		return fmt.Errorf("cannot read what the sandbox has mounted: %w", err)
	}
	there := map[string]bool{}
	for _, m := range mounts {
		there[m.Mountpoint] = true
	}
	for _, path := range slices.Concat(w.placed.At, w.placed.Above) {
		// Where the agent's folder is gone as well, as with all that a run-time folder had when that is removed, nobody can make another.
		if area := w.placed.area(path); !there[path] && there[area] {
			return fmt.Errorf("%q isn't mounted where it belongs: another session of the same home has removed or replaced a folder there", path)
		}
	}
	return nil
}
