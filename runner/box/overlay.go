package box

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/inode"
)

// escape writes a path as an overlay's mount option: colons part lower layers,
// commas part options. See overlayfs.rst.
var escape = strings.NewReplacer(`\`, `\\`, `:`, `\:`, `,`, `\,`).Replace

func mountTable() ([]*mountinfo.Info, error) {
	mounts, err := mountinfo.GetMounts(nil)
	if err != nil {
		return nil, fmt.Errorf("cannot read the host's mounts: %w", err)
	}
	return mounts, nil
}

// Submounts lists what is mounted below a folder, which no overlay in a user
// namespace may have as its lower layer: the mounts are locked together.
func Submounts(folder string) ([]string, error) {
	mounts, err := mountTable()
	if err != nil {
		return nil, err
	}
	return submounts(mounts, folder), nil
}

func submounts(mounts []*mountinfo.Info, folder string) []string {
	var below []string
	prefix := strings.TrimSuffix(folder, "/") + "/"
	for _, m := range mounts {
		if strings.HasPrefix(m.Mountpoint, prefix) {
			below = append(below, m.Mountpoint)
		}
	}
	return below
}

// MountsBelow lists what a process has mounted below a folder that is a mount itself, by
// its own paths. A mount of what is there anyway, see anchor, is left out.
func MountsBelow(pid int, folder string) ([]string, error) {
	table, err := os.Open("/proc/" + strconv.Itoa(pid) + "/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("cannot read the mounts of process %d: %w", pid, err)
	}
	defer table.Close()
	mounts, err := mountinfo.GetMountsFromReader(table, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot read the mounts of process %d: %w", pid, err)
	}
	i := slices.IndexFunc(mounts, func(m *mountinfo.Info) bool { return m.Mountpoint == folder })
	if i < 0 {
		return nil, fmt.Errorf("process %d has nothing mounted at %q", pid, folder)
	}
	home := mounts[i]
	return submounts(slices.DeleteFunc(mounts, func(m *mountinfo.Info) bool {
		rel, below := strings.CutPrefix(m.Mountpoint, folder+"/")
		return below && m.Major == home.Major && m.Minor == home.Minor && m.Root == filepath.Join(home.Root, rel)
	}), folder), nil
}

// addWorkspace mounts the project's overlay at the project's own path, and that of
// the folder beyond it, if there is one.
func (l *layout) addWorkspace(spec Spec, mounts []*mountinfo.Info) error {
	if below := submounts(mounts, spec.Workspace); len(below) > 0 {
		return fmt.Errorf("cannot use %q as a project: %q is mounted below it, and the kernel can't put such a folder under an overlay; start in a folder without mounts below it", spec.Workspace, below[0])
	}
	if o := spec.Outer; o != nil {
		if err := l.overUpper(o.Folder, o.Folder, escape(o.Lower), o.Upper, o.Work); err != nil {
			return err
		}
	}
	lower := layers(spec.Workspace, spec.Above)
	var covered []string
	if len(spec.Hidden) > 0 {
		front := filepath.Join(l.dir, "hidden")
		var err error
		if covered, err = hide(front, spec.Workspace, spec.Hidden); err != nil {
			return err
		}
		lower = escape(front) + ":" + lower
	}
	if err := l.overUpper(spec.Workspace, spec.Workspace, lower, spec.Upper, spec.Work); err != nil {
		return err
	}
	for _, path := range covered {
		l.masks = append(l.masks, filepath.Join(spec.Workspace, path))
	}
	return l.fix(spec)
}

// fix has files of the project be mounts of their own, read-only: they can't be written,
// and as mounts neither be removed nor renamed or replaced. The folders that they are in
// can't be moved away with them, since these are the project's own, and an overlay
// renames no folder of its lower layer (overlayfs.rst, "Renaming directories").
func (l *layout) fix(spec Spec) error {
	for _, path := range spec.ReadOnly {
		if !filepath.IsLocal(path) || filepath.Clean(path) == "." {
			return fmt.Errorf("cannot make %q read-only: it isn't below the project", path)
		}
		if realParents(spec.Workspace, path) {
			l.fixed = append(l.fixed, filepath.Join(spec.Workspace, path))
		}
	}
	return nil
}

// layers is the mount option for a folder behind others. Sockets in it need no
// hiding: through an overlay their inode is another, and nobody listens there.
func layers(folder string, above []string) string {
	lower := escape(folder)
	for _, a := range slices.Backward(above) {
		lower = escape(a) + ":" + lower
	}
	return lower
}

// overUpper mounts an overlay over a folder of the host's.
func (l *layout) overUpper(folder, target, lower, upper, work string) error {
	if err := mirror(upper, folder); err != nil {
		return fmt.Errorf("cannot prepare the session's upper folder: %w", err)
	}
	l.add(&configs.Mount{
		Source: "overlay", Device: "overlay", Destination: target,
		Flags: unix.MS_NOSUID | unix.MS_NODEV,
		Data:  "lowerdir=" + lower + ",upperdir=" + escape(upper) + ",workdir=" + escape(work) + ",userxattr",
	})
	return nil
}

// mirror makes an upper folder look like the lower one that it covers, since
// the merged folder's mode and times are the upper's. An existing one, of a
// resumed session, is left as the agent left it.
func mirror(upper, lower string) error {
	if err := os.Mkdir(upper, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	return inode.Look(upper, lower)
}

// hide fills a layer that goes in front of the project's own with whiteouts:
// character devices 0/0, which any user may make since Linux 5.8 and overlayfs
// of every age takes in a lower layer, unlike the newer attribute form (6.7). A
// name that isn't there yet is hidden when it comes.
// Where the filesystem has none, the paths come back and are covered by mounts
// instead: their names show, their contents don't.
func hide(front, workspace string, paths []string) (covered []string, err error) {
	fail := func(err error) error {
		return fmt.Errorf("cannot hide the project's private files: %w", err)
	}
	if err := os.Mkdir(front, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fail(err)
	}
	made := map[string]bool{".": true}
	order := []string{"."}
	for _, path := range paths {
		if !filepath.IsLocal(path) || filepath.Clean(path) == "." {
			return nil, fail(fmt.Errorf("%q isn't below the project", path))
		}
		path = filepath.Clean(path)
		if !realParents(workspace, path) {
			continue // nothing there to be hidden
		}
		for _, dir := range parents(path) {
			if !made[dir] {
				if err := os.Mkdir(filepath.Join(front, dir), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
					return nil, fail(err)
				}
				made[dir] = true
				order = append(order, dir)
			}
		}
		err := unix.Mknod(filepath.Join(front, path), unix.S_IFCHR, 0)
		if err == unix.EPERM || err == unix.EOPNOTSUPP {
			covered = append(covered, path)
		} else if err != nil && err != unix.EEXIST {
			return nil, fail(err)
		}
	}
	// Children first, or making them would move their parents' times again.
	for i := len(order) - 1; i >= 0; i-- {
		if err := inode.Look(filepath.Join(front, order[i]), filepath.Join(workspace, order[i])); err != nil {
			return nil, fail(err)
		}
	}
	return covered, nil
}

// parents lists the folders above a relative path, outermost first.
func parents(path string) []string {
	var out []string
	for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
		out = append([]string{dir}, out...)
	}
	return out
}

// realParents says whether every folder above a path is one, not a link to one.
func realParents(root, path string) bool {
	for _, dir := range parents(path) {
		info, err := os.Lstat(filepath.Join(root, dir))
		if err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}
