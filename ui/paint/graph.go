package paint

import "strings"

// Dots of a braille cell, filled from below, in its left and its right column.
var (
	leftDots  = [...]rune{0, 0x40, 0x44, 0x46, 0x47}
	rightDots = [...]rune{0, 0x80, 0xa0, 0xb0, 0xb8}
)

// levels are how high a cell can be filled without such dots, too.
const levels = " .:#"

// Graph draws shares of one as columns that rise from below, the newest at the right:
// two in each cell, or the larger of both where dots can't be had. Where there are none
// yet it is empty; a share of 0 has the lowest dot, so that a graph that rests is seen.
func Graph(shares []float64, cells, rows int, plain bool) []string {
	out := make([]string, rows)
	var b strings.Builder
	for row := range out {
		b.Reset()
		for cell := range cells {
			at := len(shares) - 2*(cells-cell)
			if plain {
				b.WriteByte(levels[max(fill(shares, at, row, rows, len(levels)-1), fill(shares, at+1, row, rows, len(levels)-1))])
				continue
			}
			dots := leftDots[fill(shares, at, row, rows, 4)] | rightDots[fill(shares, at+1, row, rows, 4)]
			if dots == 0 {
				b.WriteByte(' ')
				continue
			}
			b.WriteRune(0x2800 | dots)
		}
		out[row] = b.String()
	}
	return out
}

// fill is how many of a cell's steps the share at an index fills, in a row from the top.
func fill(shares []float64, at, row, rows, steps int) int {
	if at < 0 || at >= len(shares) {
		return 0
	}
	share := max(0, min(shares[at], 1)) // also what isn't a number
	n := max(1, int(share*float64(rows*steps)+0.5)) - (rows-1-row)*steps
	return max(0, min(n, steps))
}
