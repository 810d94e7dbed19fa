package changes

import (
	"fmt"
	"strconv"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/find"
	"stepbox/ui/paint"
)

func (p *Pane) empty(r uv.Rectangle, f paint.Frame) {
	words := "no changes: the project is as it was"
	switch {
	case p.Problem != "":
		words = p.Problem
	case p.filter.Narrows() && p.shown().Next == "" && len(p.shown().Files) > 0:
		words = "no changed file has that: " + paint.Clean(p.filter.String())
	case p.Loading:
		words = "reading changes…"
	case len(p.shown().Returned) > 0 && p.Action == 0 && p.Since == 0:
		words = p.shown().below()[0]
	case p.Action != 0:
		words = fmt.Sprintf("#%d changed no files", p.Action)
	case p.Since != 0:
		words = "nothing has changed since you looked"
	}
	paint.Paragraph(f.Screen, r, words, f.P.S(themes.Muted))
}

// row draws the n-th row, or what is said below the last.
func (p *Pane) row(r uv.Rectangle, f paint.Frame, n int) {
	t := p.shown()
	switch {
	case n < len(p.rows):
		p.node(r, f, &t.nodes[p.rows[n]])
	case n == len(p.rows) && t.Next != "":
		words := "⋯ reading on as far as you go"
		if p.end || p.later != nil {
			words = "⋯ reading on…"
		}
		f.Clip(r.Min.X+1, r.Min.Y, r.Max.X, words, themes.Muted)
	case n == len(p.rows) && t.More > 0:
		f.Clip(r.Min.X+1, r.Min.Y, r.Max.X, fmt.Sprintf("⋯ and %d more, not listed", t.More), themes.Muted)
	default:
		if t.Next != "" || t.More > 0 {
			n--
		}
		f.Clip(r.Min.X+1, r.Min.Y, r.Max.X, t.below()[n-len(p.rows)], themes.Warn)
	}
}

// below is what is said below the changes.
func (t *Tree) below() (out []string) {
	for _, x := range []struct {
		words string
		paths []string
	}{{"⚠ outside the project: ", t.Apart}, {"⚠ undone here, not in the project: ", t.Returned}} {
		if len(x.paths) == 0 {
			continue
		}
		words := x.words + paint.Clean(x.paths[0])
		if k := len(x.paths) - 1; k > 0 {
			words += fmt.Sprintf(" and %d more", k)
		}
		out = append(out, words)
	}
	return out
}

// maxIndent is how many columns what is below folders is moved to the right at most.
const maxIndent = 24

func (p *Pane) node(r uv.Rectangle, f paint.Frame, n *node) {
	f.Text(r.Min.X, r.Min.Y, r.Max.X, p.mark(n), themes.Info)
	step := 2
	if r.Dx() < 60 {
		step = 1
	}
	depth, name := int(n.depth), n.name
	if p.Flat && n.file >= 0 {
		if depth, name = 0, n.path; n.group != "" {
			depth = 1 // below its head
		}
	}
	if p.Selected() > 0 {
		r.Min.X++ // a gap after the marks
	}
	r.Min.X += 1 + min(depth*step, maxIndent, r.Dx()/3)
	r.Max.X--
	if n.file >= 0 {
		p.file(r, f, &p.tree.Files[n.file], name)
		return
	}
	glyph, style := "▾ ", themes.Strong
	if p.folded(n) {
		glyph = "▸ "
	}
	if n.head() {
		style = themes.Muted
	}
	right, count := lineCounts(n.added, n.removed, f), int(n.files)
	if p.found != nil { // lines are known of all of it only
		right, count = nil, p.has(int(n.from), int(n.to))
	}
	files := strconv.Itoa(count)
	if n.open && !n.head() {
		files += "+"
	}
	if r.Dx() >= 50 {
		files = strings.TrimSuffix(files+" files", "s")
		if count != 1 || n.open {
			files += "s"
		}
	}
	right = append(paint.Line{f.Span(files, themes.Muted)}, right...)
	stop := ending(f, r, 6, right)
	x := f.Text(r.Min.X, r.Min.Y, stop, glyph, themes.Faint)
	shorten := paint.ShortenLeft // of a path the end says most
	if n.head() {
		shorten = paint.Shorten
	}
	f.Text(x, r.Min.Y, stop, shorten(f.Screen, n.name, stop-x), style)
}

