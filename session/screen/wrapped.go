package screen

// Wrapped says whether the text of a row goes on in the next: it was wrapped at the screen's
// edge. Rows are counted from the oldest of the scrollback, and on the alternate screen from
// its first.
func (s *Screen) Wrapped(n int) bool {
	if !s.AltScreen() {
		if n >= 0 && n < s.history.len() {
			return s.history.line(n).soft
		}
		n -= s.history.len()
	}
	switch {
	case n < 0 || n >= s.rows:
		return false
	case s.frozen():
		return s.frame.lines[n].soft
	}
	return s.page.grid.lines[n].soft
}

// Line numbers the line that the cursor is on, or would be without the alternate screen, from
// the first that was ever printed; it keeps its number while it moves into the scrollback.
func (s *Screen) Line() int {
	y := s.cursor.y
	if s.AltScreen() {
		y = s.main.saved.y
	}
	n := s.history.gone
	for row := range s.history.len() + y {
		if !s.soft(row) {
			n++
		}
	}
	return n
}

// RowOf is the row at which a line begins, counted from the oldest of the scrollback; -1 of
// one that isn't there.
func (s *Screen) RowOf(line int) int {
	n := s.history.gone
	for row := range s.history.len() + s.rows {
		if n == line {
			return row
		}
		if !s.soft(row) {
			n++
		}
	}
	return -1
}

// soft is Wrapped for the main screen.
func (s *Screen) soft(row int) bool {
	if kept := s.history.len(); row >= kept {
		return s.main.grid.lines[row-kept].soft
	}
	return s.history.line(row).soft
}
