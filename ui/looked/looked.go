// Package looked remembers up to which checkpoint of a session a person has
// looked at its changes. Two screens may use it at once; the last word counts.
package looked

import (
	"fmt"
	"strconv"
	"strings"

	"stepbox/ui/kept"
)

// Folder is where it is remembered.
type Folder kept.Folder

// At is the checkpoint that was looked at last; 0 when none was, or it can't be
// read: all that changed is shown then.
func (f Folder) At(session string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(kept.Folder(f).Read(session)), 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// Set remembers a checkpoint.
func (f Folder) Set(session string, checkpoint int64) error {
	if err := kept.Folder(f).Write(session, strconv.FormatInt(checkpoint, 10)+"\n"); err != nil {
		return fmt.Errorf("cannot remember what was looked at: %w", err)
	}
	return nil
}
