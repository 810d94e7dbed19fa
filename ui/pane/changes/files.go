package changes

import (
	"fmt"
	"strconv"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/paint"
)

func (p *Pane) empty(dst uv.Screen, r uv.Rectangle, f paint.Frame) {
	words := "no changes: the project is as it was"
	switch {
	case p.Problem != "":
		words = p.Problem
	case p.Loading:
		words = "reading changes…"
	case p.Action != 0:
		words = fmt.Sprintf("action %d changed no files", p.Action)
	}
	paint.Paragraph(dst, r, words, f.P.S(themes.Muted))
}

// row draws the n-th file, or what is said below the last.
func (p *Pane) row(dst uv.Screen, r uv.Rectangle, f paint.Frame, n int) {
	files, more := p.changes.Files, p.changes.More
	switch {
	case n < len(files):
		p.file(dst, r, f, files[n])
	case n == len(files) && more > 0:
		words := fmt.Sprintf("⋯ and %d more, not listed", more)
		if p.changes.Next != "" {
			words = fmt.Sprintf("⋯ and %d more, reading on…", more)
		}
		paint.Clip(dst, r.Min.X+1, r.Min.Y, r.Max.X, words, f.P.S(themes.Muted))
	default:
		words := fmt.Sprintf("⚠ outside the project: %s", p.changes.Apart[0])
		if k := len(p.changes.Apart) - 1; k > 0 {
			words += fmt.Sprintf(" and %d more", k)
		}
		paint.Clip(dst, r.Min.X+1, r.Min.Y, r.Max.X, words, f.P.S(themes.Warn))
	}
}

func (p *Pane) file(dst uv.Screen, r uv.Rectangle, f paint.Frame, c api.Change) {
	y, x, end := r.Min.Y, r.Min.X+1, r.Max.X-1
	letter := paint.Shorten(dst, c.Status, 1)
	paint.Text(dst, x, y, end, letter, f.P.S(StatusToken(c.Status)))
	x += 2
	right := Counts(c, f.P)
	stop := end - paint.LineWidth(dst, right)
	if stop < x+10 {
		stop = end
	} else {
		paint.Draw(dst, stop, y, end, right)
		stop -= 1
	}
	name := c.Path
	if c.From != "" {
		name = c.From + " → " + c.Path
	}
	n := paint.Text(dst, x, y, stop, paint.ShortenLeft(dst, name, stop-x), f.P.S(themes.Text))
	if c.Words != "" {
		paint.Clip(dst, n+2, y, stop, c.Words, f.P.S(themes.Muted))
	}
}

// StatusToken is the look of a status letter.
func StatusToken(status string) themes.Token {
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

// Counts says how much of a file changed: lines, or sizes where lines mean nothing.
func Counts(c api.Change, p *paint.Palette) paint.Line {
	switch {
	case c.Kind != "" && c.Kind != "file":
		return paint.Line{{Text: paint.Clean(c.Kind), Style: p.S(themes.Muted)}}
	case c.Binary:
		return paint.Line{{Text: "binary " + paint.Bytes(c.NewSize), Style: p.S(themes.Muted)}}
	case !c.Counted:
		return paint.Line{{Text: paint.Bytes(max(c.NewSize, c.OldSize)), Style: p.S(themes.Muted)}}
	}
	added, removed := "", ""
	if c.Added > 0 {
		added = "+" + strconv.Itoa(c.Added)
	}
	if c.Removed > 0 {
		removed = "−" + strconv.Itoa(c.Removed)
	}
	return paint.Line{
		{Text: fmt.Sprintf("%5s", added), Style: p.S(themes.AddedWord)},
		{Text: fmt.Sprintf("%5s", removed), Style: p.S(themes.RemovedWord)},
	}
}
