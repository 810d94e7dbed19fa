package screen

// rest is where the rest of the row begins: behind the last column, in which there
// is text, while a wrap is pending.
func (c *cursor) rest() int {
	if c.wrap {
		return c.x + 1
	}
	return c.x
}

func (s *Screen) eraseLine(how int) {
	c := &s.cursor
	bg := s.background()
	switch how {
	case 0:
		s.page.grid.erase(c.rest(), s.cols, c.y, bg)
	case 1:
		s.page.grid.erase(0, c.x+1, c.y, bg)
	case 2:
		s.page.grid.erase(0, s.cols, c.y, bg)
	}
}

func (s *Screen) eraseDisplay(how int) {
	c := &s.cursor
	g := s.page.grid
	bg := s.background()
	rows := func(from, to int) {
		for y := from; y < to; y++ {
			g.erase(0, s.cols, y, bg)
		}
	}
	switch how {
	case 0:
		if c.x == 0 && c.y == 0 {
			s.keepAll()
		}
		g.erase(c.rest(), s.cols, c.y, bg)
		rows(c.y+1, s.rows)
	case 1:
		rows(0, c.y)
		g.erase(0, c.x+1, c.y, bg)
	case 2:
		s.keepAll()
		rows(0, s.rows)
	case 3:
		s.history.clear()
	}
}

// keepAll keeps the main screen before it is cleared, up to its last row in
// use, as tmux does.
func (s *Screen) keepAll() {
	if s.page != s.main {
		return
	}
	last := s.rows
	for last > 0 && s.main.grid.lines[last-1].trimmed() == 0 {
		last--
	}
	s.keep(last)
}

// repeatLast is REP, to the end of the row at most: more has no honest use.
func (s *Screen) repeatLast(n int) {
	if s.repeat == "" {
		return
	}
	n = min(n, s.cols-s.cursor.rest())
	for range n {
		s.place(s.repeat, clusterWidth(s.repeat), false)
	}
}
