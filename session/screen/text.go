package screen

import (
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
)

// Text is the screen's rows as plain text without trailing blanks.
func (s *Screen) Text() []string {
	rows := make([]string, s.rows)
	for y := range rows {
		rows[y] = strings.TrimRight(s.page.grid.lines[y].slice(0, s.cols), " ")
	}
	return rows
}

// TextOf is the text from one place up to and including another, for copying.
// Places are a column and an absolute line number (see [Screen.Lines]), in
// either order; those that are gone are left out. Trailing blanks go, and text
// that was wrapped comes as one line, unless block asks for the rectangle.
func (s *Screen) TextOf(from, to uv.Position, block bool) string {
	if to.Y < from.Y || to.Y == from.Y && to.X < from.X {
		from, to = to, from
	}
	first, top, end := s.Lines()
	left, right := 0, s.cols
	if block {
		left, right = min(from.X, to.X), max(from.X, to.X)+1
	}
	var b strings.Builder
	for n := max(from.Y, first); n <= to.Y && n < end; n++ {
		x0, x1 := left, right
		if !block && n == from.Y {
			x0 = from.X
		}
		if !block && n == to.Y {
			x1 = to.X + 1
		}
		var text string
		var soft bool
		if n < top {
			l := s.history.line(n - first)
			text, soft = l.slice(x0, x1), l.soft
		} else {
			l := &s.page.grid.lines[n-top]
			text, soft = l.slice(x0, x1), l.soft
		}
		if soft && !block && n < to.Y {
			b.WriteString(text)
			continue
		}
		b.WriteString(strings.TrimRight(text, " "))
		if n < to.Y {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// slice is the text of columns [x0,x1); a wide character counts where it begins.
func (l *row) slice(x0, x1 int) string {
	var b strings.Builder
	for x := max(x0, 0); x < min(x1, l.used); x++ {
		b.WriteString(l.cells[x].text)
	}
	if l.soft && b.Len() > 0 {
		for x := max(x0, l.used); x < min(x1, len(l.cells)); x++ {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

func (l *line) slice(x0, x1 int) string {
	var b strings.Builder
	l.each(func(x int, c *cell) {
		if x >= x0 && x < x1 {
			b.WriteString(c.text)
		}
	})
	return b.String()
}
