package merge

import "strings"

// maxEffort bounds a comparison, in steps of its inner loop: some 0.1 s.
const maxEffort = 20_000_000

// sideOf is one of two texts that are compared: for each line a number that stands
// for what it says, how long it is, and whether the other text doesn't have it.
type sideOf struct {
	id      []int32
	size    []int // in bytes, the newline included
	indent  []int // columns before the text; -1 of a blank line
	changed []bool
}

// is says whether there is such a line and it has changed.
func (s *sideOf) is(i int) bool { return i < len(s.changed) && s.changed[i] }

// comparison finds the fewest lines that two texts differ in: Myers' algorithm
// ("An O(ND) Difference Algorithm and Its Variations", 1986), with the middle of
// a shortest way looked for from both ends, so that it needs little memory.
type comparison struct {
	old, new sideOf
	effort   int     // that is left
	ahead    []int32 // by diagonal: how far the ways from the start reach
	back     []int32 // and those from the end
}

// intern reads both texts.
func (c *comparison) intern(before, after string) {
	ids := map[string]int32{}
	for i, side := range []*sideOf{&c.old, &c.new} {
		for line := range strings.Lines([]string{before, after}[i]) {
			id, ok := ids[line]
			if !ok {
				id = int32(len(ids))
				ids[line] = id
			}
			body := strings.TrimLeft(line, " \t")
			indent := len(line) - len(body)
			if strings.TrimSpace(body) == "" {
				indent = -1
			}
			side.id, side.size, side.indent = append(side.id, id), append(side.size, len(line)), append(side.indent, indent)
		}
		side.changed = make([]bool, len(side.id))
	}
}

// run marks what has changed. When the effort doesn't suffice, that is all
// between what both texts begin and end with.
func (c *comparison) run() bool {
	from, a, b := 0, len(c.old.id), len(c.new.id)
	for from < min(a, b) && c.old.id[from] == c.new.id[from] {
		from++
	}
	for a > from && b > from && c.old.id[a-1] == c.new.id[b-1] {
		a, b = a-1, b-1
	}
	// A line that only one text has is changed whatever the others are.
	has := [2]map[int32]bool{{}, {}}
	for i, part := range [2][]int32{c.old.id[from:a], c.new.id[from:b]} {
		for _, id := range part {
			has[i][id] = true
		}
	}
	var ids, at [2][]int32
	for i, s := range [2]*sideOf{&c.old, &c.new} {
		for line := from; line < [2]int{a, b}[i]; line++ {
			if id := s.id[line]; has[1-i][id] {
				ids[i], at[i] = append(ids[i], id), append(at[i], int32(line))
			} else {
				s.changed[line] = true
			}
		}
	}
	size := 2*(len(ids[0])+len(ids[1])) + 5
	c.ahead, c.back = make([]int32, size), make([]int32, size)
	if !c.part(ids[0], ids[1], at[0], at[1]) {
		for i := from; i < a; i++ {
			c.old.changed[i] = true
		}
		for i := from; i < b; i++ {
			c.new.changed[i] = true
		}
		return false
	}
	c.slide()
	return true
}

// part compares a part of both texts; at are the lines' numbers.
func (c *comparison) part(a, b, atA, atB []int32) bool {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b, atA, atB = a[1:], b[1:], atA[1:], atB[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) == 0 || len(b) == 0 {
		for i := range a {
			c.old.changed[atA[i]] = true
		}
		for i := range b {
			c.new.changed[atB[i]] = true
		}
		return true
	}
	x, y, ok := c.middle(a, b)
	return ok && c.part(a[:x], b[:y], atA, atB) && c.part(a[x:], b[y:], atA[x:], atB[y:])
}

const unreached = -1 << 30

