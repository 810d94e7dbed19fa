package files

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
	"github.com/aymanbagabas/go-udiff/myers"

	"stepbox/session/api"
)

// Bounds of a text difference. Beyond them a change is summarised.
const (
	maxDiffBytes = 1 << 20  // each side
	maxDiffLine  = 10 << 10 // bytes; longer ones are data rather than text
	maxDiffLines = 20000    // lines of hunks that are sent
	exactLines   = 1500     // differing lines of both sides for which a minimal difference is affordable
)

const contextLines = 3

// isBinary says whether bytes aren't text: git's rule, a NUL among the first
// 8,000, or a line that no person would read.
func isBinary(b []byte) bool {
	if bytes.IndexByte(b[:min(len(b), 8000)], 0) >= 0 {
		return true
	}
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			i = len(b)
		}
		if i > maxDiffLine {
			return true
		}
		b = b[min(i+1, len(b)):]
	}
	return false
}

// hunks is the unified difference of two texts and how many lines were added
// and removed.
func hunks(before, after string) (out []api.Hunk, added, removed int, err error) {
	u, err := udiff.ToUnifiedDiff("", "", before, edits(before, after), contextLines)
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
				hunk.Lines = append(hunk.Lines, api.Line{Op: op, Text: escapeLine(l.Content)})
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

// edits compares two texts line by line. The exact algorithm needs memory in
// the square of the lines that differ, so equal beginnings and ends are taken
// off first, and where too much is left the approximate one serves: its result
// is right, but may show more lines as changed than need be.
func edits(before, after string) []udiff.Edit {
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

// escapeLine makes one line of a file fit to be shown; tabs stay.
func escapeLine(s string) string {
	s = strings.TrimSuffix(s, "\n")
	if !strings.Contains(s, "\t") {
		return api.Escape(s)
	}
	parts := strings.Split(s, "\t")
	for i := range parts {
		parts[i] = api.Escape(parts[i])
	}
	return strings.Join(parts, "\t")
}

// text says whether bytes can be shown as lines; bytes that aren't UTF-8 are
// shown escaped, as long as most of them are.
func text(b []byte) bool {
	return !isBinary(b) && (utf8.Valid(b) || len(bytes.ToValidUTF8(b, nil))*10 >= len(b)*9)
}
