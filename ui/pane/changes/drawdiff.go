package changes

import (
	"fmt"
	"strconv"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/themes"
	"stepbox/ui/paint"
)

// drawDiff draws the diff, or why there is none, inside of the pane's border.
func (p *Pane) drawDiff(border, r uv.Rectangle, f paint.Frame) {
	v := &p.view
	v.area, v.height = r, r.Dy()
	n, ok := p.at()
	switch {
	case ok && n.file < 0:
		paint.Paragraph(f.Screen, r, p.folderWords(n), f.P.S(themes.Muted))
		return
	case v.problem != "":
		paint.Paragraph(f.Screen, r, v.problem, f.P.S(themes.Warn))
		return
	case v.diff == nil:
		paint.Paragraph(f.Screen, r, "reading the diff…", f.P.S(themes.Muted))
		return
	}
	r.Min.Y = p.header(r, f)
	v.area, v.height = r, r.Dy()
	if len(v.diff.Rows) == 0 {
		paint.Paragraph(f.Screen, r, p.summary(), f.P.S(themes.Muted))
		return
	}
	if beside := v.sides(r.Dx()); beside != v.beside {
		cur, top := v.rowAt(v.cur), v.rowAt(v.top)
		v.beside = beside
		v.cur, v.top = v.lineOf(cur), v.lineOf(top)
	}
	v.scroll(0)
	for i := range r.Dy() {
		n, at := v.top+i, uv.Rect(r.Min.X, r.Min.Y+i, r.Dx(), 1)
		if n >= v.lines() {
			if n == v.lines() && v.diff.Cut {
				f.Clip(r.Min.X+1, at.Min.Y, r.Max.X, "⋯ the diff goes on; it is too long to show here", themes.Warn)
			}
			break
		}
		p.drawLine(at, f, n)
		if n == v.cur && p.Reading && f.Focused {
			if v.diff.Rows[v.rowAt(n)].Op == '@' { // what space selects
				paint.Dim(f.Screen, at, f.P.S(themes.Selected))
				at.Min.X++ // after the mark
			}
			f.Text(at.Min.X, at.Min.Y, at.Max.X, "▌", themes.BorderFocus)
		}
	}
	bar := f.P.S(themes.Border)
	if f.Focused {
		bar = f.P.S(themes.BorderFocus)
	}
	paint.Scrollbar(f.Screen, border.Max.X-1, r, v.top, v.lines(), bar)
}

// folderWords say what is in a folder or a group.
func (p *Pane) folderWords(n *node) string {
	words := paint.Files(int(n.files))
	if n.open && !n.head() {
		words = fmt.Sprintf("more than %d files", n.files)
	}
	words = n.name + " · " + words
	if n.added+n.removed > 0 {
		words += fmt.Sprintf(" · +%d −%d", n.added, n.removed)
	}
	if p.folded(n) {
		words += " · enter shows them"
	}
	return words
}

// header draws what there is to say of the file besides its lines, and returns
// the row after it.
func (p *Pane) header(r uv.Rectangle, f paint.Frame) int {
	d := p.view.diff
	lines := []paint.Line{}
	if d.Change.From != "" {
		words := "renamed from " + d.Change.From
		if len(d.Rows) > 0 {
			words = "renamed and edited, from " + d.Change.From
		}
		lines = append(lines, paint.Line{f.Span(words, themes.Info)})
	}
	if p.view.note != "" {
		lines = append(lines, paint.Line{f.Span(p.view.note, themes.Warn)})
	}
	c := d.Change
	if n, ok := p.at(); ok && n.file >= 0 { // what became of the file in the project is in the list
		c.Host, c.Applied = p.tree.Files[n.file].Host, p.tree.Files[n.file].Applied
	}
	if strings.Contains(d.Note, c.Type) {
		c.Type = "" // it is said below
	}
	for _, s := range said(c, f) {
		lines = append(lines, paint.Line{s})
	}
	y := r.Min.Y
	for _, l := range lines[:min(len(lines), r.Dy()/3)] {
		paint.Clip(f.Screen, r.Min.X+1, y, r.Max.X, l[0].Text, l[0].Style)
		y++
	}
	return y
}

