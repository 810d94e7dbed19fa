package paint

import (
	"math"
	"strings"
)

// How high a cell can be filled, from nothing to whole: where blocks can be had, and
// with ordinary characters alone.
var (
	blocks = []rune(" ▁▂▃▄▅▆▇█")
	signs  = []rune(" .:#")
)

// Graph draws shares of one as columns that rise from below, one in each cell, the
// newest at the right. Where there are none yet it is empty; a share of 0 has the
// lowest step, so that a graph at rest is seen.
func Graph(shares []float64, cells, rows int, plain bool) []string {
	steps := blocks
	if plain {
		steps = signs
	}
	out := make([]string, rows)
	for row := range out {
		var b strings.Builder
		for cell := range cells {
			at := len(shares) - cells + cell
			if at < 0 {
				b.WriteByte(' ')
				continue
			}
			b.WriteRune(steps[fill(shares[at], rows-1-row, rows, len(steps)-1)])
		}
		out[row] = b.String()
	}
	return out
}

// fill is how many steps of a cell a share fills, so many rows from the lowest.
func fill(share float64, row, rows, steps int) int {
	if share = max(0, min(share, 1)); math.IsNaN(share) {
		share = 0
	}
	n := max(1, int(share*float64(rows*steps)+0.5))
	return max(0, min(n-row*steps, steps))
}