// middle is a point of a shortest way from before to after: so many lines of each
// are before it. Neither their first nor their last lines are alike, so it is
// neither the start nor the end. It is false when the effort doesn't suffice.
func (c *comparison) middle(a, b []int32) (x, y int, ok bool) {
	n, m := len(a), len(b)
	c.effort -= n + m
	delta, zero := n-m, n+m+2 // zero: where diagonal 0 is
	for i := zero - (n + m + 2); i <= zero+n+m+2 && i < len(c.ahead); i++ {
		c.ahead[i], c.back[i] = unreached, unreached
	}
	c.ahead[zero+1], c.back[zero+1] = 0, 0
	for d := 0; d <= (n+m+1)/2; d++ {
		for _, forward := range []bool{true, false} {
			reach, other := c.ahead, c.back
			if !forward {
				reach, other = other, reach
			}
			for k := -d; k <= d; k += 2 {
				c.effort--
				x := int(reach[zero+k+1]) // a line of b more
				if x-k > m {
					x = unreached
				}
				if over := int(reach[zero+k-1]) + 1; over > x && over <= n { // one of a
					x = over
				}
				if x < 0 || x-k < 0 {
					reach[zero+k] = unreached
					continue
				}
				y, from := x-k, x
				if forward {
					for x < n && y < m && a[x] == b[y] {
						x, y = x+1, y+1
					}
				} else {
					for x < n && y < m && a[n-1-x] == b[m-1-y] {
						x, y = x+1, y+1
					}
				}
				c.effort -= x - from
				reach[zero+k] = int32(x)
				// The ways from both ends meet on the same diagonal.
				if k2 := delta - k; (delta&1 != 0) == forward && k2 >= -d && k2 <= d && x+int(other[zero+k2]) >= n {
					if forward {
						return x, y, true
					}
					return n - x, m - y, true
				}
			}
		}
		if c.effort < 0 {
			return 0, 0, false
		}
	}
	return 0, 0, false
}

// slide moves runs of lines that one text alone has to where a reader expects
// them. When the line before a run says what its last line says, the run may as
// well begin there: of all such places up to the next change it takes the one
// that splits the text best, of equal ones the last.
func (c *comparison) slide() {
	since := 0 // lines that both have, since the last change
	for i, j := 0, 0; i < len(c.old.id) || j < len(c.new.id); {
		if !c.old.is(i) && !c.new.is(j) {
			i, j, since = i+1, j+1, since+1
			continue
		}
		from, to := i, j
		for c.old.is(i) {
			i++
		}
		for c.new.is(j) {
			j++
		}
		until := 0 // and until the next one
		for i+until < len(c.old.id) && !c.old.is(i+until) && !c.new.is(j+until) {
			until++
		}
		at := 0
		switch {
		case to == j:
			at = c.old.slide(from, i, since, until)
		case from == i:
			at = c.new.slide(to, j, since, until)
		}
		i, j, since = i+max(at, 0), j+max(at, 0), max(-at, 0)
	}
}

// slide moves one run up or down by at most so many lines, and says by how many.
func (s *sideOf) slide(start, end, up, down int) int {
	best, at := s.split(start)+s.split(end), 0
	for i := 1; i <= up && s.id[start-i] == s.id[end-i]; i++ {
		if cost := s.split(start-i) + s.split(end-i); cost < best {
			best, at = cost, -i
		}
	}
	for i := 1; i <= down && s.id[start+i-1] == s.id[end+i-1]; i++ {
		if cost := s.split(start+i) + s.split(end+i); cost <= best {
			best, at = cost, i
		}
	}
	for i := start; i < end; i++ {
		s.changed[i] = false
	}
	for i := start + at; i < end+at; i++ {
		s.changed[i] = true
	}
	return at
}

// split is how badly a text is split before a line: well where what follows isn't
// indented, and better at a blank line or the end.
func (s *sideOf) split(at int) int {
	cost := 0
	if at == 0 || at == len(s.id) || s.indent[at] < 0 || s.indent[at-1] < 0 {
		cost = -3
	}
	for most := at + 20; at < min(most, len(s.id)); at++ {
		if s.indent[at] >= 0 {
			return cost + 2*s.indent[at]
		}
	}
	return cost
}
