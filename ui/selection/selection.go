// Package selection is what of a text on the screen is selected, and the text of that: by
// characters, by lines or as a block. Rows are numbered as in what is read, not as on the
// screen, so that a selection stays on its text while that scrolls.
//
// Nothing in it may be used by more than one goroutine at a time.
package selection

import (
	"strings"
	"unicode"
	"unicode/utf8"

	uv "github.com/charmbracelet/ultraviolet"
)

// Row is a row of text by columns: a character in the first of its columns, and "" in its
// others.
type Row struct {
	Cells []string

	On     bool   // it goes on the row before: one line, wrapped
	Joint  string // what is between the two then
	Indent int    // columns at its beginning then that aren't the line's
}

// Read is a row of an area as it was drawn.
func Read(src uv.Screen, area uv.Rectangle, y int) Row {
	cells := make([]string, 0, area.Dx())
	for x := area.Min.X; x < area.Max.X; x++ {
		switch c := src.CellAt(x, y); {
		case c == nil || c.Width > 0 && c.Content == "":
			cells = append(cells, " ")
		case c.Width == 0:
			cells = append(cells, "")
		default:
			cells = append(cells, c.Content)
		}
	}
	return Row{Cells: cells}
}

// blank says whether there is nothing from a column on.
func (r Row) blank(from int) bool {
	for _, c := range r.Cells[max(0, min(from, len(r.Cells))):] {
		if c != " " {
			return false
		}
	}
	return true
}

// Blanks are how many columns are blank at its beginning.
func (r Row) Blanks() int {
	for x, c := range r.Cells {
		if c != " " {
			return x
		}
	}
	return 0
}

// End is its last column that isn't blank, or 0.
func (r Row) End() int {
	for x := len(r.Cells) - 1; x > 0; x-- {
		if r.Cells[x] != " " && r.Cells[x] != "" {
			return x
		}
	}
	return 0
}

// Region is a part of the screen that text was drawn in, and its first row there.
type Region struct {
	Area uv.Rectangle
	Top  int
	On   func(row int) (on bool, joint string) // whether a row goes on the one before, and what is between them; nil: none does
}

// Read reads the rows in view into all.
func (r Region) Read(src uv.Screen, all map[int]Row) {
	for i := range r.Area.Dy() {
		row := Read(src, r.Area, r.Area.Min.Y+i)
		if r.On != nil {
			if row.On, row.Joint = r.On(r.Top + i); row.On {
				row.Indent = row.Blanks()
			}
		}
		all[r.Top+i] = row
	}
}

// At is the place in the text of a point, which may lie beyond the edges: the nearest.
func (r Region) At(x, y int) uv.Position {
	x = max(0, min(x-r.Area.Min.X, r.Area.Dx()-1))
	return uv.Pos(x, max(0, r.Top+max(0, min(y-r.Area.Min.Y, r.Area.Dy()-1))))
}

// Mode is how a selection goes from one of its ends to the other.
type Mode int

const (
	Chars Mode = iota // as text is read
	Lines             // whole rows
	Block             // a rectangle
)

// Range is what is selected: from one character to another, both included.
type Range struct {
	Mode         Mode
	Anchor, Head uv.Position
}

// ends are its first and its last character as text is read.
func (r Range) ends() (from, to uv.Position) {
	from, to = r.Anchor, r.Head
	if to.Y < from.Y || to.Y == from.Y && to.X < from.X {
		from, to = to, from
	}
	return from, to
}

func (r Range) Rows() (first, last int) {
	from, to := r.ends()
	return from.Y, to.Y
}

// In are the columns of a row that are selected, up to but not including to.
func (r Range) In(y int, row Row) (from, to int) {
	first, last := r.ends()
	width := len(row.Cells)
	if y < first.Y || y > last.Y {
		return 0, 0
	}
	from, to = 0, width
	switch r.Mode {
	case Block:
		from, to = min(first.X, last.X), max(first.X, last.X)+1
	case Chars:
		if y == first.Y {
			from = first.X
		}
		if y == last.Y {
			to = last.X + 1
		}
	}
	from, to = max(0, min(from, width)), max(0, min(to, width))
	for from > 0 && from < to && row.Cells[from] == "" { // the second half of a wide character
		from--
	}
	for to < width && to > from && row.Cells[to] == "" {
		to++
	}
	return from, max(from, to)
}

// Text is what is selected, without blanks at the ends of lines; what was wrapped is one line.
func (r Range) Text(row func(y int) Row) string {
	first, last := r.Rows()
	var b strings.Builder
	for y := first; y <= last; y++ {
		this := row(y)
		from, to := r.In(y, this)
		if this.On && y > first {
			from = max(from, min(this.Indent, to))
		}
		text := strings.TrimRight(strings.Join(this.Cells[from:to], ""), " ")
		b.WriteString(text)
		if y == last {
			break
		}
		next := row(y + 1)
		switch {
		case !next.On || r.Mode == Block:
			b.WriteByte('\n')
		case text != "":
			b.WriteString(next.Joint)
		}
	}
	return b.String()
}

// Wrapped makes of a row one that goes on another, as terminals wrap: where that isn't full,
// a blank is between them.
func (r Row) Wrapped(before Row) Row {
	last := len(before.Cells) - 1
	r.On, r.Joint = true, " "
	if !before.blank(last) || r.wide() && last > 0 && before.Cells[last-1] != " " { // a wide one has no room in the last column
		r.Joint = ""
	}
	return r
}

// wide says whether it begins with a character that has two columns.
func (r Row) wide() bool {
	return len(r.Cells) > 1 && r.Cells[1] == ""
}

// Word is the word at a column, up to but not including to: a path or an address is one.
func Word(row Row, x int) (from, to int) {
	if x < 0 || x >= len(row.Cells) {
		return x, x
	}
	kind := KindOf(row, x)
	for from = x; from > 0 && KindOf(row, from-1) == kind; from-- {
	}
	for to = x + 1; to < len(row.Cells) && KindOf(row, to) == kind; to++ {
	}
	return from, to
}

// Kind is what a character is to words: a blank, a part of one, or neither.
type Kind int

const (
	Space Kind = iota
	Letter
	Sign
)

// KindOf is the kind of the character at a column; a wide one's second half is of its kind.
func KindOf(row Row, x int) Kind {
	for x > 0 && row.Cells[x] == "" {
		x--
	}
	r, _ := utf8.DecodeRuneInString(row.Cells[x])
	switch {
	case unicode.IsSpace(r):
		return Space
	case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune("_-./~:@%+=&?#$", r):
		return Letter
	}
	return Sign
}

// Whole are the rows of the line that a row is of.
func Whole(row func(y int) Row, y, end int) (first, last int) {
	for first = y; first > 0 && row(first).On; first-- {
	}
	for last = y; last+1 < end && row(last+1).On; last++ {
	}
	return first, last
}
