package merge

import (
	"bytes"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
)

// maxLine is how long a line of text may be, in bytes. Longer ones are data.
const maxLine = 10 << 10

// Readable says whether bytes are characters, whatever the length of lines: nine of ten
// have to be, and none of the first 8,000 a NUL, which is git's rule.
func Readable(b []byte) bool {
	return bytes.IndexByte(b[:min(len(b), 8000)], 0) < 0 && (utf8.Valid(b) || len(bytes.ToValidUTF8(b, nil))*10 >= len(b)*9)
}

// Binary says whether bytes aren't text: not readable, or with a line that no person
// would read.
func Binary(b []byte) bool {
	if !Readable(b) {
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
// order, each edit of whole lines, and as few lines as can be. Where finding that
// out would take too long, it is one edit of all between what both begin and end
// with: see Compare.
func Edits(before, after string) []udiff.Edit {
	edits, _ := Compare(before, after)
	return edits
}

// Compare is Edits, and says whether the edits are as small as can be. That
// depends on nothing but the texts, so that hunks have the same numbers whenever
// they are worked out.
func Compare(before, after string) (edits []udiff.Edit, exact bool) {
	c := comparison{effort: maxEffort}
	c.intern(before, after)
	exact = c.run()
	from, to := 0, 0 // in before and after
	for i, j := 0, 0; i < len(c.old.id) || j < len(c.new.id); {
		if !c.old.is(i) && !c.new.is(j) {
			from, to = from+c.old.size[i], to+c.new.size[j]
			i, j = i+1, j+1
			continue
		}
		e := udiff.Edit{Start: from}
		start := to
		for ; c.old.is(i); i++ {
			from += c.old.size[i]
		}
		for ; c.new.is(j); j++ {
			to += c.new.size[j]
		}
		e.End, e.New = from, after[start:to]
		edits = append(edits, e)
	}
	return edits, exact
}
