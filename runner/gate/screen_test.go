package gate

import (
	"bytes"
	"io"
	"os"
	"sync"
)

// screen collects what a terminal shows.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
	done chan struct{}
}

func newScreen(master *os.File) *screen {
	s := &screen{done: make(chan struct{})}
	go func() {
		defer close(s.done)
		io.Copy(s, master) // ends with EIO when the last program is gone
	}()
	return s
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) mark() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Len()
}

func (s *screen) since(from int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.text.Bytes()[from:])
}

func (s *screen) wait() { <-s.done }
