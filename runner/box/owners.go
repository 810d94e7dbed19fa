package box

import (
	"fmt"
	"os"

	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"
)

// A root caller's agent has root's uid on the host, though none of its rights,
// so that it could read as their owner what only root may read. System folders
// are therefore mounted with other owners: every id that a file there has is
// shown as one that no process has, and the agent is like anybody else there,
// also to files that are made later.
const (
	foreignIDs   = 1 << 31   // where the ids of those files begin; real ones end before
	mappedOwners = 1<<31 - 1 // how many are mapped
)

// aside is where a folder is mounted before it becomes a layer. The sandbox's
// own /run covers the place afterwards.
func aside(folder string) string { return "/run/owners" + folder }

// mapOwners mounts a folder aside, with other owners.
func mapOwners(folder string) *configs.Mount {
	ids := []configs.IDMap{{ContainerID: 0, HostID: foreignIDs, Size: mappedOwners}}
	return &configs.Mount{
		Source: folder, Destination: aside(folder), Device: "bind",
		Flags:     unix.MS_BIND | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV,
		IDMapping: &configs.MountIDMapping{UIDMappings: ids, GIDMappings: ids},
	}
}

// canMapOwners tries, with a user namespace at hand, whether the kernel lets this
// process mount a folder with other owners: it takes root's rights on the host
// and a filesystem that has such mounts. Nothing is mounted.
func canMapOwners(folder, userns string) error {
	fail := func(err error) error {
		return fmt.Errorf("it can't be mounted with other owners: %w", err)
	}
	ns, err := os.Open(userns)
	if err != nil {
		return fail(err)
	}
	defer ns.Close()
	tree, err := unix.OpenTree(unix.AT_FDCWD, folder, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fail(err)
	}
	defer unix.Close(tree)
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(ns.Fd())}); err != nil {
		return fail(err)
	}
	return nil
}
