package pid1

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Find resolves a program as a shell would, in the sandbox's own view of its
// files, so that a missing one is said before anything runs. The working
// directory has to exist too.
func Find(program Program) (string, error) {
	name := program.Argv[0]
	info, err := os.Stat(program.Cwd)
	if err != nil {
		return "", fmt.Errorf("cannot start in %q: %w", program.Cwd, reason(err))
	}
	if !info.IsDir() {
		return "", fmt.Errorf("cannot start in %q: %w", program.Cwd, unix.ENOTDIR)
	}
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(program.Cwd, path)
		}
		if err := executable(path); err != nil {
			code := CannotRun
			if errors.Is(err, fs.ErrNotExist) {
				code = NotFound
			}
			return "", &startError{code, fmt.Sprintf("cannot start %q: %v in the sandbox", name, err)}
		}
		return path, nil
	}
	denied := false
	for _, dir := range filepath.SplitList(variable(program.Env, "PATH")) {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(program.Cwd, dir)
		}
		path := filepath.Join(dir, name)
		switch err := executable(path); {
		case err == nil:
			return path, nil
		case errors.Is(err, fs.ErrPermission):
			denied = true
		}
	}
	if denied {
		return "", &startError{CannotRun, fmt.Sprintf("cannot start %q: it may not be executed in the sandbox", name)}
	}
	return "", &startError{NotFound, fmt.Sprintf("cannot start %q: no such program in the sandbox's PATH", name)}
}

// The exit codes that shells give for programs that can't be started (POSIX,
// "Exit Status for Commands").
const (
	CannotRun = 126
	NotFound  = 127
)

// startError is a program that can't be started, with the code that says so.
type startError struct {
	code int
	text string
}

func (e *startError) Error() string { return e.text }

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return reason(err)
	}
	if info.IsDir() {
		return unix.EISDIR
	}
	return unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS)
}

// reason takes the path off an error that will name it anyway.
func reason(err error) error {
	if wrapped := (*fs.PathError)(nil); errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// variable is a variable's value: that of its first entry, as getenv(3) reads it.
func variable(env []string, name string) string {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}
