package box

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// scanLimit bounds how many names a scan of a bind or a system folder looks at.
const scanLimit = 500_000

var errTooMany = errors.New("it holds too many files to look through")

// refuseSockets keeps a bind from carrying a socket in: a read-only mount
// doesn't keep anybody from connecting to one.
func refuseSockets(source string) error {
	seen := 0
	err := filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrPermission) && path != source {
				return nil // the agent, of the same uid, can't look there either
			}
			return err
		}
		if seen++; seen > scanLimit {
			return errTooMany
		}
		if entry.Type()&fs.ModeSocket != 0 {
			return fmt.Errorf("%q is a socket", path)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot show %q in the sandbox: %w", source, err)
	}
	return nil
}

// listeningBelow lists the bound sockets below a folder, relative to it.
// /proc/net/unix has them all, so that the folder itself needn't be searched.
func listeningBelow(folder string) ([]string, error) {
	file, err := os.Open("/proc/net/unix")
	if err != nil {
		return nil, fmt.Errorf("cannot list the host's sockets: %w", err)
	}
	defer file.Close()
	prefix := strings.TrimSuffix(folder, "/") + "/"
	var found []string
	seen := map[string]bool{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		// Num RefCount Protocol Flags Type St Inode Path, the path last and
		// absent for sockets without a name.
		at := strings.Index(lines.Text(), " "+prefix)
		if at < 0 {
			continue
		}
		path := lines.Text()[at+1+len(prefix):]
		if info, err := os.Lstat(prefix + path); err == nil && info.Mode()&fs.ModeSocket != 0 && !seen[path] {
			seen[path] = true
			found = append(found, path)
		}
	}
	return found, nil
}

// privateFolders are where files that only root may read are searched, by the
// shown folder. The rest of /usr is what packages put there, the same for
// everybody.
var privateFolders = map[string]string{"/etc": "/etc", "/opt": "/opt", "/usr": "/usr/local"}

// maskPrivate covers what the world may not read in a system folder of a root
// caller whose owners can't be mapped: the agent owns what root owns, though it
// has none of root's capabilities. What comes later isn't covered, and why is
// said.
func (l *layout) maskPrivate(shown, why string) error {
	folder, ok := privateFolders[shown]
	if !ok {
		return nil
	}
	left := scanLimit
	masks, err := private(folder, &left)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot find what only root may read in %q: %w", folder, err)
	}
	l.masks = append(l.masks, masks...)
	l.notes = append(l.notes, fmt.Sprintf("you are root: a file that only root may read and that the host makes in %s while the session runs could be read (%s)", folder, why))
	return nil
}

// private lists the files below a folder that the world may neither read nor
// execute, and the folders that it may not both list and enter. It looks at no
// more than left names.
func private(folder string, left *int) (found []string, err error) {
	dir, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	if *left -= len(entries); *left < 0 {
		return nil, errTooMany
	}
	for _, entry := range entries {
		if entry.Type()&fs.ModeSymlink != 0 {
			continue
		}
		var st unix.Stat_t
		if unix.Fstatat(int(dir.Fd()), entry.Name(), &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue // gone meanwhile
		}
		path := filepath.Join(folder, entry.Name())
		isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
		switch {
		case isDir && st.Mode&0o005 == 0o005:
			below, err := private(path, left)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			found = append(found, below...)
		case isDir, st.Mode&0o005 == 0:
			found = append(found, path)
		}
	}
	return found, nil
}
