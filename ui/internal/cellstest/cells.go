// Package cellstest checks what tests have drawn.
package cellstest

import (
	"testing"
	"unicode"

	uv "github.com/charmbracelet/ultraviolet"
)

// Check fails when a cell could do more than show a character, or when
// something was drawn outside of an area.
func Check(t testing.TB, s uv.ScreenBuffer, area uv.Rectangle) {
	t.Helper()
	for y := range s.Height() {
		for x := range s.Width() {
			c := s.CellAt(x, y)
			if !uv.Pos(x, y).In(area) && !c.Equal(&uv.EmptyCell) {
				t.Fatalf("%q is drawn at %d,%d, outside of %v", c.Content, x, y, area)
			}
			if c.Link.URL != "" {
				t.Fatalf("a link is drawn at %d,%d", x, y)
			}
			if c.Width == 0 {
				continue
			}
			if w := s.Method.StringWidth(c.Content); w != c.Width {
				t.Fatalf("%q at %d,%d is %d wide and claims %d", c.Content, x, y, w, c.Width)
			}
			for _, r := range c.Content {
				if r != ' ' && !unicode.IsPrint(r) {
					t.Fatalf("%q is drawn at %d,%d", c.Content, x, y)
				}
			}
		}
	}
}
