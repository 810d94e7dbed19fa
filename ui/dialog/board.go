package dialog

import (
	"fmt"
	"slices"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/paint"
)

// board is a sheet of two parts: a list of things, and beside it (below it where
// there is no room) what there is to see of the selected one. What stands in its
// head is always in view.
type board struct {
	sheet
	items []item
	made  [][]row         // the rows of each, as they were made last
	left  int             // at which width they were
	at    int             // the selected one
	first int             // row of the list in view first
	seen  map[string]bool // things that nobody may go past and that have been in view

	fresh     bool // another thing was selected since the last frame
	about     int  // row in view first of what is beside
	aboutRows int  // rows in view there
	aboutLast int  // the last that may be the first in view
	listRows  int  // rows of the list in view
}

// item is one thing in the list.
type item struct {
	rows  passage
	id    string // the same in another list is the same thing
	key   string // the changed file whose differences are beside it
	about passage
	tail  bool   // the end of what is beside it matters most
	must  string // names what it says, if nobody may go on before that was in view

	ways   []api.Way                   // what a conflict, or a place of one, may become
	choose func(api.Way) intent.Intent // takes one of them
	toggle func() intent.Intent        // takes the next choice; nil where there is none
	edit   intent.Intent               // what opens it; nil where nothing does
}

// wide is from how many columns on the parts lie beside each other.
const wide = 108

func (b *board) selected() item {
	if b.at < len(b.items) {
		return b.items[b.at]
	}
	return item{}
}

// Handle moves the selection and scrolls what is beside it.
func (b *board) Handle(i intent.Intent) intent.Intent {
	at := b.at
	switch i := i.(type) {
	case intent.Back:
		return i
	case intent.Move:
		b.at += i.By
	case intent.Top:
		b.at = 0
	case intent.Bottom:
		b.at = len(b.items) - 1
	case intent.Page:
		if last := b.about >= b.aboutLast; i.By > 0 && last || i.By < 0 && b.about == 0 {
			b.page(i.By) // there is no more of what is beside
		} else {
			b.about += i.By * max(b.aboutRows-1, 1)
		}
	}
	b.clampAt()
	b.fresh = b.fresh || b.at != at
	return nil
}

// page moves the selection by so many rows that none is gone past unseen.
func (b *board) page(by int) {
	from := b.at
	for room := b.listRows - 1; ; {
		next := b.at + by
		if next < 0 || next >= len(b.made) {
			return
		}
		if room -= len(b.made[next]); room < 0 && b.at != from {
			return
		}
		b.at = next
	}
}

func (b *board) Wheel(by int) { b.about += by }

func (b *board) clampAt() { b.at = max(0, min(b.at, len(b.items)-1)) }

// put takes other things into the list. The selection stays on the same thing.
func (b *board) put(items []item) {
	was := b.selected()
	defer func() {
		b.fresh = b.fresh || b.selected().id != was.id
	}()
	b.items, b.made = items, nil
	for i, it := range items {
		if it.id == was.id {
			b.at = i
		}
	}
	b.clampAt()
}

// unseen is how many of the things that nobody may go past haven't been in view.
func (b *board) unseen() int {
	n := 0
	for _, it := range b.items {
		if it.must != "" && !b.seen[it.must] {
			n++
		}
	}
	return n
}

// toSee says where the things are that nobody may go past and that haven't been in
// view, seen from the selected one: those above first.
func (b *board) toSee() string {
	for i, it := range b.items {
		if it.must != "" && !b.seen[it.must] {
			if i < b.at {
				return "above: go through them first (↑)"
			}
			break
		}
	}
	return "below: go through them first (↓)"
}

