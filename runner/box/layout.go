package box

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"

	"stepbox/runner/pid1"
)

// systemFolders are shown as they are on the host, read-only. A link among them
// (as /bin is where /usr is merged) stays a link.
var systemFolders = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix",
	"/var/lib/ca-certificates", // where openSUSE's /etc/ssl/certs leads
}

// emptyFolders are there because programs expect them.
var emptyFolders = []string{"dev", "etc", "home", "proc", "root", "run", "sys", "tmp", "var", "var/lib", "mnt", "media", "srv"}

// layout is what a box's root filesystem is made of.
type layout struct {
	rootfs string
	dir    string
	first  []*configs.Mount // before all others, in this order
	mounts []*configs.Mount
	shown  []shown  // host folders to show
	masks  []string // paths inside that are covered
	fixed  []string // paths inside that are made read-only once all is mounted
	notes  []string
	placed Placed
}

// layOut makes the skeleton of the root filesystem and lists what is mounted on
// it, parents before children.
func layOut(spec Spec, rootfs string) (*layout, error) {
	if err := checkIdentity(); err != nil {
		return nil, err
	}
	l := &layout{rootfs: rootfs, dir: spec.Dir}
	if err := l.skeleton(); err != nil {
		return nil, fmt.Errorf("cannot make the sandbox's root folder: %w", err)
	}
	mounts, err := mountTable()
	if err != nil {
		return nil, err
	}
	l.addKernel(cmp.Or(spec.Shared, usualShared))
	l.addRun(spec.Binds)
	if err := l.addSystem(); err != nil {
		return nil, err
	}
	l.add(&configs.Mount{Source: spec.Temp, Destination: "/tmp", Device: "bind", Flags: unix.MS_BIND | unix.MS_REC,
		RecAttr: &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}})
	if err := l.addHome(spec); err != nil {
		return nil, err
	}
	for _, bind := range spec.Binds {
		if err := l.addBind(bind); err != nil {
			return nil, err
		}
	}
	if err := l.addShown(spec, mounts); err != nil {
		return nil, err
	}
	if err := l.addWorkspace(spec, mounts); err != nil {
		return nil, err
	}
	sort.SliceStable(l.mounts, func(i, j int) bool {
		return depth(l.mounts[i].Destination) < depth(l.mounts[j].Destination)
	})
	l.placed = l.place(spec)
	l.mounts = append(l.first, l.mounts...)
	return l, nil
}

// addHome mounts the home folder: itself, or below an overlay that takes what is written.
func (l *layout) addHome(spec Spec) error {
	if spec.Home == "" {
		return nil
	}
	if info, err := os.Stat(spec.Home); err != nil || !info.IsDir() {
		return fmt.Errorf("cannot use %q as a home folder: there is no such folder", spec.Home)
	}
	if spec.HomeUpper != "" {
		return l.overUpper(spec.Home, spec.HomeTo, layers(spec.Home, spec.HomeAbove), spec.HomeUpper, spec.HomeWork)
	}
	l.add(&configs.Mount{Source: spec.Home, Destination: spec.HomeTo, Device: "bind", Flags: unix.MS_BIND | unix.MS_REC,
		RecAttr: &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}})
	return nil
}

func depth(path string) int { return strings.Count(strings.TrimSuffix(path, "/"), "/") }

func (l *layout) add(m *configs.Mount) { l.mounts = append(l.mounts, m) }

// addReadOnly shows a host file or folder with all that is mounted below it.
func (l *layout) addReadOnly(source, target string) {
	l.add(&configs.Mount{Source: source, Destination: target, Device: "bind", Flags: unix.MS_BIND | unix.MS_REC,
		RecAttr: &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}})
}

// addBind shows what the specification names. Links in the source are followed
// here, once, so that what was looked at is what is shown.
func (l *layout) addBind(bind Bind) error {
	source, err := filepath.EvalSymlinks(bind.Source)
	if err != nil {
		return fmt.Errorf("cannot show %q in the sandbox: %w", bind.Source, err)
	}
	info, err := os.Lstat(source)
	if err != nil {
		return fmt.Errorf("cannot show %q in the sandbox: %w", bind.Source, err)
	}
	target := cmp.Or(bind.Target, bind.Source)
	switch {
	case info.IsDir():
		l.shown = append(l.shown, shown{source: source, target: target, upper: bind.Upper, spare: bind.Spare})
		return nil
	case !info.Mode().IsRegular():
		return fmt.Errorf("cannot show %q in the sandbox: it is neither a folder nor a file", bind.Source)
	}
	l.addReadOnly(source, target)
	return nil
}

