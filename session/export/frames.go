package export

import (
	"encoding/json"
	"fmt"
	"image/color"
	"slices"
	"strings"
	"time"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"stepbox/session/screen"
)

// Bounds of a report's player: how many frames it has and about how many bytes they
// take, how close they are, and how often one is whole, so that seeking is quick.
const (
	playerFrames = 1500
	playerBytes  = 12 << 20
	playerEvery  = 100 * time.Millisecond
	playerWhole  = 50
)

// filmed draws the terminal on an emulated one and writes it from time to time as
// JSON: [milliseconds, rows of a whole frame or 0, {row: [[text, classes, colour,
// background], ...]}], the rows that differ from the frame before.
type filmed struct {
	r      *run
	sc     *screen.Screen
	cells  uv.ScreenBuffer
	rows   []string // as they were last written
	every  time.Duration
	at     time.Duration // of the newest output
	taken  time.Duration // of the frame before
	dirty  bool
	frames int
	bytes  int
	full   bool // playerBytes are used up
	lost   int  // parts of the record that are damaged
}

// player writes the frames that the report's script shows.
func (r *run) player() error {
	if _, err := r.out.WriteString(`<script type="application/json" id="frames">[`); err != nil {
		return err
	}
	f := &filmed{r: r, sc: screen.New(1, 1), cells: uv.NewScreenBuffer(1, 1), every: playerEvery} // until its size comes
	end := r.s.EndedAt
	if end.IsZero() {
		end = time.Now()
	}
	f.every = max(f.every, end.Sub(r.s.StartedAt)/playerFrames)
	err := r.tape(false, f.take)
	if err == nil && f.dirty {
		err = f.write()
	}
	if err != nil {
		return err
	}
	if _, err := r.out.WriteString("]</script>\n"); err != nil {
		return err
	}
	if f.lost > 0 {
		r.note(fmt.Sprintf("The player lacks what was printed in %d parts of the record that are damaged; stepbox verify %s says more.", f.lost, r.s.ID))
	}
	if f.full {
		r.note("The player has only the beginning; --format cast has all.")
	}
	return nil
}

func (f *filmed) take(t take) error {
	if f.dirty && !f.full && t.at-f.taken >= f.every {
		if err := f.write(); err != nil {
			return err
		}
	}
	switch t.kind {
	case resize:
		f.sc.Resize(t.cols, t.rows)
		f.cells.Resize(t.cols, t.rows)
		f.rows = nil
	case output:
		_, _ = f.sc.Write(t.data) // it takes everything
	case marked: // of damage: no others were asked for
		f.lost++
		return nil
	}
	f.at, f.dirty = t.at, true
	return nil
}

// write writes the terminal as it is now.
func (f *filmed) write() error {
	area := f.cells.Bounds()
	f.sc.Draw(&f.cells, area, 0)
	whole := 0
	if f.frames%playerWhole == 0 || f.rows == nil {
		whole = area.Dy()
		f.rows = make([]string, area.Dy())
	}
	lines := make(map[int]json.RawMessage)
	for y := range area.Dy() {
		b, err := json.Marshal(f.line(y, area.Dx())) // with < > & as escapes: it stands in a script element
		if err != nil {
			return err
		}
		if s := string(b); s != f.rows[y] && (whole == 0 || s != "[]") {
			lines[y], f.rows[y] = b, s
		}
	}
	if len(lines) == 0 && whole == 0 {
		f.dirty, f.taken = false, f.at
		return nil
	}
	b, err := json.Marshal(lines)
	if err != nil {
		return err
	}
	comma := ",\n"
	if f.frames == 0 {
		comma = "\n"
	}
	n, err := fmt.Fprintf(f.r.out, "%s[%d,%d,%s]", comma, f.at.Milliseconds(), whole, b)
	f.bytes += n
	f.frames++
	f.dirty, f.taken, f.full = false, f.at, f.bytes > playerBytes
	return err
}

// line is a row as runs of one look each; blanks at its end are left out.
func (f *filmed) line(y, cols int) [][]string {
	runs := [][]string{}
	for x := 0; x < cols; {
		cell := f.cells.CellAt(x, y)
		if cell == nil {
			break
		}
		look := lookOf(cell.Style)
		text := cell.Content
		if text == "" {
			text = " "
		}
		if n := len(runs); n > 0 && slices.Equal(runs[n-1][1:], look) {
			runs[n-1][0] += text
		} else {
			runs = append(runs, append([]string{text}, look...))
		}
		x += max(1, cell.Width)
	}
	for n := len(runs) - 1; n >= 0 && strings.Join(runs[n][1:], "") == ""; n-- {
		if runs[n][0] = strings.TrimRight(runs[n][0], " "); runs[n][0] != "" {
			break
		}
		runs = runs[:n]
	}
	return runs
}

// lookOf is a style as classes of the report's style sheet, a colour and a background.
func lookOf(s uv.Style) []string {
	var classes []string
	for _, a := range []struct {
		bit   uint8
		class string
	}{{uv.AttrBold, "b"}, {uv.AttrFaint, "f"}, {uv.AttrItalic, "i"}, {uv.AttrStrikethrough, "s"}} {
		if s.Attrs&a.bit != 0 {
			classes = append(classes, a.class)
		}
	}
	if s.Underline != 0 {
		classes = append(classes, "u")
	}
	fg, bg := s.Fg, s.Bg
	if s.Attrs&uv.AttrReverse != 0 {
		if fg, bg = bg, fg; fg == nil && bg == nil {
			classes = append(classes, "r")
		}
	}
	classes, ink := colour(classes, "f", fg)
	classes, paper := colour(classes, "b", bg)
	return []string{strings.Join(classes, " "), ink, paper}
}

// colour is one of the 16 colours as a class, or any other as #rrggbb.
func colour(classes []string, kind string, c color.Color) ([]string, string) {
	switch v := c.(type) {
	case nil:
		return classes, ""
	case ansi.BasicColor:
		return append(classes, fmt.Sprint(kind, uint8(v))), ""
	case ansi.IndexedColor:
		if v < 16 {
			return append(classes, fmt.Sprint(kind, uint8(v))), ""
		}
	}
	r, g, b, _ := c.RGBA()
	return classes, fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}
