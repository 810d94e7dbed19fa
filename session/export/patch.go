package export

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"strings"

	"stepbox/session/redact"
)

// patched writes the changes as a patch. What begins each line isn't text, so that a
// secret of several lines is found, and the lines stay as many as they are. A file in
// which something was redacted is a remark: applied it would be another file.
func (r *run) patched() error {
	if r.req.NoRedact {
		return r.patch(r.out)
	}
	held, err := r.Store.Temp()
	if err != nil {
		return err
	}
	defer held.Close()
	p := &patchWriter{run: r, held: held, buf: bufio.NewWriterSize(held, 64<<10)}
	p.stream = redact.Stream[struct{}]{R: r.red, Where: "the patch", Emit: func(piece redact.Piece[struct{}]) error {
		_, err := p.buf.Write(piece.Data)
		return err
	}}
	if err := r.patch(p); err != nil {
		return err
	}
	return p.close()
}

type patchWriter struct {
	*run
	stream redact.Stream[struct{}]
	held   *os.File      // what a file's part of the patch is so far
	buf    *bufio.Writer // before it
	secret int           // what was redacted before it
	line   []byte        // the beginning of one that isn't known yet
	within bool          // a line's first byte was passed on
	binary bool          // within a binary difference, which has no text
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
			} else if bytes.HasPrefix(p.line, newFile) || p.line[0] == '#' { // a remark is of no file
				p.binary = false
				if err := p.close(); err != nil {
					return 0, err
				}
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

// close writes a file's part of the patch.
func (p *patchWriter) close() error {
	err := errors.Join(p.stream.Close(), p.buf.Flush())
	if err == nil {
		_, err = p.held.Seek(0, io.SeekStart)
	}
	if n := p.redacted(); err == nil && n == p.secret {
		_, err = io.Copy(p.out, p.held)
	} else if err == nil {
		p.secret = n
		err = remark(p.out, bufio.NewReader(io.MultiReader(strings.NewReader("not in this patch, for it has what was redacted:\n"), p.held)))
	}
	if err == nil {
		_, err = p.held.Seek(0, io.SeekStart)
	}
	return errors.Join(err, p.held.Truncate(0))
}

// remark copies lines as ones that git apply passes over.
func remark(to *bufio.Writer, from *bufio.Reader) error {
	for begin := true; ; {
		part, err := from.ReadSlice('\n')
		if begin && bytes.HasPrefix(part, []byte("index ")) {
			continue // a hash by which a short secret is guessed
		}
		if begin && len(part) > 0 {
			_, _ = to.WriteString("# ") // an error stays in it
		}
		if _, werr := to.Write(part); werr != nil {
			return werr
		}
		switch begin = err == nil; {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}

func (p *patchWriter) add(b []byte, text bool) error {
	if len(b) == 0 {
		return nil
	}
	return p.stream.Add(redact.Piece[struct{}]{Data: bytes.Clone(b), Text: text})
}
