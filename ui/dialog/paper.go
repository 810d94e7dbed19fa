package dialog

import (
	"fmt"
	"slices"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/paint"
)

// paper is what rows are written on: for a screen, and as wide as there is room.
type paper struct {
	dst   uv.Screen
	width int
	rows  []row
}

// passage writes some rows.
type passage func(b *paper)

// rowsOf are the rows that a passage makes.
func rowsOf(dst uv.Screen, width int, make passage) []row {
	b := &paper{dst: dst, width: width}
	make(b)
	return b.rows
}

// both are the rows of one passage and then of another.
func both(first, then passage) passage {
	return func(b *paper) {
		first(b)
		then(b)
	}
}

// says is what only needs words.
func says(words string, k themes.Token) passage {
	return func(b *paper) { b.say(words, k) }
}

func (b *paper) add(rows ...row)                 { b.rows = append(b.rows, rows...) }
func (b *paper) gap()                            { b.add(row{}) }
func (b *paper) line(spans ...text)              { b.add(row{spans: spans}) }
func (b *paper) muted(s string)                  { b.add(muted(s)) }
func (b *paper) short(s string, cols int) string { return paint.Shorten(b.dst, s, cols) }

// pad fills s up with blanks, of which one is always there.
func (b *paper) pad(s string, cols int) string {
	return s + strings.Repeat(" ", max(1, cols-paint.Width(b.dst, s)))
}

// cut leaves out what is beyond so many rows.
func (b *paper) cut(most int) {
	if len(b.rows) > most {
		b.rows = append(b.rows[:most], muted("⋯"))
	}
}

// say adds words in rows of one look.
func (b *paper) say(words string, k themes.Token) { b.wrap(0, text{}, words, k) }

// wrap adds words wrapped beside what stands before them in their first row, so many columns wide.
func (b *paper) wrap(cols int, before text, words string, k themes.Token) {
	first := len(b.rows)
	for _, s := range paint.Wrap(b.dst, words, b.width-cols) {
		if cols == 0 {
			b.line(text{s, k})
			continue
		}
		b.line(text{b.pad(before.s, cols), before.k}, text{s, k})
		before.s = ""
	}
	onward(b.rows[first:])
}

// pair adds a name in a column and its value beside it.
func (b *paper) pair(name, value string, k themes.Token) {
	b.wrap(12, text{name, themes.SurfaceMuted}, value, k)
}

// fact is pair of the usual look, unless there is no value; factIn is that in another look.
func (b *paper) fact(name, value string) { b.factIn(name, value, themes.Surface) }

func (b *paper) factIn(name, value string, k themes.Token) {
	if value != "" {
		b.pair(name, value, k)
	}
}

// facts adds values below each other, the first beside the name of all.
func (b *paper) facts(name string, values []string, k themes.Token) {
	for _, v := range values {
		b.factIn(name, v, k)
		name = ""
	}
}

// odd are the spans of a text in which what could deceive is marked.
func odd(s string) (out []text) {
	for _, p := range paint.Marked(s) {
		k := themes.Inset
		if p.Odd {
			k = themes.Odd
		}
		out = append(out, text{p.Text, k})
	}
	return out
}

// command adds a command whole.
func (b *paper) command(line string) {
	first, prompt := len(b.rows), "$ "
	for _, r := range paint.Script(b.dst, paint.Spelled(b.dst, line), b.width-4) {
		b.add(row{inset: true, spans: append([]text{{" ", themes.Inset}, {prompt, themes.Held}}, odd(r)...)})
		prompt = "  "
	}
	onward(b.rows[first:])
}

// change adds a changed file, after a mark.
func (b *paper) change(c api.Change, mark text) {
	name := c.Path
	if c.From != "" {
		name = c.From + " → " + c.Path
	}
	counts := ""
	if c.Counted && c.Added+c.Removed > 0 { // git's own files have no lines
		counts = fmt.Sprintf("  +%d −%d", c.Added, c.Removed)
	}
	if c.Words != "" {
		counts += "  " + c.Words
	}
	room := b.width - 2 - paint.Width(b.dst, mark.s) - paint.Width(b.dst, counts)
	b.line(mark, text{b.short(c.Status, 1) + " ", statusToken(c.Status)}, text{paint.ShortenLeft(b.dst, name, max(10, room)), themes.Surface}, text{counts, themes.SurfaceMuted})
}

func statusToken(s string) themes.Token {
	switch s {
	case "A":
		return themes.AddedWord
	case "D":
		return themes.RemovedWord
	}
	return themes.Warn
}

// Bounds of the differences that are shown: of a question's or an action's files, and of the rows of one.
const (
	maxDiffs = 50
	mostRows = 2000
)

// differences adds those of files, each below its name; alone is one that is named already.
func (b *paper) differences(diffs []api.FileDiff, alone bool, most int) {
	for _, f := range diffs {
		if !alone {
			b.gap()
			b.change(f.Change, text{})
		}
		if f.Note != "" {
			b.muted("  " + f.Note)
		}
		b.hunks(f.Hunks, most)
	}
}

// hunks adds a file's differences, or the first rows of them.
func (b *paper) hunks(hs []api.Hunk, most int) {
	end := len(b.rows) + most
	for _, h := range hs {
		b.line(text{fmt.Sprintf("@@ -%d,%d +%d,%d @@ %s", h.OldLine, h.OldCount, h.NewLine, h.NewCount, h.Section), themes.Hunk})
		for _, l := range h.Lines {
			if len(b.rows) >= end {
				b.muted("⋯ it goes on; Changes shows all of it")
				return
			}
			b.diffLine(l.Op, l.Text)
		}
	}
}

func (b *paper) diffLine(op, s string) {
	k := themes.Surface
	switch op {
	case "+":
		k = themes.AddedWord
	case "-":
		k = themes.RemovedWord
	}
	s = b.short(strings.ReplaceAll(api.Trim(s, 8*b.width+64), "\t", "    "), b.width-2)
	b.line(text{op + " ", k}, text{s, k})
}

// turned is a hunk the other way round: what taking it back does.
func turned(h api.Hunk) api.Hunk {
	out := api.Hunk{OldLine: h.NewLine, OldCount: h.NewCount, NewLine: h.OldLine, NewCount: h.OldCount, Section: h.Section}
	at := 0 // what goes stands here, before what comes
	for _, l := range h.Lines {
		switch l.Op {
		case "+":
			l.Op = "-"
			out.Lines = slices.Insert(out.Lines, at, l)
			at++
			continue
		case "-":
			l.Op = "+"
		default:
			at = len(out.Lines) + 1
		}
		out.Lines = append(out.Lines, l)
	}
	return out
}
