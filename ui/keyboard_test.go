package ui

import (
	"errors"
	"testing"

	"github.com/creack/pty"

	"stepbox/session/e2e/must"
)

// A terminal that goes while its keys are awaited is gone, however the kernel says so.
func TestKeyboardOfATerminalThatGoes(t *testing.T) {
	t.Parallel()
	for range 2000 {
		theirs, ours, err := pty.Open()
		must.OK(t, err)
		began, got := make(chan bool), make(chan error)
		go func() {
			close(began)
			_, err := keyboard{ours}.Read(make([]byte, 1))
			got <- err
		}()
		<-began
		must.OK(t, theirs.Close())
		if err := <-got; !errors.Is(err, ErrGone) {
			t.Fatalf("it says %v", err)
		}
		must.OK(t, ours.Close())
	}
}
