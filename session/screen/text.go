package screen

import "strings"

// Text is the screen's rows as plain text without trailing blanks.
func (s *Screen) Text() []string {
	rows := make([]string, s.rows)
	for y := range rows {
		var b strings.Builder
		l := &s.page.grid.lines[y]
		for _, c := range l.cells[:l.used] {
			b.WriteString(c.text)
		}
		rows[y] = strings.TrimRight(b.String(), " ")
	}
	return rows
}
