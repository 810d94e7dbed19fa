package actions

// columns are the widths of what stands to the right of a title, gaps included.
type columns struct{ mark, digits, status, took, lines int }

// columns are those of rows so wide. What is selected has a mark, with a gap.
func (p *Pane) columns(width int) columns {
	c := columnsFor(width, p.digits())
	c.mark = min(1, len(p.marked))
	return c
}

func columnsFor(width, digits int) columns {
	c := columns{digits: digits, status: 13}
	if width >= 56 {
		c.took = 8
	}
	if width >= 72 {
		c.lines = 11
	}
	if width >= 96 {
		c.status = 21
	}
	if width >= 160 {
		c.lines = 28 // for reasons
	}
	return c
}

func (c columns) width() int { return c.status + c.took + c.lines }

func (c columns) heldWidth() int { return max(11, c.width()) }

// title is the room for a title in a row of that width, and whether there is
// room for nothing else.
func (c columns) title(width int, held bool) (room int, alone bool) {
	right := c.width()
	if held {
		right = c.heldWidth()
	}
	all := max(0, width-2-c.mark-2-c.digits-2)
	if room = all - right - 1; room < 4 {
		return all, true
	}
	return room, false
}
