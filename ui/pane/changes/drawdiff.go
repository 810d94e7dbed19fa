package changes

import (
	"fmt"
	"strconv"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/themes"
	"stepbox/ui/paint"
)

func (p *Pane) drawDiff(dst uv.Screen, r uv.Rectangle, f paint.Frame) {
	p.diffRows = r.Dy()
	switch {
	case p.diffErr != "":
		paint.Paragraph(dst, r, p.diffErr, f.P.S(themes.Warn))
		return
	case p.diff == nil:
		paint.Paragraph(dst, r, "reading the diff…", f.P.S(themes.Muted))
		return
	case len(p.diff.Rows) == 0:
		paint.Paragraph(dst, r, p.summary(), f.P.S(themes.Muted))
		return
	}
	p.scroll(0)
	numbers := 0
	if r.Dx() >= 84 {
		last := p.diff.Rows[len(p.diff.Rows)-1]
		numbers = max(3, len(strconv.Itoa(max(last.Old, last.New))))
	}
	for i := range r.Dy() {
		n := p.top + i
		if n >= len(p.diff.Rows) {
			if n == len(p.diff.Rows) && p.diff.Cut {
				paint.Clip(dst, r.Min.X+1, r.Min.Y+i, r.Max.X, "⋯ the diff goes on; it is too long to show here", f.P.S(themes.Warn))
			}
			break
		}
		p.drawRow(dst, uv.Rect(r.Min.X, r.Min.Y+i, r.Dx(), 1), f, p.diff.Rows[n], numbers)
	}
}

// summary says in words why there are no lines to show.
func (p *Pane) summary() string {
	c := p.diff.Change
	words := p.diff.Note
	if words == "" {
		words = "no lines differ"
		if c.Binary {
			words = "binary file"
		}
	}
	if c.Words != "" {
		words += " · " + c.Words
	}
	if c.OldSize != c.NewSize {
		words += fmt.Sprintf(" · %s → %s bytes", paint.Bytes(c.OldSize), paint.Bytes(c.NewSize))
	}
	return words
}

func (p *Pane) drawRow(dst uv.Screen, r uv.Rectangle, f paint.Frame, row Row, numbers int) {
	y, x, end := r.Min.Y, r.Min.X, r.Max.X
	if row.Op == '@' {
		x++
		for _, pc := range row.Pieces {
			x = paint.Clip(dst, x, y, end, pc.Text, f.P.S(pc.Kind))
		}
		return
	}
	ground, marked, sign := themes.Text, themes.Text, themes.Muted
	switch row.Op {
	case '+':
		ground, marked, sign = themes.Added, themes.AddedMark, themes.AddedWord
	case '-':
		ground, marked, sign = themes.Removed, themes.RemovedMark, themes.RemovedWord
	}
	if row.Op != ' ' {
		paint.Fill(dst, r, f.P.S(ground))
	}
	if numbers > 0 {
		st := f.P.On(themes.Faint, ground)
		for _, n := range []int{row.Old, row.New} {
			if n > 0 {
				paint.Text(dst, x+1, y, end, fmt.Sprintf("%*d", numbers, n), st)
			}
			x += numbers + 1
		}
	}
	paint.Text(dst, x+1, y, end, string(row.Op), f.P.On(sign, ground))
	x += 3
	start := x
	skip := p.slide
	for _, pc := range row.Pieces {
		text := pc.Text
		if skip > 0 {
			w := paint.Width(dst, text)
			if w <= skip {
				skip -= w
				continue
			}
			text = paint.From(dst, text, skip)
			skip = 0
		}
		st := f.P.On(pc.Kind, ground)
		if pc.Marked {
			st = f.P.S(marked)
		}
		before := x
		x = paint.Text(dst, x, y, end, text, st)
		if x-before < paint.Width(dst, text) {
			paint.Text(dst, end-1, y, end, "›", f.P.On(themes.Muted, ground))
			break
		}
	}
	if p.slide > 0 {
		paint.Text(dst, start-1, y, end, "‹", f.P.On(themes.Muted, ground))
	}
}
