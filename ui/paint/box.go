package paint

import (
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/themes"
)

// Border glyphs. Focus is told by weight as well as by colour.
var (
	thin  = [6]string{"╭", "─", "╮", "│", "╰", "╯"}
	heavy = [6]string{"┏", "━", "┓", "┃", "┗", "┛"}

	thinASCII  = [6]string{"+", "-", "+", "|", "+", "+"}
	heavyASCII = [6]string{"#", "=", "#", "#", "#", "#"}
	none       = [6]string{" ", " ", " ", " ", " ", " "}
)

// Box is a pane's border and the words in it.
type Box struct {
	Title string
	Facts Line // after the title, the last ones given up when there is no room
	Right Line // at the right end of the top edge
	Foot  Line // at the right end of the bottom edge
}

// Draw draws the border and returns the area inside.
func (b Box) Draw(area uv.Rectangle, f Frame) uv.Rectangle {
	if area.Dx() < 2 || area.Dy() < 2 {
		return uv.Rectangle{}
	}
	glyphs, k, title := thin, themes.Border, themes.Title
	if f.Focused {
		glyphs, k, title = heavy, themes.BorderFocus, themes.TitleFocus
	}
	edge(f.Screen, area, glyphs, f.P.S(k))

	x, y, end := area.Min.X+1, area.Min.Y, area.Max.X-2
	start := end + 1
	if len(b.Right) > 0 {
		if w := f.LineWidth(b.Right); w+12 < area.Dx() {
			start = end - w
			f.Text(start-1, y, end+1, " ", k)
			f.Line(start, y, end, b.Right)
			f.Text(end, y, end+1, " ", k)
			start -= 2
		}
	}
	if b.Title != "" {
		name := b.Title
		if f.Number != "" {
			name = f.Number + " " + name
		}
		if f.Zoomed {
			name += " · zoomed"
		}
		x = f.Clip(x, y, start, " "+name+" ", title)
		if facts := first(f.Screen, b.Facts, start-x-2); len(facts) > 0 {
			x = f.Text(x, y, start, " ", k)
			x = f.Line(x, y, start, facts)
			f.Text(x, y, start, " ", k)
		}
	}
	if len(b.Foot) > 0 {
		if w, y := f.LineWidth(b.Foot), area.Max.Y-1; w+6 <= area.Dx() {
			at := area.Max.X - 3 - w
			f.Text(at-1, y, area.Max.X, " ", k)
			f.Line(at, y, area.Max.X-1, b.Foot)
			f.Text(area.Max.X-3, y, area.Max.X, " ", k)
		}
	}
	return area.Inset(1)
}

// Between stands between facts.
const Between = " · "

// Fact adds words to a line of facts.
func (l Line) Fact(p *Palette, words string, k themes.Token) Line {
	if len(l) > 0 {
		l = append(l, Span{Text: Between, Style: p.S(themes.Faint)})
	}
	return append(l, Span{Text: words, Style: p.S(k)})
}

// first are the first spans of a line, as many as there is room for.
func first(dst uv.Screen, l Line, room int) Line {
	for len(l) > 0 && (LineWidth(dst, l) > room || l[len(l)-1].Text == Between) {
		l = l[:len(l)-1]
	}
	return l
}

// edge draws a border of six glyphs: top left, horizontal, top right,
// vertical, bottom left, bottom right.
func edge(dst uv.Screen, area uv.Rectangle, glyphs [6]string, st uv.Style) {
	switch SignsOf(dst) {
	case Words:
		glyphs = none
	case ASCII:
		if glyphs == heavy {
			glyphs = heavyASCII
		} else {
			glyphs = thinASCII
		}
	}
	cell := uv.Cell{Width: 1, Style: st}
	set := func(x, y int, g string) {
		cell.Content = g
		dst.SetCell(x, y, &cell)
	}
	for x := area.Min.X + 1; x < area.Max.X-1; x++ {
		set(x, area.Min.Y, glyphs[1])
		set(x, area.Max.Y-1, glyphs[1])
	}
	for y := area.Min.Y + 1; y < area.Max.Y-1; y++ {
		set(area.Min.X, y, glyphs[3])
		set(area.Max.X-1, y, glyphs[3])
	}
	set(area.Min.X, area.Min.Y, glyphs[0])
	set(area.Max.X-1, area.Min.Y, glyphs[2])
	set(area.Min.X, area.Max.Y-1, glyphs[4])
	set(area.Max.X-1, area.Max.Y-1, glyphs[5])
}

// Heavy draws the heavy border that dialogs have.
func Heavy(dst uv.Screen, area uv.Rectangle, st uv.Style) { edge(dst, area, heavy, st) }

// Thin draws the border of a dialog while something else has the keys.
func Thin(dst uv.Screen, area uv.Rectangle, st uv.Style) { edge(dst, area, thin, st) }

// Rule draws a horizontal line.
func Rule(dst uv.Screen, x, y, end int, st uv.Style) {
	cell := uv.Cell{Content: [...]string{"─", "-", " "}[SignsOf(dst)], Width: 1, Style: st}
	for ; x < end; x++ {
		dst.SetCell(x, y, &cell)
	}
}

// Scrollbar marks, in the right border of an area, which part of total rows is
// in view. Nothing is drawn when all of them are.
func Scrollbar(dst uv.Screen, x int, area uv.Rectangle, top, total int, st uv.Style) {
	h := area.Dy()
	if total <= h || h < 2 {
		return
	}
	size := max(1, h*h/total)
	at := top * (h - size) / (total - h)
	for i := range size {
		dst.SetCell(x, area.Min.Y+min(at+i, h-1), &uv.Cell{Content: [...]string{"▐", "#", " "}[SignsOf(dst)], Width: 1, Style: st})
	}
}
