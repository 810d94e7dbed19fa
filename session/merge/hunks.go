package merge

import (
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

const (
	contextLines = 3
	maxSection   = 2000 // lines that are looked at for the name of what a hunk is in
)

// Hunk is edits of a text that are near each other, with the lines around them.
// Lines are counted from one; of none, it is the one after which they would stand,
// as diff(1) has it.
type Hunk struct {
	OldLine, OldCount, NewLine, NewCount int

	Lines   []Line
	Section string // the line above that most likely names what it is in
}

// Line is one of a hunk, with its newline if it has one.
type Line struct {
	Op   byte // ' ', '-' or '+'
	Text string
}

// Hunks are the edits of a text, which come in order, as people read them.
func Hunks(before string, edits []udiff.Edit) []Hunk {
	w := hunkWriter{old: slices.Collect(strings.Lines(before))}
	at, bytes := 0, 0 // how far old has been looked at
	for _, e := range edits {
		for ; bytes < e.Start; at++ {
			bytes += len(w.old[at])
		}
		start := at
		for ; bytes < e.End; at++ {
			bytes += len(w.old[at])
		}
		w.edit(start, at, slices.Collect(strings.Lines(e.New)))
	}
	w.context(w.last+contextLines, len(w.old))
	for i := range w.hunks {
		h := &w.hunks[i]
		if h.OldCount == 0 {
			h.OldLine--
		}
		if h.NewCount == 0 {
			h.NewLine--
		}
	}
	return w.hunks
}

// hunkWriter puts edits into hunks with lines around them.
type hunkWriter struct {
	old    []string // lines
	hunks  []Hunk
	last   int // the line of old up to which the hunks have come
	longer int // by how many lines the edits so far make the text longer
}

// edit replaces the lines of old from start to end.
func (w *hunkWriter) edit(start, end int, lines []string) {
	if len(w.hunks) == 0 || start-w.last > 2*contextLines {
		w.context(w.last+contextLines, start)
		w.last = max(w.last, start-contextLines)
		w.hunks = append(w.hunks, Hunk{OldLine: w.last + 1, NewLine: w.last + 1 + w.longer, Section: w.section(w.last)})
	}
	w.context(start, start)
	h := &w.hunks[len(w.hunks)-1]
	h.add('-', w.old[start:end])
	h.add('+', lines)
	w.last, w.longer = end, w.longer+len(lines)-(end-start)
}

// context adds lines that didn't change to the last hunk, up to one of two ends.
func (w *hunkWriter) context(end, most int) {
	if end = min(end, most); len(w.hunks) > 0 && end > w.last {
		w.hunks[len(w.hunks)-1].add(' ', w.old[w.last:end])
		w.last = end
	}
}

func (h *Hunk) add(op byte, lines []string) {
	for _, l := range lines {
		h.Lines = append(h.Lines, Line{op, l})
	}
	if op != '+' {
		h.OldCount += len(lines)
	}
	if op != '-' {
		h.NewCount += len(lines)
	}
}

// section is as git has it the last line above one that begins with a letter.
func (w *hunkWriter) section(at int) string {
	for i := at - 1; i >= max(0, at-maxSection); i-- {
		if l := w.old[i]; l[0] == '_' || l[0] == '$' || l[0]|0x20 >= 'a' && l[0]|0x20 <= 'z' {
			return strings.TrimRight(l, "\r\n")
		}
	}
	return ""
}
