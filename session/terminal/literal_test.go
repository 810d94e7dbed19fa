package terminal

import (
	"bytes"
	"io"
	"testing"

	"github.com/creack/pty"

	"stepbox/session/e2e/must"
)

// What is piped arrives byte by byte through a terminal that reads by lines.
func TestPipedInputIsLiteral(t *testing.T) {
	master, slave, err := pty.Open()
	must.OK(t, err)
	defer master.Close()
	defer slave.Close()
	must.OK(t, silence(master))
	if !byLines(master) {
		t.Fatal("a new terminal doesn't read by lines")
	}
	var all []byte
	for i := range 256 {
		all = append(all, byte(i))
	}
	want := bytes.Join([][]byte{all, bytes.Repeat([]byte("x"), 3*longestLine), []byte("\n"), bytes.Repeat([]byte("y"), longestLine), []byte("\nz")}, nil)
	written := make(chan error, 1)
	go func() {
		var l literal
		for rest := want; len(rest) > 0; { // in pieces that end anywhere
			n := min(len(rest), 777)
			if _, err := master.Write(l.typed(rest[:n])); err != nil {
				written <- err
				return
			}
			rest = rest[n:]
		}
		_, err := master.Write(l.end())
		written <- err
	}()
	got, err := io.ReadAll(slave)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("of %d bytes %d arrived, the same: %v, %v", len(want), len(got), bytes.Equal(got, want), err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}
