package blame

import (
	"fmt"
	"slices"
	"strings"

	"stepbox/session/merge"
)

// text is a file's lines.
type text struct {
	whole string
	lines []string
	note  string // why it has no lines
}

func textOf(b []byte) *text {
	t := &text{}
	switch {
	case len(b) > maxBytes:
		t.note = fmt.Sprintf("too large: it has more than %d bytes", maxBytes)
	case merge.Binary(b):
		t.note = "binary"
	default:
		t.whole = string(b)
		t.lines = slices.Collect(strings.Lines(t.whole))
	}
	if len(t.lines) > maxLines {
		*t = text{note: fmt.Sprintf("too long: it has more than %d lines", maxLines)}
	}
	return t
}

// line is a line of some text that is one of the text that is asked about: the index
// in either.
type line struct{ at, of int }

// part is some lines of a text.
type part struct {
	*text
	path  string
	lines []line
}

// in finds the lines of p in a text that it was made of, and gives those, as lines of
// that text, and the others.
func (p part) in(from *text) (same, rest []line) {
	if from.note != "" || p.note != "" {
		return nil, p.lines
	}
	was := slices.Repeat([]int{-1}, len(p.text.lines)) // by line, which one of from it is
	i, j, at := 0, 0, 0                                // lines of from and of p, and the byte of from
	keep := func(until int) {
		for ; at < until; i, j = i+1, j+1 {
			at += len(from.lines[i])
			was[j] = i
		}
	}
	for _, e := range merge.Edits(from.whole, p.whole) {
		keep(e.Start)
		for ; at < e.End; i++ {
			at += len(from.lines[i])
		}
		j += strings.Count(e.New, "\n")
		if e.New != "" && !strings.HasSuffix(e.New, "\n") {
			j++
		}
	}
	keep(len(from.whole))
	for _, l := range p.lines {
		if was[l.at] < 0 {
			rest = append(rest, l)
			continue
		}
		same = append(same, line{was[l.at], l.of})
	}
	return same, rest
}