// show draws the board below the rows of its head.
func (b *board) show(in *paper, area uv.Rectangle, f paint.Frame, title []text, hints []paint.Hint, note text) {
	dst, head := in.dst, in.rows
	foot := b.chrome(b.lines(area, len(paint.WrapHints(dst, hints, b.width)), true, leastRows), true)
	room := max(1, area.Dy()-foot) // and no more: what is in view counts as read
	if b.dock > 0 && len(head) > 0 && len(head[0].spans) == 0 {
		head = head[1:]
	}
	if room < 4 {
		head = head[:min(len(head), 1, room-1)]
	} else if head = slices.Clone(head[:min(len(head), room-2)]); b.dock == 0 || len(head) > 0 {
		head = append(head, row{})
	}
	room -= len(head)

	left, right := b.width, 0
	if area.Dx() >= wide && slices.ContainsFunc(b.items, func(it item) bool { return it.about != nil }) {
		left = b.width * 11 / 20
		right = b.width - left - 3
	}
	if b.made == nil || b.left != left {
		b.made, b.left = nil, left
		for _, it := range b.items {
			b.made = append(b.made, rowsOf(dst, left-2, it.rows))
		}
	}
	var list []row
	from, to := 0, 0 // rows of the selected thing
	for i, rows := range b.made {
		if i == b.at {
			from, to = len(list), len(list)+len(rows)
		}
		list = append(list, rows...)
	}
	height, below := min(room, len(list)), 0
	var about []row
	it := b.selected()
	if right > 0 {
		if it.about != nil {
			about = rowsOf(dst, right, it.about)
		}
		height = min(room, max(len(list), min(len(about), 24), 8))
		below = height
	} else if it.about != nil && room >= 7 {
		about = rowsOf(dst, b.width, it.about)
		below = min(room-min(len(list), room/2)-1, len(about))
		height = min(len(list), room-below-1)
	}
	b.aboutRows = below
	if b.fresh {
		b.fresh, b.about = false, 0
		if b.selected().tail {
			b.about = len(about)
		}
	}
	b.aboutLast, b.listRows = max(0, len(about)-below), height
	b.about = max(0, min(b.about, b.aboutLast))
	if to > b.first+height {
		b.first = to - height
	}
	b.first = max(0, min(min(b.first, from), len(list)-height))
	b.look(height)
	in.rows = head
	for i := range height {
		r := row{}
		if n := b.first + i; n < len(list) {
			r = list[n]
		}
		if right > 0 {
			r = beside(dst, r, left)
			if n := b.about + i; n < len(about) {
				r.spans = append(r.spans, flat(about[n])...)
			}
		}
		in.add(r)
	}
	if below > 0 && right == 0 {
		in.line(text{strings.Repeat("─", b.width), themes.Border})
		in.add(about[b.about : b.about+below]...)
	}
	if n := len(b.items); n > 1 {
		what := "row"
		if !slices.ContainsFunc(b.items, func(it item) bool { return it.key == "" }) {
			what = "file"
		}
		title = append(title, text{fmt.Sprintf("  %s %d of %d", what, b.at+1, n), themes.SurfaceMuted})
	}
	b.top = 0
	at := b.draw(in, area, f, title, hints, note).Min
	if len(b.items) > 1 {
		for n := max(from, b.first); n < min(to, b.first+height); n++ {
			y := at.Y + len(head) + n - b.first
			paint.Lift(dst, uv.Rect(at.X, y, left, 1), f.P.S(themes.Surface), f.P.S(themes.Selected))
			if n == b.at {
				paint.Point(dst, uv.Pos(at.X, y))
			}
		}
	}
	paint.Scrollbar(dst, at.X+left, uv.Rect(at.X, at.Y+len(head), left, height), b.first, len(list), f.P.S(themes.SurfaceMuted))
}

// look notes what of the list is in view, in so many rows.
func (b *board) look(height int) {
	at := 0
	for i, it := range b.items {
		from := at
		at += len(b.made[i])
		if it.must != "" && at > b.first && at <= b.first+height && (from >= b.first || at-from > height) {
			if b.seen == nil {
				b.seen = map[string]bool{}
			}
			b.seen[it.must] = true
		}
	}
}

// beside makes a row as wide as the left part, with the line between the parts.
func beside(dst uv.Screen, r row, left int) row {
	used, spans := 0, []text{}
	for _, s := range flat(r) {
		s.s = paint.Shorten(dst, s.s, left-used)
		used += paint.Width(dst, s.s)
		spans = append(spans, s)
	}
	return row{spans: append(spans, text{strings.Repeat(" ", max(0, left-used)), themes.Surface}, text{" │ ", themes.Border})}
}

func flat(r row) []text {
	if r.indent == 0 {
		return r.spans
	}
	return append([]text{{strings.Repeat(" ", r.indent), themes.Surface}}, r.spans...)
}
