package export

import (
	"bytes"

	"stepbox/session/redact"
)

// patched writes the changes as a patch. What begins each line isn't text, so that a
// secret of several lines is found, and the lines stay as many as they are.
func (r *run) patched() error {
	if r.req.NoRedact {
		return r.patch(r.out)
	}
	p := &patchWriter{stream: redact.Stream[struct{}]{R: r.red, Where: "the patch", Emit: func(p redact.Piece[struct{}]) error {
		_, err := r.out.Write(p.Data)
		return err
	}}}
	if err := r.patch(p); err != nil {
		return err
	}
	return p.stream.Close()
}

type patchWriter struct {
	stream redact.Stream[struct{}]
	line   []byte // the beginning of one that isn't known yet
	within bool   // a line's first byte was passed on
	binary bool   // within a binary difference, which has no text
}

var (
	binaryBegins = []byte("GIT binary patch")
	newFile      = []byte("diff --git ")
)

// Write takes the next bytes of a patch.
func (p *patchWriter) Write(b []byte) (int, error) {
	all := len(b)
	for len(b) > 0 {
		n := bytes.IndexByte(b, '\n') + 1
		whole := n > 0
		if !whole {
			n = len(b)
		}
		if !p.within { // the first bytes say what the line is
			p.line = append(p.line, b[:n]...)
			b = b[n:]
			if !whole && len(p.line) < len(binaryBegins) {
				continue
			}
			if bytes.HasPrefix(p.line, binaryBegins) {
				p.binary = true
			} else if bytes.HasPrefix(p.line, newFile) {
				p.binary = false
			}
			line := p.line
			p.line = nil
			if err := p.add(line[:1], false); err != nil {
				return 0, err
			}
			if err := p.add(line[1:], !p.binary); err != nil {
				return 0, err
			}
		} else {
			if err := p.add(b[:n], !p.binary); err != nil {
				return 0, err
			}
			b = b[n:]
		}
		p.within = !whole
	}
	return all, nil
}

func (p *patchWriter) add(b []byte, text bool) error {
	if len(b) == 0 {
		return nil
	}
	return p.stream.Add(redact.Piece[struct{}]{Data: bytes.Clone(b), Text: text})
}
