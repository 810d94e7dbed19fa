package changes

import (
	"fmt"
	"strings"

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
	Hash   string // names the hunks
	Hunks  int
	Rows   []Row
	Pairs  [][2]int32 // the same side by side: rows of the old and of the new text, -1 for none
	Cut    bool       // there are more rows

	whole bool // all hunks are all of the change
}

// Row is one line of a prepared diff.
type Row struct {
	Op       byte // ' ', '+', '-', '@' for a position, or '\\' for what is said of the line before
	Hunk     int  // that it is of
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
	b := &preparing{
		Diff:    &Diff{Change: d.Change, Note: d.Note, Hash: d.Hash, Hunks: len(d.Hunks)},
		colours: maxColour, words: maxWords,
		olds: syntax.For(d.Change.Path), news: syntax.For(d.Change.Path),
	}
	b.whole = d.Change.Status == "M" && d.Change.Words == "" || d.Change.Status == "A" || d.Change.Status == "D"
	for i, h := range d.Hunks {
		if len(b.Rows) >= maxRows {
			b.Cut = true
			break
		}
		b.hunk = i
		b.both(Row{Op: '@', Pieces: []Piece{
			{Text: fmt.Sprintf("@@ -%d,%d +%d,%d @@", h.OldLine, h.OldCount, h.NewLine, h.NewCount), Kind: themes.Hunk},
			{Text: " " + paint.Clean(widen(cutLine(h.Section))), Kind: themes.Muted},
		}})
		b.olds.Reset()
		b.news.Reset()
		b.old, b.new = h.OldLine, h.NewLine
		for i := 0; i < len(h.Lines); {
			if len(b.Rows) >= maxRows {
				b.Cut = true
				break
			}
			if op(h.Lines[i]) == ' ' {
				text := tidy(h.Lines[i].Text)
				b.olds.Line(text)
				b.both(Row{Op: ' ', Old: b.old, New: b.new, Pieces: b.colour(b.news, text)})
				if h.Lines[i].NoEnd {
					b.both(noEnd)
				}
				b.old++
				b.new++
				i++
				continue
			}
			gone, came := run(h.Lines, &i)
			b.block(gone, came)
		}
	}
	return b.Diff
}

// preparing is a Diff on its way.
type preparing struct {
	*Diff
	colours, words int // how much may still be coloured, and compared by words
	olds, news     *syntax.Scanner
	old, new       int // the next line's numbers
	hunk           int
}

var noEnd = Row{Op: '\\', Pieces: []Piece{{Text: "no newline at the end of the file", Kind: themes.Muted}}}

// add adds a row and returns its index.
func (b *preparing) add(r Row) int32 {
	r.Hunk = b.hunk
	b.Rows = append(b.Rows, r)
	return int32(len(b.Rows) - 1)
}

// both adds a row that both sides show.
func (b *preparing) both(r Row) {
	at := b.add(r)
	b.Pairs = append(b.Pairs, [2]int32{at, at})
}

// text is one line that went or came.
type text struct {
	string
	noEnd bool
	pair  int // the line on the other side that it became or was; -1 for none
}

// block adds lines that went and those that came in their place.
func (b *preparing) block(gone, came []text) {
	b.match(gone, came)
	sides := [2][]int32{} // the rows of each side
	for side, lines := range [2][]text{gone, came} {
		for _, t := range lines {
			r, others := Row{Op: '-', Old: b.old, Pieces: b.colour(b.olds, t.string)}, came
			if side == 1 {
				r, others = Row{Op: '+', New: b.new, Pieces: b.colour(b.news, t.string)}, gone
				b.new++
			} else {
				b.old++
			}
			if t.pair >= 0 {
				r.Pieces = mark(r.Pieces, b.differs(t.string, others[t.pair].string))
			}
			sides[side] = append(sides[side], b.add(r))
			if t.noEnd {
				b.add(noEnd)
			}
		}
	}
	b.pairUp(gone, came, sides)
}

// pairUp sets the lines of a block side by side, those beside each other that
// belong together.
func (b *preparing) pairUp(gone, came []text, rows [2][]int32) {
	said := func(t text, row int32) int32 { // the row below it that says it has no newline
		if t.noEnd {
			return row + 1
		}
		return -1
	}
	for i, j := 0, 0; i < len(gone) || j < len(came); {
		pair, below := [2]int32{-1, -1}, [2]int32{-1, -1}
		left := i < len(gone) && (gone[i].pair < 0 || gone[i].pair <= j)
		right := j < len(came) && (came[j].pair < 0 || came[j].pair <= i)
		if left {
			pair[0], below[0] = rows[0][i], said(gone[i], rows[0][i])
			i++
		}
		if right {
			pair[1], below[1] = rows[1][j], said(came[j], rows[1][j])
			j++
		}
		b.Pairs = append(b.Pairs, pair)
		if below != [2]int32{-1, -1} {
			b.Pairs = append(b.Pairs, below)
		}
	}
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
func run(lines []api.Line, i *int) (gone, came []text) {
	for side, list := range []*[]text{&gone, &came} {
		for *i < len(lines) && op(lines[*i]) == "-+"[side] {
			*list = append(*list, text{string: tidy(lines[*i].Text), noEnd: lines[*i].NoEnd, pair: -1})
			*i++
		}
	}
	return gone, came
}

func (b *preparing) colour(s *syntax.Scanner, text string) []Piece {
	b.colours -= len(text)
	if b.colours < 0 || !s.Known() {
		return []Piece{{Text: text, Kind: themes.Text}}
	}
	spans := s.Line(text)
	out := make([]Piece, len(spans))
	for i, sp := range spans {
		out[i] = Piece{Text: sp.Text, Kind: sp.Kind}
	}
	return out
}

// tidy makes a line drawable: bounded, tabs widened, the rest escaped.
func tidy(s string) string { return paint.Clean(widen(cutLine(s))) }

func cutLine(s string) string {
	if len(s) <= maxLine {
		return s
	}
	return api.Trim(s, maxLine) + "…"
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
