package kept

import (
	"fmt"
	"strconv"
	"strings"
)

// Looked keeps up to which checkpoint of each session a person has looked at its changes.
type Looked Folder

// At is the checkpoint that was looked at last; 0 when none was, or it can't be
// read: all that changed is shown then.
func (l Looked) At(session string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(Folder(l).Read(session)), 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// Set remembers a checkpoint.
func (l Looked) Set(session string, checkpoint int64) error {
	if err := Folder(l).Write(session, strconv.FormatInt(checkpoint, 10)+"\n"); err != nil {
		return fmt.Errorf("cannot remember what was looked at: %w", err)
	}
	return nil
}