// ending draws what stands at a row's right end, when there is room for it beside
// so many columns, and returns where it begins.
func ending(f paint.Frame, r uv.Rectangle, least int, right paint.Line) int {
	at := r.Max.X - f.LineWidth(right)
	if at < r.Min.X+least {
		return r.Max.X
	}
	f.Line(at, r.Min.Y, r.Max.X, right)
	return at - 1
}

func (p *Pane) file(r uv.Rectangle, f paint.Frame, c *api.Change, name string) {
	y := r.Min.Y
	stop := ending(f, r, 12, counts(*c, f))
	f.Text(r.Min.X, y, stop, f.Shorten(c.Status, 1), statusToken(c.Status))
	x := r.Min.X + 2
	shorten := paint.Shorten
	if p.Flat { // of a path the end says most
		shorten = paint.ShortenLeft
	}
	if c.From != "" {
		name += " ← " + c.From
	}
	x = f.Text(x, y, stop, shorten(f.Screen, name, stop-x), themes.Text)
	for _, s := range said(*c, f) {
		x = paint.Clip(f.Screen, x+2, y, stop, s.Text, s.Style)
	}
}

// said is what there is to say of a change beside its lines, what a person must
// know first.
func said(c api.Change, f paint.Frame) paint.Line {
	var out paint.Line
	if c.Host != "" {
		out = append(out, f.Span("⚠ "+c.Host, themes.Warn))
	}
	if c.Applied {
		out = append(out, f.Span("✓ applied", themes.OK))
	}
	for _, words := range []string{c.Words, c.Type} {
		if words != "" {
			out = append(out, f.Span(words, themes.Muted))
		}
	}
	return out
}

// statusToken is the look of a status letter.
func statusToken(status string) themes.Token {
	switch status {
	case "A":
		return themes.AddedWord
	case "D":
		return themes.RemovedWord
	case "M", "T":
		return themes.Warn
	}
	return themes.Info
}

// counts says how much of a file changed: lines, or sizes where lines mean nothing.
func counts(c api.Change, f paint.Frame) paint.Line {
	switch {
	case c.Kind != "" && c.Kind != "file":
		return paint.Line{f.Span(paint.Clean(c.Kind), themes.Muted)}
	case c.Binary:
		return paint.Line{f.Span("binary "+paint.Bytes(c.NewSize), themes.Muted)}
	case !c.Counted:
		return paint.Line{f.Span(paint.Bytes(max(c.NewSize, c.OldSize)), themes.Muted)}
	}
	return lineCounts(c.Added, c.Removed, f)
}

func lineCounts(plus, minus int, f paint.Frame) paint.Line {
	added, removed := "", ""
	if plus > 0 {
		added = "+" + strconv.Itoa(plus)
	}
	if minus > 0 {
		removed = "−" + strconv.Itoa(minus)
	}
	return paint.Line{f.Span(fmt.Sprintf(" %4s", added), themes.AddedWord), f.Span(fmt.Sprintf(" %4s", removed), themes.RemovedWord)}
}

// Filter lists only the files that a filter has. For that all of them are fetched.
func (p *Pane) Filter(f find.Filter) {
	p.filter = f
	p.arrange()
}

// Match goes to the next or previous file that is listed; beyond the last is the first.
func (p *Pane) Match(by int) {
	p.list.Step(by, len(p.rows), func(n int) bool { return p.tree.nodes[p.rows[n]].file >= 0 })
	p.touched = true
	p.choose(p.list.At())
}

// sift counts the files that the filter has.
func (p *Pane) sift() {
	if p.found = nil; !p.filter.Narrows() {
		return
	}
	files := p.shown().Files
	p.found = make([]int32, len(files)+1)
	for i := range files {
		p.found[i+1] = p.found[i]
		if r := find.OfChange(&files[i]); p.filter.Has(&r) {
			p.found[i+1]++
		}
	}
}

// has is how many of some files the filter has.
func (p *Pane) has(from, to int) int {
	if p.found == nil {
		return to - from
	}
	return int(p.found[to] - p.found[from])
}

// without says whether the filter has nothing of a node.
func (p *Pane) without(n *node) bool { return p.found != nil && p.has(int(n.from), int(n.to)) == 0 }

// near is the node of the first file that is listed behind another, or else of the first.
func (p *Pane) near(node int) int {
	for _, i := range p.rows {
		if int(i) > node && p.tree.nodes[i].file >= 0 {
			return int(i)
		}
	}
	return p.first()
}
