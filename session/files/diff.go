package files

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"stepbox/session/api"
	"stepbox/session/merge"
)

// Bounds of a text difference. Beyond them a change is summarised.
const (
	maxDiffBytes = 1 << 20 // each side
	maxDiffLines = 20000   // lines of hunks that are sent
)

const (
	contextLines = 3
	maxSection   = 2000 // lines that are looked at for the name of what a hunk is in
)

// errTooDifferent says that two texts can't be compared in the time that there is.
var errTooDifferent = errors.New("too different")

// hunks is the unified difference of two texts and how many lines were added
// and removed. The numbers are right with errTooDifferent too, but for what both
// texts have in common.
func hunks(before, after string) (out []api.Hunk, added, removed int, err error) {
	edits, exact := merge.Compare(before, after)
	if !exact {
		e := edits[0] // of all between what both begin and end with
		return nil, strings.Count(e.New, "\n"), strings.Count(before[e.Start:e.End], "\n"), errTooDifferent
	}
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
	for i := range w.hunks { // as diff(1) has it: after which line the others stand
		h := &w.hunks[i]
		h.OldLine, h.NewLine = h.OldLine-btoi(h.OldCount == 0), h.NewLine-btoi(h.NewCount == 0)
	}
	return w.hunks, w.added, w.removed, nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// hunkWriter puts edits, which come in order, into hunks with lines around them.
type hunkWriter struct {
	old            []string // lines
	hunks          []api.Hunk
	added, removed int
	last           int // the line of old up to which the hunks have come
	sent           int // lines of all hunks
}

// edit replaces the lines of old from start to end.
func (w *hunkWriter) edit(start, end int, lines []string) {
	if len(w.hunks) == 0 || start-w.last > 2*contextLines {
		w.context(w.last+contextLines, start)
		w.last = max(w.last, start-contextLines)
		w.hunks = append(w.hunks, api.Hunk{OldLine: w.last + 1, NewLine: w.last + 1 + w.added - w.removed, Section: w.section(w.last)})
	}
	w.context(start, start)
	w.line("-", w.old[start:end])
	w.line("+", lines)
	w.last, w.added, w.removed = end, w.added+len(lines), w.removed+end-start
	h := &w.hunks[len(w.hunks)-1]
	h.OldCount, h.NewCount = h.OldCount+end-start, h.NewCount+len(lines)
}

// context adds lines that didn't change to the last hunk, up to one of two ends.
func (w *hunkWriter) context(end, most int) {
	if end = min(end, most); len(w.hunks) == 0 || end <= w.last {
		return
	}
	w.line(" ", w.old[w.last:end])
	h := &w.hunks[len(w.hunks)-1]
	h.OldCount, h.NewCount = h.OldCount+end-w.last, h.NewCount+end-w.last
	w.last = end
}

// line adds lines to the last hunk, as long as that isn't too much to be sent.
func (w *hunkWriter) line(op string, lines []string) {
	h := &w.hunks[len(w.hunks)-1]
	for _, l := range lines[:max(0, min(len(lines), maxDiffLines-w.sent))] {
		h.Lines = append(h.Lines, api.Line{Op: op, Text: api.EscapeLine(l), NoEnd: !strings.HasSuffix(l, "\n")})
	}
	w.sent += len(lines)
}

// section is the line above a hunk that most likely names what it is in: as for
// git, the last one that begins with a letter.
func (w *hunkWriter) section(at int) string {
	for i := at - 1; i >= max(0, at-maxSection); i-- {
		if l := w.old[i]; l[0] == '_' || l[0] == '$' || l[0]|0x20 >= 'a' && l[0]|0x20 <= 'z' {
			return api.EscapeLine(api.Trim(strings.TrimRight(l, "\r\n"), 80))
		}
	}
	return ""
}

// text says whether bytes can be shown as lines; bytes that aren't UTF-8 are
// shown escaped, as long as most of them are.
func text(b []byte) bool {
	return !merge.Binary(b) && readable(b)
}

// readable says whether bytes are characters, whatever the length of lines.
func readable(b []byte) bool {
	return bytes.IndexByte(b[:min(len(b), 8000)], 0) < 0 && (utf8.Valid(b) || len(bytes.ToValidUTF8(b, nil))*10 >= len(b)*9)
}
