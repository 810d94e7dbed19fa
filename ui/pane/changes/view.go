package changes

import (
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/ui/intent"
)

// view is where the person is in the shown diff.
type view struct {
	diff    *Diff
	of      Want
	problem string // why there is none
	note    string // what the person should know of it

	cur    int // the line that keys are about
	top    int // first line in view
	slide  int // columns scrolled to the right
	split  turn
	beside bool // it was drawn side by side
	area   uv.Rectangle
	height int // lines in view
}

// turn is whether the person wants the old and the new text side by side.
type turn int8

const (
	byWidth turn = iota // when there is room
	always
	never
)

// Room that showing both sides beside each other needs, in columns: for it to
// be done unasked, and at all.
const (
	besideCols = 140
	leastCols  = 60
)

// sides says whether both texts are shown beside each other in so many columns.
func (v *view) sides(cols int) bool {
	return cols >= leastCols && (v.split == always || v.split == byWidth && cols >= besideCols)
}

// turn changes between unified and side by side.
func (v *view) turn() string {
	if v.area.Dx() < leastCols {
		return "side by side needs more room: read the diff alone (enter)"
	}
	row := v.rowAt(v.cur)
	if v.split = always; v.beside {
		v.split = never
	}
	v.beside = v.sides(v.area.Dx())
	v.to(v.lineOf(row))
	return ""
}

// set takes a diff, and begins at its top unless it is of the same file.
func (v *view) set(w Want, d *Diff, problem string) {
	if v.of.Key != w.Key || v.of.Scope.Action != w.Scope.Action || v.of.Scope.Since != w.Scope.Since {
		v.start()
	}
	v.diff, v.of, v.problem, v.note = d, w, problem, ""
	v.scroll(0)
}

// drop forgets the diff: another file's, or none, is shown.
func (v *view) drop() {
	v.diff, v.problem, v.note, v.of = nil, "", "", Want{}
	v.start()
}

// start puts the cursor on the first hunk.
func (v *view) start() { v.cur, v.top, v.slide = 0, 0, 0 }

// lines is how many lines the diff has as it is shown.
func (v *view) lines() int {
	switch {
	case v.diff == nil:
		return 0
	case v.beside:
		return len(v.diff.Pairs)
	}
	return len(v.diff.Rows)
}

// rowAt is the row of the diff that a line shows, and lineOf the other way.
func (v *view) rowAt(line int) int {
	if v.diff == nil || !v.beside || line >= len(v.diff.Pairs) {
		return line
	}
	p := v.diff.Pairs[line]
	return int(max(p[0], p[1]))
}

func (v *view) lineOf(row int) int {
	if v.diff == nil || !v.beside {
		return row
	}
	for i, p := range v.diff.Pairs {
		if int(max(p[0], p[1])) >= row {
			return i
		}
	}
	return 0
}

// hunk is the index of the hunk at the cursor, or -1.
func (p *Pane) hunk() int {
	v := &p.view
	if row := v.rowAt(v.cur); v.diff != nil && row < len(v.diff.Rows) {
		return v.diff.Rows[row].Hunk
	}
	return -1
}

// Where is the path, or the group, that the cursor is on, "" for none; and which of the hunks of its diff, when that
// is read: 0 of 0 when it isn't, or has none.
func (p *Pane) Where() (path string, hunk, of int) {
	n, ok := p.at()
	if !ok {
		return "", 0, 0
	}
	if d := p.view.diff; p.Reading && d != nil && p.hunk() >= 0 {
		hunk, of = p.hunk()+1, d.Hunks
	}
	if n.head() {
		return n.name, 0, 0
	}
	return n.path, hunk, of
}

// walk goes to the start of another hunk.
func (v *view) walk(by int) {
	for i := v.cur + by; i >= 0 && i < v.lines(); i += by {
		if v.diff.Rows[v.rowAt(i)].Op == '@' {
			v.cur = i
			v.top = max(0, min(i, v.lines()-v.height))
			return
		}
	}
}

// handle carries out an intent that moves in the diff.
func (v *view) handle(i intent.Intent) {
	switch i := i.(type) {
	case intent.Move:
		v.to(v.cur + i.By)
	case intent.Page:
		v.scroll(i.By * max(v.height-1, 1))
		v.to(v.cur + i.By*max(v.height-1, 1))
	case intent.Top:
		v.to(0)
	case intent.Bottom:
		v.to(v.lines() - 1)
	case intent.Slide:
		v.slide = max(0, min(v.slide+i.By, maxLine))
	}
}

// to puts the cursor on a line and takes the view along.
func (v *view) to(line int) {
	v.cur = max(0, min(line, v.lines()-1))
	if v.height > 0 {
		v.top = max(min(v.top, v.cur), v.cur-v.height+1, 0)
	}
}

// page scrolls by pages, scroll by lines; the cursor stays in view.
func (v *view) page(by int) { v.scroll(by * max(v.height-1, 1)) }

func (v *view) scroll(by int) {
	v.top = max(0, min(v.top+by, v.lines()-v.height))
	v.cur = max(0, min(max(v.cur, v.top), v.top+v.height-1, v.lines()-1))
}
