package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Names in the store's folder.
const (
	database  = "stepbox.db"
	bodiesDir = "bodies"
	tmpDir    = "bodies/tmp" // beside what it is renamed to, on the same filesystem
	sessions  = "sessions"
	lockName  = "schema.lock"
	suspicion = "check-me" // the next Open checks the whole database
)

// Dir is where the record is: $STEPBOX_DATA, else $XDG_DATA_HOME/stepbox, else
// ~/.local/share/stepbox. It makes nothing. Relative values of XDG_DATA_HOME
// are ignored, as the XDG base directory specification wants it.
func Dir() (string, error) {
	if d := os.Getenv("STEPBOX_DATA"); d != "" {
		if !filepath.IsAbs(d) {
			return "", fmt.Errorf("cannot use STEPBOX_DATA %q: it must be an absolute path", d)
		}
		return filepath.Clean(d), nil
	}
	if d := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "stepbox"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return "", errors.New("cannot tell where the record is: set HOME, or STEPBOX_DATA to an absolute path")
	}
	return filepath.Join(home, ".local", "share", "stepbox"), nil
}

// makeDirs makes the folders that a store has, for the user alone.
func makeDirs(dir string) error {
	for _, d := range []string{dir, filepath.Join(dir, bodiesDir), filepath.Join(dir, tmpDir), filepath.Join(dir, sessions)} {
		err := os.MkdirAll(d, 0o700)
		if err != nil {
			if errors.Is(err, fs.ErrPermission) {
				return readOnly(dir, err)
			}
			return fmt.Errorf("cannot make the record's folder %q: %w", d, fileFault(dir, err))
		}
	}
	return nil
}

// checkPrivate refuses folders that others own or can enter: the record holds
// what the agent printed and the contents of files.
func checkPrivate(dir string) error {
	for _, d := range []string{dir, filepath.Join(dir, bodiesDir), filepath.Join(dir, sessions)} {
		st, err := os.Stat(d)
		if errors.Is(err, fs.ErrNotExist) && d != dir {
			continue // a record that is only read may lack it
		}
		if err != nil {
			return fmt.Errorf("cannot look at the record's folder %q: %w", d, err)
		}
		if !st.IsDir() {
			return fmt.Errorf("cannot use %q for the record: it isn't a folder", d)
		}
		if s, ok := st.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Geteuid() {
			return fmt.Errorf("%w: %q belongs to uid %d and you are uid %d; set STEPBOX_DATA to a folder of your own", ErrPrivate, d, s.Uid, os.Geteuid())
		}
		if st.Mode().Perm()&0o077 != 0 {
			return fmt.Errorf("%w: others can look into %q (mode %04o); run: chmod 700 %s", ErrPrivate, d, st.Mode().Perm(), quote(d))
		}
	}
	return nil
}

// checkWritable refuses what SQLite would silently open for reading only.
func checkWritable(dir string) error {
	for _, p := range []string{dir, filepath.Join(dir, bodiesDir), filepath.Join(dir, tmpDir), filepath.Join(dir, sessions), filepath.Join(dir, database)} {
		err := unix.Faccessat(unix.AT_FDCWD, p, unix.W_OK, unix.AT_EACCESS)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return readOnly(dir, &fs.PathError{Op: "write to", Path: p, Err: err})
		}
	}
	return nil
}

// createDatabase makes an empty file that only the user can read, since SQLite
// would make it by the umask; its -wal and -shm files get the same mode. An
// existing file is left alone and never opened here: closing any descriptor of
// it would drop the locks that SQLite holds in this process (fcntl(2)).
func createDatabase(dir string) error { return createNamed(dir, database) }

func createNamed(dir, name string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrPermission):
		return readOnly(dir, err)
	case err != nil:
		return fmt.Errorf("cannot create the record: %w", fileFault(dir, err))
	}
	return f.Close()
}

// checkID refuses names of sessions that can't be names of folders: they have 1
// to 64 small letters, digits, - and _, and no dash first.
func checkID(id string) error {
	rest := strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789_-")
	if id == "" || len(id) > 64 || id[0] == '-' || rest != "" {
		return fmt.Errorf("there is no session %.80q: %w", id, ErrNotFound)
	}
	return nil
}

// SessionDir is a session's own folder. CreateSession makes it. What isn't the
// name of a session gives a path that doesn't exist.
func (s *Store) SessionDir(id string) string {
	if checkID(id) != nil {
		id = ".no-such-session"
	}
	return filepath.Join(s.dir, sessions, id)
}

// Temp makes a file without a name where the record is, for what is too large for
// memory.
func (s *Store) Temp() (*os.File, error) {
	f, err := os.CreateTemp(s.dir, "temporary-*")
	if err == nil {
		err = os.Remove(f.Name())
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make a temporary file: %w", fileFault(s.dir, err))
	}
	return f, nil
}
