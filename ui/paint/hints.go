package paint

import (
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/themes"
)

// Hint is a key and what it does here, for the last line of a screen or a dialog.
type Hint struct {
	Key, Words string
	Off        bool // shown, but it does nothing now
}

// Columns between two hints, and where one more fits so.
const (
	hintGap   = 3
	hintTight = 2
)

func (h Hint) width(dst uv.Screen) int { return Width(dst, h.Key) + 1 + Width(dst, h.Words) }

// HintsWidth is how many columns hints take beside each other.
func HintsWidth(dst uv.Screen, hints []Hint) int {
	w := 0
	for _, h := range hints {
		w += h.width(dst) + hintGap
	}
	return max(0, w-hintGap)
}

// WrapHints breaks hints into lines of at most that many columns.
func WrapHints(dst uv.Screen, hints []Hint, width int) [][]Hint {
	var out [][]Hint
	for _, h := range hints {
		n := len(out) - 1
		if n < 0 || HintsWidth(dst, out[n])+hintGap+h.width(dst) > width {
			out = append(out, []Hint{h})
			continue
		}
		out[n] = append(out[n], h)
	}
	return out
}

// fitting is how many hints fit whole in so many columns.
func fitting(dst uv.Screen, hints []Hint, width, gap int) int {
	w := 0
	for i, h := range hints {
		if w += h.width(dst); w > width {
			return i
		}
		w += gap
	}
	return len(hints)
}

// Hints draws the hints that fit whole, on the ground of a token.
func (p *Palette) Hints(dst uv.Screen, x, y, end int, ground themes.Token, hints []Hint) {
	gap := hintGap
	n := fitting(dst, hints, end-x, gap)
	if more := fitting(dst, hints, end-x, hintTight); more > n {
		n, gap = more, hintTight
	}
	for _, h := range hints[:n] {
		key, words := p.On(themes.Key, ground), p.On(themes.Hint, ground)
		if h.Off {
			key, words = p.On(themes.KeyOff, ground), p.On(themes.KeyOff, ground)
			key.Attrs |= uv.AttrStrikethrough
		}
		x = Text(dst, x, y, end, h.Key, key)
		x = Text(dst, x, y, end, " "+h.Words, words) + gap
	}
}
