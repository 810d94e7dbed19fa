package store

import (
	"errors"
	"fmt"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// WAL needs memory that all processes share and locks that hold, which these
// filesystems give within one machine at best (sqlite.org/wal.html). The
// numbers are those of linux/magic.h and of the filesystems' own headers.
var networkMagic = map[int64]string{
	0x6969:     "NFS",
	0x517b:     "SMB",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB",
	0x01021997: "9p",
	0x5346414f: "AFS",
	0x6b414653: "AFS",
	0x00c36400: "Ceph",
	0x73757245: "Coda",
	0x564c:     "NCP",
	0x7461636f: "OCFS2",
	0x01161970: "GFS2",
	0x0bd00bd0: "Lustre",
	0x20030528: "OrangeFS",
	0x19830326: "BeeGFS",
	0x47504653: "GPFS",
	0x786f4256: "VirtualBox shared folder",
	0xbacbacbc: "VMware shared folder",
}

// localFUSE are the FUSE filesystems known to keep their files on this machine.
var localFUSE = map[string]bool{
	"fuseblk": true, "fuse.ntfs-3g": true, "fuse.gocryptfs": true, "fuse.encfs": true, "fuse.cryfs": true,
	"fuse.securefs": true, "fuse.mergerfs": true, "fuse.bindfs": true, "fuse.fuse-overlayfs": true, "fuse.ext4": true,
}

// checkFilesystem refuses network filesystems.
func checkFilesystem(dir string) error {
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	for errors.Is(err, unix.EINTR) {
		err = unix.Statfs(dir, &st)
	}
	if err != nil {
		return fmt.Errorf("cannot look at the filesystem of %q: %w", dir, err)
	}
	name := networkMagic[int64(uint32(st.Type))]
	if uint32(st.Type) == unix.FUSE_SUPER_MAGIC {
		typ, err := mountType(dir)
		if err != nil {
			return fmt.Errorf("cannot tell which filesystem %q is on: %w", dir, err)
		}
		if !localFUSE[typ] {
			name = typ
		}
	}
	if name == "" {
		return nil
	}
	return fmt.Errorf("%w: %q is on %s, where locks and shared memory can't be relied on; set STEPBOX_DATA to a folder on a local disk",
		ErrNetwork, dir, name)
}

// mountType is the name of the filesystem that a path is on, with FUSE's subtype.
func mountType(p string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(p, &st); err != nil {
		return "", err
	}
	mounts, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		is := m.Major == int(unix.Major(st.Dev)) && m.Minor == int(unix.Minor(st.Dev))
		return !is, is
	})
	if err == nil && len(mounts) == 0 {
		err = fmt.Errorf("device %d:%d isn't mounted here", unix.Major(st.Dev), unix.Minor(st.Dev))
	}
	if err != nil {
		return "", err
	}
	return mounts[0].FSType, nil
}
