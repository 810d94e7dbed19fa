package screen

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// privateState begins an APC that carries what no standard sequence says: a
// pending wrap, where a mark would still join or has joined though there was no
// room, what REP repeats, which lines were wrapped, how much of a picture came, and how many
// rows the scrollback may have. It is only of use within a keyframe. A guest that sends it
// gets nothing it couldn't have by printing.
const privateState = "stepbox;"

// private says the rest, see privateState.
func (k *keyframe) private() {
	s := k.s
	k.WriteString("\x1b_" + privateState)
	if s.modes.origin {
		fmt.Fprintf(k, "at=%d,%d;", s.cursor.x, s.cursor.y)
	}
	if s.cursor.wrap {
		k.WriteString("wrap;")
	}
	fmt.Fprintf(k, "repeat=%x;", s.repeat)
	if j := s.joint; j.valid {
		fmt.Fprintf(k, "joint=%d,%d;", j.x, j.y)
	}
	if n := s.scan.counted(); n > 0 {
		fmt.Fprintf(k, "more=%d;", n)
	}
	k.WriteString("\x1b\\")
}

// restore reads it. Whoever sent it: each value is checked.
func (s *Screen) restore(state string) {
	for item := range strings.SplitSeq(state, ";") {
		key, value, _ := strings.Cut(item, "=")
		var x, y int
		n, _ := fmt.Sscanf(value, "%d,%d", &x, &y) // not numbers: n says so
		at := n == 2 && x >= 0 && x < s.cols && y >= 0 && y < s.rows
		switch {
		case key == "at" && at:
			s.cursor.x, s.cursor.y = x, y
		case key == "wrap":
			s.cursor.wrap = true
		case key == "soft":
			l := &s.page.grid.lines[s.cursor.y]
			l.soft, l.gap = true, value == "gap"
		case key == "joint" && at && s.page.grid.cell(x, y).width > 0:
			s.joint = joint{valid: true, x: x, y: y}
		case key == "more":
			n, _ := strconv.Atoi(value) // not a number: none
			s.scan.carried = clamp(n, 0, maxPicture)
		case key == "rows":
			n, _ := strconv.Atoi(value) // not a number: none more
			s.history.maxRows = clamp(n, historyRows, mostRows)
		case key == "join" && s.joint.valid && len(value) <= 2*maxCluster:
			head := s.page.grid.cell(s.joint.x, s.joint.y)
			if b, err := hex.DecodeString(value); err == nil && wholeCluster(head.text+string(b)) {
				s.setCluster(head, head.text+string(b))
				s.joint.plain = false
			}
		case key == "repeat" && len(value) <= 2*maxCluster:
			if b, err := hex.DecodeString(value); err == nil && (len(b) == 0 || wholeCluster(string(b))) {
				s.repeat = string(b)
			}
		}
	}
}
