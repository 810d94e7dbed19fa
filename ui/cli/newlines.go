package cli

import (
	"bytes"
	"fmt"
	"io"
)

// newlines undoes what a terminal does to output (ONLCR in termios(3)): it puts
// a carriage return before each newline, which no file and no pipe wants.
type newlines struct {
	w       io.Writer
	pending bool // a carriage return was read: the next byte tells whose it is
	buf     []byte
}

// Write is as io.Writer's; of an error it can't tell how much was written.
func (n *newlines) Write(p []byte) (int, error) {
	out := n.buf[:0]
	for rest := p; len(rest) > 0; {
		if n.pending {
			n.pending = false
			if rest[0] != '\n' {
				out = append(out, '\r')
			}
		}
		i := bytes.IndexByte(rest, '\r')
		if i < 0 {
			out = append(out, rest...)
			break
		}
		out = append(out, rest[:i]...)
		n.pending, rest = true, rest[i+1:]
	}
	n.buf = out
	return len(p), n.write(out)
}

// flush writes what waited for another byte, at the end.
func (n *newlines) flush() error {
	if !n.pending {
		return nil
	}
	n.pending = false
	return n.write([]byte{'\r'})
}

func (n *newlines) write(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if _, err := n.w.Write(p); err != nil {
		return fmt.Errorf("cannot write the agent's output: %w", err)
	}
	return nil
}