// skeleton makes the folder that becomes the root; it is mounted read-only.
func (l *layout) skeleton() error {
	if err := os.Mkdir(l.rootfs, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, name := range emptyFolders {
		if err := os.Mkdir(filepath.Join(l.rootfs, name), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	for name, target := range map[string]string{"var/tmp": "/tmp", "var/run": "/run", "var/lock": "/run/lock"} {
		if err := os.Symlink(target, filepath.Join(l.rootfs, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// usualShared is how many bytes /dev/shm holds where nobody said.
const usualShared = 1 << 30

// addKernel mounts what the kernel provides; shared is how many bytes /dev/shm holds.
func (l *layout) addKernel(shared int64) {
	const plain = unix.MS_NOSUID | unix.MS_NODEV
	l.add(&configs.Mount{Source: "proc", Destination: "/proc", Device: "proc", Flags: plain | unix.MS_NOEXEC})
	l.add(&configs.Mount{Source: "tmpfs", Destination: "/dev", Device: "tmpfs", Flags: unix.MS_NOSUID | unix.MS_STRICTATIME | unix.MS_RDONLY, Data: "mode=755,size=64k"})
	// No gid= option: with one id mapped there is no group for terminals.
	for _, name := range shownDevices {
		l.add(&configs.Mount{Source: "/dev/" + name, Destination: "/dev/" + name, Device: "bind",
			Flags: unix.MS_BIND | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NOEXEC})
	}
	l.add(&configs.Mount{Source: "devpts", Destination: "/dev/pts", Device: "devpts", Flags: unix.MS_NOSUID | unix.MS_NOEXEC, Data: "newinstance,ptmxmode=0666,mode=0620,max=" + strconv.Itoa(MaxTerminals)})
	l.add(&configs.Mount{Source: "tmpfs", Destination: "/dev/shm", Device: "tmpfs", Flags: plain, Data: "mode=1777,size=" + strconv.FormatInt(min(shared, usualShared), 10)})
}

// addRun mounts /run, unless a person shows a folder as that. Who finds a name there takes what is at it for the system's, as glibc does /run/nscd: nobody in the sandbox
// makes one, nor puts another in the place of these. A mount can't be renamed.
func (l *layout) addRun(binds []Bind) {
	if slices.ContainsFunc(binds, func(b Bind) bool { return cmp.Or(b.Target, b.Source) == "/run" }) {
		return
	}
	const plain = unix.MS_NOSUID | unix.MS_NODEV
	l.add(&configs.Mount{Source: "tmpfs", Destination: "/run", Device: "tmpfs", Flags: plain | unix.MS_RDONLY, Data: "mode=755,size=64k"})
	l.add(&configs.Mount{Source: "tmpfs", Destination: "/run/lock", Device: "tmpfs", Flags: plain, Data: "mode=1777,size=64m"})
	l.add(&configs.Mount{Source: "tmpfs", Destination: pid1.SocketDir, Device: "tmpfs", Flags: plain, Data: "mode=755,size=64k"})
	l.add(&configs.Mount{Source: "tmpfs", Destination: pid1.ProgramDir, Device: "tmpfs", Flags: plain | unix.MS_RDONLY, Data: "mode=755,size=64k"})
}

func (l *layout) addSystem() error {
	for _, folder := range systemFolders {
		info, err := os.Lstat(folder)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return fmt.Errorf("cannot show %q in the sandbox: %w", folder, err)
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(folder)
			if err == nil {
				err = os.Symlink(target, filepath.Join(l.rootfs, folder))
			}
			if err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("cannot show %q in the sandbox: %w", folder, err)
			}
		case info.IsDir():
			l.shown = append(l.shown, shown{source: folder, target: folder, system: true})
		}
	}
	return nil
}
