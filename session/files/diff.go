package files

import (
	"errors"
	"strings"

	"stepbox/session/api"
	"stepbox/session/merge"
)

// Bounds of a text difference. Beyond them a change is summarised.
const (
	maxDiffBytes = 1 << 20 // each side
	maxDiffLines = 20000   // lines of hunks that are sent
)

// errTooDifferent says that two texts can't be compared in the time that there is.
var errTooDifferent = errors.New("too different")

// Hunks is the unified difference of two texts and how many lines were added
// and removed. The numbers are right with errTooDifferent too, but for what both
// texts have in common.
func Hunks(before, after string) (out []api.Hunk, added, removed int, err error) {
	edits, exact := merge.Compare(before, after)
	if !exact {
		e := edits[0] // of all between what both begin and end with
		return nil, strings.Count(e.New, "\n"), strings.Count(before[e.Start:e.End], "\n"), errTooDifferent
	}
	sent := 0 // lines
	for _, h := range merge.Hunks(before, edits) {
		hunk := api.Hunk{
			OldLine: h.OldLine, OldCount: h.OldCount, NewLine: h.NewLine, NewCount: h.NewCount,
			Section: api.EscapeLine(api.Trim(h.Section, 80)),
		}
		for _, l := range h.Lines {
			switch l.Op {
			case '+':
				added++
			case '-':
				removed++
			}
			if sent++; sent <= maxDiffLines {
				hunk.Lines = append(hunk.Lines, api.Line{Op: string(l.Op), Text: api.EscapeLine(l.Text), NoEnd: !strings.HasSuffix(l.Text, "\n")})
			}
		}
		out = append(out, hunk)
	}
	return out, added, removed, nil
}
