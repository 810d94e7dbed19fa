package box

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"
)

// area is a part of the sandbox's files where the agent may make and rename folders at will.
type area struct {
	target string
	host   string   // where what it makes there is
	lower  []string // what stands behind that, topmost first
}

// areas are the home and /tmp. In an overlay over a folder of the host's nothing has to be done: it
// renames no folder of its lower layer (overlayfs.rst, "Renaming directories").
func areas(spec Spec) []area {
	list := []area{{target: "/tmp", host: spec.Temp}}
	switch {
	case spec.Home == "":
	case spec.HomeUpper != "":
		list = append(list, area{spec.HomeTo, spec.HomeUpper, append(slices.Clone(spec.HomeAbove), spec.Home)})
	default:
		list = append(list, area{target: spec.HomeTo, host: spec.Home})
	}
	slices.SortFunc(list, func(a, b area) int { return depth(b.target) - depth(a.target) }) // the innermost counts
	return list
}

// anchor has the folders above each mount in such an area be mounts themselves: a mount is neither renamed nor
// removed (rename(2), EBUSY). Else the agent could move them away with what is mounted there, and put what it likes at
// the paths of the project or of a person's tools.
func (l *layout) anchor(spec Spec) error {
	there := map[string]bool{}
	for _, m := range l.mounts {
		there[m.Destination] = true
	}
	for _, m := range slices.Clone(l.mounts) {
		i := slices.IndexFunc(areas(spec), func(a area) bool { return strings.HasPrefix(m.Destination, a.target+"/") })
		if i < 0 {
			continue
		}
		a := areas(spec)[i]
		rel := strings.TrimPrefix(m.Destination, a.target+"/")
		for _, dir := range parents(rel) {
			target := filepath.Join(a.target, dir)
			if there[target] {
				continue
			}
			if err := a.make(dir); err != nil {
				return fmt.Errorf("cannot show %q in the sandbox: %w", m.Destination, err)
			}
			there[target] = true
			l.add(&configs.Mount{Source: filepath.Join(l.rootfs, target), Destination: target, Device: "bind", Flags: unix.MS_BIND})
		}
	}
	return nil
}

// make makes a folder, unless there is one. What earlier sessions made there is hostile: no link is followed.
func (a area) make(rel string) error {
	for _, host := range slices.Concat([]string{a.host}, a.lower) {
		switch info, err := lstatBeneath(host, rel); {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil || info.Mode&unix.S_IFMT != unix.S_IFDIR:
			return fmt.Errorf("%q, which an earlier session made, is no folder; remove it", filepath.Join(host, rel))
		}
		return nil
	}
	root, err := os.OpenRoot(a.host)
	if err != nil {
		return err
	}
	defer root.Close()
	return root.Mkdir(rel, 0o755)
}

// lstatBeneath looks at a path below a folder, through no link.
func lstatBeneath(folder, rel string) (st unix.Stat_t, err error) {
	dir, err := unix.Open(folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return st, err
	}
	defer unix.Close(dir)
	fd, err := unix.Openat2(dir, rel, &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return st, err
	}
	defer unix.Close(fd)
	return st, unix.Fstat(fd, &st)
}
