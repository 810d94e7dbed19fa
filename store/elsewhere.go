package store

import (
	"fmt"
	"os"
	"time"
)

// JournalOf opens the journal of a session whose terminal was recorded elsewhere,
// and has nothing yet: it began when one says, and frames are from when At says.
func (s *Store) JournalOf(session string, began time.Time) (*Journal, error) {
	j, err := s.openJournal(session, began)
	if err != nil {
		return nil, fmt.Errorf("cannot write the terminal journal of session %.80q: %w", session, fileFault(s.dir, err))
	}
	return j, nil
}

// At says when the frames from here on are from, since the journal began. What is
// before the last frame is taken to be of its time. Other journals go by the clock.
func (j *Journal) At(at time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.at = uint64(max(0, at.Milliseconds()))
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
