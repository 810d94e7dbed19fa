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
