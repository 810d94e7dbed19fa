package holder

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// anchor has folders be mounts of themselves, with all that is mounted below, in the mount namespace of a process. No link is followed, and nothing
// of the host is in reach there. A folder comes before those in it.
func anchor(pidfd int, folders []string) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this
		err := unix.Unshare(unix.CLONE_FS)
		if err == nil {
			err = unix.Setns(pidfd, unix.CLONE_NEWNS)
		}
		for _, folder := range folders {
			if err != nil {
				break
			}
			if err = anchorOne(folder); err != nil {
				err = fmt.Errorf("cannot hold the folder %q in its place: %w", folder, err)
			}
		}
		done <- err
	}()
	return <-done
}

func anchorOne(folder string) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, folder, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	const all = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_EMPTY_PATH | unix.AT_RECURSIVE
	tree, err := unix.OpenTree(fd, "", all)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	return unix.MoveMount(tree, "", fd, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}
