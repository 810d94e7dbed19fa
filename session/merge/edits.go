package merge

import (
	"bytes"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/aymanbagabas/go-udiff/myers"
)

// maxLine is how long a line of text may be, in bytes. Longer ones are data.
const maxLine = 10 << 10

// exactLines is how many lines of both texts together may differ for a minimal
// difference to be affordable.
const exactLines = 1500

// Binary says whether bytes aren't text: git's rule, a NUL among the first
// 8,000, or a line that no person would read.
func Binary(b []byte) bool {
	if bytes.IndexByte(b[:min(len(b), 8000)], 0) >= 0 {
		return true
	}
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			i = len(b)
		}
		if i > maxLine {
			return true
		}
		b = b[min(i+1, len(b)):]
	}
	return false
}

// Edits compares two texts line by line: what of before is replaced by what, in
// order, each edit of whole lines. The exact algorithm needs memory in the square
// of the lines that differ, so equal beginnings and ends are taken off first, and
// where too much is left the approximate one serves: its result is right, but may
// show more lines as changed than need be.
func Edits(before, after string) []udiff.Edit {
	prefix := commonLines(before, after)
	b, a := before[prefix:], after[prefix:]
	suffix := commonEnd(b, a)
	b, a = b[:len(b)-suffix], a[:len(a)-suffix]
	var out []udiff.Edit
	if strings.Count(a, "\n")+strings.Count(b, "\n") <= exactLines {
		//lint:ignore SA1019 minimal beyond some fifty edits, as the successor is not
		out = myers.ComputeEdits(b, a)
	} else {
		out = udiff.Lines(b, a)
	}
	for i := range out {
		out[i].Start += prefix
		out[i].End += prefix
	}
	return out
}

// commonLines is the length of the whole lines that two texts begin with alike.
func commonLines(a, b string) int {
	n, line := min(len(a), len(b)), 0
	for i := range n {
		if a[i] != b[i] {
			return line
		}
		if a[i] == '\n' {
			line = i + 1
		}
	}
	if len(a) == len(b) {
		return n
	}
	return line
}

// commonEnd is the length of the whole lines that two texts end with alike.
func commonEnd(a, b string) int {
	n, line := min(len(a), len(b)), 0
	for i := range n {
		if a[len(a)-1-i] != b[len(b)-1-i] {
			break
		}
		// The suffix is whole lines if what comes before it ends one.
		if (i+1 == len(a) || a[len(a)-2-i] == '\n') && (i+1 == len(b) || b[len(b)-2-i] == '\n') {
			line = i + 1
		}
	}
	return line
}
