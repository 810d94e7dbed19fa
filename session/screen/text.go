package screen

import "strings"

// Text is the screen's rows as plain text without trailing blanks.
func (s *Screen) Text() []string {
	rows := make([]string, s.rows)
	for y := range rows {
		rows[y] = strings.TrimRight(s.page.grid.lines[y].slice(0, s.cols), " ")
	}
	return rows
}

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
