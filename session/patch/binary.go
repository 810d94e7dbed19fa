package patch

import (
	"bufio"
	"cmp"
	"compress/zlib"
	"fmt"
	"io"

	"stepbox/runner/overlay/diff"
)

// binary writes a whole content as git's binary patches have it: its length,
// then what zlib makes of it in lines of at most 52 bytes, each with its
// length as a letter, in git's base 85.
func (p *writer) binary(f *diff.File, c content) {
	p.line("literal %d", c.size)
	lines := &base85{w: bufio.NewWriter(p.w)}
	z := zlib.NewWriter(lines)
	if f != nil {
		r, _ := p.open(f)
		if p.err != nil {
			return
		}
		defer r.Close()
		if _, err := io.Copy(z, r); err != nil {
			p.err = fmt.Errorf("cannot read %q: %w", f.Path, err)
			return
		}
	}
	err := z.Close()
	if err == nil {
		err = lines.end()
	}
	p.err = cmp.Or(p.err, err)
	p.line("")
}

// perLine is how many bytes stand on a line.
const perLine = 52

// digits are git's, those of RFC 1924.
const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

// base85 writes lines of what it is given.
type base85 struct {
	w    *bufio.Writer
	held []byte // less than a line
}

func (b *base85) Write(p []byte) (int, error) {
	all := append(b.held, p...)
	rest := all
	for len(rest) >= perLine {
		if err := b.row(rest[:perLine]); err != nil {
			return 0, err
		}
		rest = rest[perLine:]
	}
	b.held = append(all[:0], rest...)
	return len(p), nil
}

// end writes what is left.
func (b *base85) end() error {
	if len(b.held) > 0 {
		if err := b.row(b.held); err != nil {
			return err
		}
	}
	return b.w.Flush()
}

// row writes one line: A to Z are 1 to 26 bytes, a to z the rest.
func (b *base85) row(p []byte) error {
	length := byte('A' + len(p) - 1)
	if len(p) > 26 {
		length = byte('a' + len(p) - 27)
	}
	_ = b.w.WriteByte(length) // the last call tells
	for len(p) > 0 {
		var four [4]byte
		p = p[copy(four[:], p):]
		v := uint32(four[0])<<24 | uint32(four[1])<<16 | uint32(four[2])<<8 | uint32(four[3])
		var five [5]byte
		for i := 4; i >= 0; i-- {
			five[i] = digits[v%85]
			v /= 85
		}
		_, _ = b.w.Write(five[:])
	}
	return b.w.WriteByte('\n')
}