// summary says in words why there are no lines to show.
func (p *Pane) summary() string {
	d := p.view.diff
	words := d.Note
	if words == "" {
		words = "no lines differ"
		if d.Change.Binary {
			words = "binary file"
		}
	}
	if c := d.Change; c.OldSize != c.NewSize && c.Type == "" {
		words += fmt.Sprintf(" · %s → %s bytes", paint.Bytes(c.OldSize), paint.Bytes(c.NewSize))
	}
	return words
}

// side is which of the texts a line is drawn for.
type side int

const (
	unified side = iota
	oldText
	newText
)

// drawLine draws one line of the diff, unified or side by side.
func (p *Pane) drawLine(r uv.Rectangle, f paint.Frame, n int) {
	rows := p.view.diff.Rows
	if !p.view.beside {
		p.drawRow(r, f, rows[n], unified)
		return
	}
	pair := p.view.diff.Pairs[n]
	if row := rows[max(pair[0], pair[1])]; row.Op == '@' {
		p.drawRow(r, f, row, unified)
		return
	}
	half := (r.Dx() - 1) / 2
	for i, at := range []uv.Rectangle{
		uv.Rect(r.Min.X, r.Min.Y, half, 1), uv.Rect(r.Min.X+half+1, r.Min.Y, r.Dx()-half-1, 1),
	} {
		if pair[i] >= 0 {
			p.drawRow(at, f, rows[pair[i]], side(i+1))
		}
	}
	f.Text(r.Min.X+half, r.Min.Y, r.Max.X, "│", themes.Border)
}

// numberCols is how wide line numbers are; 0 where there is no room for them.
func (p *Pane) numberCols(cols int, s side) int {
	if s == unified && cols < 84 || s != unified && cols < 44 {
		return 0
	}
	most := 0
	for _, r := range p.view.diff.Rows[max(0, len(p.view.diff.Rows)-2):] {
		most = max(most, r.Old, r.New)
	}
	return max(3, len(strconv.Itoa(most)))
}

func (p *Pane) drawRow(r uv.Rectangle, f paint.Frame, row Row, s side) {
	y, x, end := r.Min.Y, r.Min.X, r.Max.X
	if row.Op == '@' {
		f.Text(x, y, end, p.hunkMark(row.Hunk), themes.Info)
		x += 2
		for _, pc := range row.Pieces {
			x = f.Clip(x, y, end, pc.Text, pc.Kind)
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
	if row.Op == '+' || row.Op == '-' {
		f.Fill(r, ground)
	}
	if wide := p.numberCols(r.Dx(), s); wide > 0 {
		numbers := []int{row.Old, row.New}
		if s != unified {
			numbers = numbers[s-1 : s]
		}
		x++
		for _, n := range numbers {
			if n > 0 {
				paint.Text(f.Screen, x, y, end, fmt.Sprintf("%*d", wide, n), f.P.On(themes.Faint, ground))
			}
			x += wide + 1
		}
		x--
	}
	x++
	if s == unified || row.Op != ' ' {
		paint.Text(f.Screen, x, y, end, string(row.Op), f.P.On(sign, ground))
	}
	p.drawText(uv.Rect(x+2, y, max(0, end-x-2), 1), f, row, ground, marked)
}

// drawText draws the text of a line from the column on that it is scrolled to.
func (p *Pane) drawText(r uv.Rectangle, f paint.Frame, row Row, ground, marked themes.Token) {
	y, x, end := r.Min.Y, r.Min.X, r.Max.X
	skip := p.view.slide
	for _, pc := range row.Pieces {
		text := pc.Text
		if skip > 0 {
			w := f.Width(text)
			if w <= skip {
				skip -= w
				continue
			}
			text = paint.From(f.Screen, text, skip)
			skip = 0
		}
		st := f.P.On(pc.Kind, ground)
		if pc.Marked {
			st = f.P.S(marked)
		}
		before := x
		x = paint.Text(f.Screen, x, y, end, text, st)
		if x-before < f.Width(text) {
			paint.Text(f.Screen, end-1, y, end, "›", f.P.On(themes.Muted, ground))
			break
		}
	}
	if p.view.slide > 0 && r.Dx() > 0 {
		paint.Text(f.Screen, r.Min.X-1, y, end, "‹", f.P.On(themes.Muted, ground))
	}
}
