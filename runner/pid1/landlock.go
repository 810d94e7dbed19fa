package pid1

import (
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// landlockFloor is the first version of Landlock's interface that can allow
// moving files between folders (Linux 5.19): earlier ones always deny it.
const landlockFloor = 2

// MemoryGuard says whether this kernel can keep the sandbox from writing
// processes' memory through /proc/PID/mem. It can where Landlock is on.
func MemoryGuard() bool {
	version, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	return e == 0 && version >= landlockFloor
}

// guard takes two rights from the calling thread and from all that it starts. To open anything in
// /proc for writing: /proc/PID/mem is the one way into another process's memory that no system call
// filter can tell from an ordinary file. And to make sockets in the folder common but for what is in
// own: see [Program]. Everything else in the root folder stays as writable as it was. It needs
// no_new_privs.
//
// What isn't in a folder of the root (pipes, memfds, sockets by way of
// /proc/PID/fd) isn't restricted (Documentation/userspace-api/landlock.rst,
// "Special filesystems").
func guard(common string, own []string) error {
	if !MemoryGuard() {
		return nil
	}
	const rights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK
	attr := unix.LandlockRulesetAttr{Handled_access_fs: rights}
	// Older kernels know only the first field.
	fd, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr.Handled_access_fs), 0)
	if e != 0 {
		return fmt.Errorf("cannot make a Landlock ruleset: %w", e)
	}
	ruleset := int(fd)
	defer unix.Close(ruleset)
	granted, err := grants(common, own, rights)
	if err != nil {
		return err
	}
	for dir, may := range granted {
		if err := allowBeneath(ruleset, dir, may); err != nil {
			return fmt.Errorf("cannot leave %q writable: %w", dir, err)
		}
	}
	if _, _, e := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); e != 0 {
		return fmt.Errorf("cannot apply a Landlock ruleset: %w", e)
	}
	return nil
}

// grants are the folders that stay writable, with the rights in each.
func grants(common string, own []string, rights uint64) (map[string]uint64, error) {
	entries, err := os.ReadDir("/")
	if err != nil {
		return nil, err
	}
	out := make(map[string]uint64)
	for _, entry := range entries {
		if entry.Name() == "proc" || !entry.IsDir() {
			continue // a link among them leads to another of them
		}
		dir := "/" + entry.Name()
		if out[dir] = rights; strings.HasPrefix(common+"/", dir+"/") {
			out[dir] &^= unix.LANDLOCK_ACCESS_FS_MAKE_SOCK
		}
	}
	for _, dir := range own {
		out[dir] = rights
	}
	return out, nil
}

// allowBeneath adds a rule that grants rights on a folder and all in it.
func allowBeneath(ruleset int, path string, rights uint64) error {
	dir, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(dir)}
	_, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if e != 0 {
		return e
	}
	return nil
}
