package files

import (
	"bytes"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"stepbox/session/api"
	"stepbox/session/merge"
)

// Bounds of a text difference. Beyond them a change is summarised.
const (
	maxDiffBytes = 1 << 20 // each side
	maxDiffLines = 20000   // lines of hunks that are sent
)

const contextLines = 3

// hunks is the unified difference of two texts and how many lines were added
// and removed.
func hunks(before, after string) (out []api.Hunk, added, removed int, err error) {
	u, err := udiff.ToUnifiedDiff("", "", before, merge.Edits(before, after), contextLines)
	if err != nil {
		return nil, 0, 0, err
	}
	total := 0
	for _, h := range u.Hunks {
		hunk := api.Hunk{OldLine: h.FromLine, NewLine: h.ToLine}
		for _, l := range h.Lines {
			op := " "
			switch l.Kind {
			case udiff.Delete:
				op = "-"
				removed++
				hunk.OldCount++
			case udiff.Insert:
				op = "+"
				added++
				hunk.NewCount++
			default:
				hunk.OldCount++
				hunk.NewCount++
			}
			if total++; total <= maxDiffLines {
				hunk.Lines = append(hunk.Lines, api.Line{Op: op, Text: api.EscapeLine(l.Content)})
			}
		}
		if hunk.OldCount == 0 {
			hunk.OldLine-- // as diff(1) has it: after which line the new ones stand
		}
		if hunk.NewCount == 0 {
			hunk.NewLine--
		}
		if len(hunk.Lines) > 0 {
			out = append(out, hunk)
		}
	}
	return out, added, removed, nil
}

// text says whether bytes can be shown as lines; bytes that aren't UTF-8 are
// shown escaped, as long as most of them are.
func text(b []byte) bool {
	return !merge.Binary(b) && (utf8.Valid(b) || len(bytes.ToValidUTF8(b, nil))*10 >= len(b)*9)
}
