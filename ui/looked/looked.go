// Package looked remembers up to which checkpoint of a session a person has
// looked at its changes: one small file for each session, in a folder of the
// person's own. Two screens may use it at once; the last word counts.
package looked

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Folder is where it is remembered. It is made when something first is.
type Folder string

func (f Folder) path(session string) (string, error) {
	if session == "" || session != filepath.Base(session) || strings.HasPrefix(session, ".") {
		return "", fmt.Errorf("cannot remember what was looked at: %q is no session", session)
	}
	return filepath.Join(string(f), session), nil
}

// At is the checkpoint that was looked at last; 0 when none was, or the file
// can't be read: all that changed is shown then.
func (f Folder) At(session string) int64 {
	path, err := f.path(session)
	if err != nil {
		return 0
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// Set remembers a checkpoint.
func (f Folder) Set(session string, checkpoint int64) error {
	path, err := f.path(session)
	if err == nil {
		err = os.MkdirAll(string(f), 0o700)
	}
	if err == nil {
		// Renamed into place, so that nobody reads half a number.
		next := filepath.Join(string(f), "."+session+"."+strconv.Itoa(os.Getpid()))
		if err = os.WriteFile(next, []byte(strconv.FormatInt(checkpoint, 10)+"\n"), 0o600); err == nil {
			err = os.Rename(next, path)
		}
	}
	if err != nil {
		return fmt.Errorf("cannot remember what was looked at: %w", err)
	}
	return nil
}
