package changes

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/paint"
	"stepbox/ui/syntax"
)

// Bounds on what is prepared for drawing. A diff beyond them is cut, and says so.
const (
	maxRows   = 20000
	maxColour = 256 << 10 // bytes of text that are coloured
	maxLine   = 4000      // bytes of a line that are shown
	tabWidth  = 4
)

// Diff is a file's difference ready to be drawn: prepared off the drawing
// goroutine, read-only afterwards.
type Diff struct {
	Change api.Change
	Note   string
	Rows   []Row
	Cut    bool
}

// Row is one line of a prepared diff.
type Row struct {
	Op       byte // ' ', '+', '-', or '@' for a position
	Old, New int  // line numbers, 0 for none
	Pieces   []Piece
}

// Piece is a run of a row's text.
type Piece struct {
	Text   string
	Kind   themes.Token
	Marked bool // differs within its line
}

// Prepare makes a diff ready: tabs widened, hostile text shown as escapes,
// words coloured, and what differs within paired lines marked.
func Prepare(d api.FileDiff) *Diff {
	out := &Diff{Change: d.Change, Note: d.Note}
	budget := maxColour
	olds, news := syntax.For(d.Change.Path), syntax.For(d.Change.Path)
	for _, h := range d.Hunks {
		if len(out.Rows) >= maxRows {
			out.Cut = true
			break
		}
		out.Rows = append(out.Rows, Row{Op: '@', Pieces: []Piece{
			{Text: fmt.Sprintf("@@ -%d,%d +%d,%d @@", h.OldLine, h.OldCount, h.NewLine, h.NewCount), Kind: themes.Hunk},
			{Text: " " + paint.Clean(widen(cutLine(h.Section))), Kind: themes.Muted},
		}})
		olds.Reset()
		news.Reset()
		lo, ln := h.OldLine, h.NewLine
		for i := 0; i < len(h.Lines) && len(out.Rows) < maxRows; {
			if op(h.Lines[i]) == ' ' {
				text := tidy(h.Lines[i].Text)
				r := Row{Op: ' ', Old: lo, New: ln, Pieces: colour(news, text, &budget)}
				olds.Line(text)
				out.Rows = append(out.Rows, r)
				lo++
				ln++
				i++
				continue
			}
			gone, came := run(h.Lines, &i)
			out.Rows = append(out.Rows, block(gone, came, &lo, &ln, olds, news, &budget)...)
		}
	}
	return out
}

func op(l api.Line) byte {
	if l.Op == "" {
		return ' '
	}
	switch l.Op[0] {
	case '+', '-':
		return l.Op[0]
	}
	return ' '
}

// run takes a run of removed and then added lines.
func run(lines []api.Line, i *int) (gone, came []string) {
	for *i < len(lines) && op(lines[*i]) == '-' {
		gone = append(gone, tidy(lines[*i].Text))
		*i++
	}
	for *i < len(lines) && op(lines[*i]) == '+' {
		came = append(came, tidy(lines[*i].Text))
		*i++
	}
	return gone, came
}

func block(gone, came []string, lo, ln *int, olds, news *syntax.Scanner, budget *int) []Row {
	var out []Row
	paired := len(gone) == len(came)
	for i, t := range gone {
		r := Row{Op: '-', Old: *lo, Pieces: colour(olds, t, budget)}
		if paired {
			r.Pieces = mark(r.Pieces, t, came[i])
		}
		out = append(out, r)
		*lo++
	}
	for i, t := range came {
		r := Row{Op: '+', New: *ln, Pieces: colour(news, t, budget)}
		if paired {
			r.Pieces = mark(r.Pieces, t, gone[i])
		}
		out = append(out, r)
		*ln++
	}
	return out
}

func colour(s *syntax.Scanner, text string, budget *int) []Piece {
	*budget -= len(text)
	if *budget < 0 || !s.Known() {
		return []Piece{{Text: text, Kind: themes.Text}}
	}
	spans := s.Line(text)
	out := make([]Piece, len(spans))
	for i, sp := range spans {
		out[i] = Piece{Text: sp.Text, Kind: sp.Kind}
	}
	return out
}

// mark marks what differs between a line and its pair: all between their common
// start and end, unless so little is common that a mark would say nothing.
func mark(pieces []Piece, text, other string) []Piece {
	from, to := differs(text, other)
	if from >= to || (from+len(text)-to)*10 < len(text)*3 {
		return pieces
	}
	var out []Piece
	at := 0
	for _, p := range pieces {
		end := at + len(p.Text)
		a, b := min(max(from, at), end), max(min(to, end), at)
		for _, cut := range []struct {
			from, to int
			marked   bool
		}{{at, a, false}, {a, b, true}, {max(a, b), end, false}} {
			if cut.from < cut.to {
				out = append(out, Piece{Text: p.Text[cut.from-at : cut.to-at], Kind: p.Kind, Marked: cut.marked})
			}
		}
		at = end
	}
	return out
}

// differs is the part of a, in bytes on character borders, that isn't its common
// start or end with b.
func differs(a, b string) (from, to int) {
	for from < len(a) && from < len(b) {
		r, n := utf8.DecodeRuneInString(a[from:])
		s, _ := utf8.DecodeRuneInString(b[from:])
		if r != s {
			break
		}
		from += n
	}
	to = len(a)
	for end := len(b); to > from && end > from; {
		r, n := utf8.DecodeLastRuneInString(a[:to])
		s, m := utf8.DecodeLastRuneInString(b[:end])
		if r != s || to-n < from || end-m < from {
			break
		}
		to -= n
		end -= m
	}
	return from, to
}

// tidy makes a line drawable: bounded, tabs widened, the rest escaped.
func tidy(s string) string { return paint.Clean(widen(cutLine(s))) }

func cutLine(s string) string {
	if len(s) <= maxLine {
		return s
	}
	n := maxLine
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// widen replaces tabs by blanks up to the next stop.
func widen(s string) string {
	if !strings.Contains(s, "\t") {
		return s
	}
	var b strings.Builder
	col := 0
	for _, r := range s {
		if r == '\t' {
			n := tabWidth - col%tabWidth
			b.WriteString(strings.Repeat(" ", n))
			col += n
			continue
		}
		b.WriteRune(r)
		col++
	}
	return b.String()
}
