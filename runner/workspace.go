package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"stepbox/runner/box"
	"stepbox/runner/overlay/manifest"
)

// system are folders that a sandbox has of its own or shows as they are, with
// all that is below them; alone are those of which that isn't so.
var (
	system = []string{"/proc", "/sys", "/dev", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/boot"}
	alone  = []string{"/run", "/usr", "/var", "/tmp", "/opt", "/home", "/mnt", "/media", "/srv", "/nix"}
)

// CheckWorkspace says in words why a folder can't be a project, or nil. The
// path has to be absolute, clean and free of links; others are the session's
// own folders, which must not be below it or above it.
func CheckWorkspace(path string, others ...string) error {
	refuse := func(format string, args ...any) error {
		return &StartError{Reason: fmt.Sprintf("cannot use %q as a project: ", path) + fmt.Sprintf(format, args...)}
	}
	if !utf8.ValidString(path) {
		return refuse("its name isn't valid UTF-8")
	}
	if strings.ContainsFunc(path, unicode.IsControl) {
		return refuse("its name holds control characters")
	}
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return refuse("it isn't an absolute path")
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refuse("there is no such folder")
	case errors.Is(err, fs.ErrPermission):
		return refuse("it can't be read")
	case err != nil:
		return refuse("%v", err)
	case !info.IsDir():
		return refuse("it is a file, not a folder")
	}
	if real, err := filepath.EvalSymlinks(path); err != nil || real != path {
		return refuse("it leads through a symbolic link; use %q", real)
	}
	if unix.Access(path, unix.R_OK|unix.X_OK) != nil {
		return refuse("it can't be read")
	}
	if path == "/" {
		return refuse("it is the root of all files; start in a project's folder")
	}
	if home, err := os.UserHomeDir(); err == nil && home != "" {
		if resolved, err := filepath.EvalSymlinks(home); err == nil {
			home = resolved
		}
		if manifest.Within(home, path) {
			return refuse("it is your home folder or holds it, with keys and settings that aren't the agent's business; start in a project's folder")
		}
	}
	if slices.Contains(alone, path) || slices.ContainsFunc(system, func(folder string) bool { return manifest.Within(path, folder) }) {
		return refuse("it is the system's; start in a project's folder")
	}
	for _, other := range others {
		if resolved, err := filepath.EvalSymlinks(other); err == nil {
			other = resolved
		}
		if manifest.Within(path, other) || manifest.Within(other, path) {
			return refuse("Stepbox keeps its own files in %q", other)
		}
	}
	below, err := box.Submounts(path)
	if err != nil {
		return err
	}
	if len(below) > 0 {
		slices.Sort(below)
		return refuse("something is mounted below it (%s), and the kernel can't put such a folder under an overlay; unmount it, or start in a folder without mounts below", list(below))
	}
	return nil
}

// list names the first few of several things.
func list(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
