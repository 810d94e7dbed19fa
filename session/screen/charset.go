package screen

// charsets is the state of ISO 2022: four designated sets, one of them shifted
// in. As the text is UTF-8 only the left half matters. The zero value is ASCII.
type charsets struct {
	set    [4]byte // final byte of the designation; 0 is ASCII
	gl     uint8
	single uint8 // SS2, SS3: the set of the next character only
}

func (c *charsets) active() bool { return c.single != 0 || c.set[c.gl] != 0 }

// designate is ESC ( and its like.
func (c *charsets) designate(slot int, final byte) {
	if final != '0' && final != 'A' {
		final = 0 // the national sets are read as ASCII
	}
	c.set[slot] = final
}

// translate gives the character that b stands for.
func (c *charsets) translate(b byte) string {
	set := c.set[c.gl]
	if c.single != 0 {
		set, c.single = c.set[c.single], 0
	}
	switch {
	case set == '0' && b >= 0x5f && b < 0x7f:
		return lineDrawing[b-0x5f]
	case set == 'A' && b == '#':
		return "£"
	}
	return asciiText[b : b+1]
}

// lineDrawing is the DEC special graphics set from 0x5f on (VT100 manual, table 3-9).
var lineDrawing = [...]string{
	" ", "◆", "▒", "␉", "␌", "␍", "␊", "°", "±", "␤", "␋", "┘", "┐", "┌", "└", "┼",
	"⎺", "⎻", "─", "⎼", "⎽", "├", "┤", "┴", "┬", "│", "≤", "≥", "π", "≠", "£", "·",
}
