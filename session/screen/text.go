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

// Lines are the plain text, without trailing blanks, of the lines from a number on, or
// from the first that is still kept: those of the scrollback, and the screen's, which
// begin with top. Lines are numbered from the first that was ever printed; on the
// alternate screen, which has no scrollback, they are numbered like those behind it.
func (s *Screen) Lines(from int) (first, top int, lines []string) {
	top = s.history.total
	first = min(max(from, top-s.history.len()), top+s.rows)
	for n := first; n < top; n++ {
		lines = append(lines, strings.TrimRight(string(s.history.line(n-top+s.history.len()).text), " "))
	}
	return first, top, append(lines, s.Text()[max(0, first-top):]...)
}
