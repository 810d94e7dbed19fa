// Package dialog holds what lies over the workbench while it asks or tells
// something: opened questions, confirmations, details, help and the palette.
//
// A dialog handles intents and returns what follows from them; it changes
// nothing but itself. What decides something (intent.Decide, DoRollback, DoKill)
// names what was on the screen, and the workbench checks it again.
package dialog

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
	"stepbox/ui/selection"
	"stepbox/ui/state"
)

// Dialog asks or tells something over the workbench, and has the keys until it is
// closed. What the workbench has to know of one stands here: it never asks which
// kind it is.
type Dialog interface {
	// Scope is where its keys are bound.
	Scope() keys.Scope
	// Sync tells it, before each frame, what became of what it shows.
	Sync(n News)
	// Target is what its keys would decide, as it is shown; the zero Target is nothing.
	Target() state.Target
	// Care is how long its target must have been in view before an intent counts.
	Care(i intent.Intent) state.Care
	// Why says why an intent does nothing here now, or "".
	Why(i intent.Intent) string
	// Says is what its last line says of a key, or "".
	Says(key string) string
	// Handle takes an intent and returns what follows from it: nil for nothing,
	// intent.Back to close.
	Handle(i intent.Intent) intent.Intent
	// Fail says in it why what followed from it could not be done.
	Fail(words string)
	// Leave says what esc does, or nothing where its key's own word does.
	Leave() string
	// Wheel scrolls by rows.
	Wheel(by int)
	// Text is where its text was drawn last.
	Text() selection.Region
	// Dock is how many rows it would like to have in the dock, the place beside what it
	// is about, where that is as wide; 0: it lies over the screen.
	Dock(dst uv.Screen, cols int) int
	// Draw draws it in the middle of an area, or all over it where that is the dock. With
	// the focus it has the keys, and what it shows is in view.
	Draw(area uv.Rectangle, f paint.Frame) *tea.Cursor
}

// News is what the workbench knows now.
type News struct {
	State   *state.State
	Pending func(question int64) bool   // its answer is on its way
	Closed  func(question int64) string // why it is no longer held
	Off     string                      // why nothing can be answered from here now, or ""
}

// Writer is a dialog that takes text.
type Writer interface {
	Dialog
	Type(k tea.KeyPressMsg)
	Paste(text string)
}

// Foot are the keys of a place that its last line names, in the order of the table.
// off has those that do nothing now.
func Foot(place keys.Scope, off func(intent.Intent) bool) (out []paint.Hint) {
	for _, b := range keys.In(place) {
		if b.Short != "" {
			out = append(out, paint.Hint{Key: b.First(), Words: b.Short, Off: off != nil && off(b.Intent)})
		}
	}
	return out
}

// text is a run in a dialog's row.
type text struct {
	s string
	k themes.Token
}

// row is one row of a dialog's body.
type row struct {
	spans  []text
	inset  bool   // it lies deeper, as what is quoted does
	on     bool   // it goes on the row before: one line, wrapped, and
	joint  string // this is between them
	indent int
}

func muted(s string) row { return row{spans: []text{{s, themes.SurfaceMuted}}} }

// sheet is the frame that dialogs share: a title, rows that scroll, and hints. It
// is also a dialog's answers for as long as it tells something and decides nothing.
type sheet struct {
	top    int // first row in view
	height int // rows in view
	total  int
	width  int  // columns for rows
	low    bool // it lies at the bottom, so that what is above can be read
	dock   int  // rows that it would like to have in the dock; 0: it lies over the screen
	body   uv.Rectangle
	rows   []row // that were drawn last
	hints  []paint.Hint
}

// scroll handles the intents that move the view.
func (s *sheet) scroll(i intent.Intent) {
	switch i := i.(type) {
	case intent.Move:
		s.top += i.By
	case intent.Page:
		s.top += i.By * max(s.height-1, 1)
	case intent.Top:
		s.top = 0
	case intent.Bottom:
		s.top = s.total
	}
	s.clamp()
}

// Handle scrolls and closes, and passes on that something is to be copied.
func (s *sheet) Handle(i intent.Intent) intent.Intent {
	switch i.(type) {
	case intent.Back, intent.TakeOut:
		return i
	}
	s.scroll(i)
	return nil
}

func (s *sheet) Scope() keys.Scope             { return keys.Reading }
func (s *sheet) Sync(News)                     {}
func (s *sheet) Target() state.Target          { return state.Target{} }
func (s *sheet) Care(intent.Intent) state.Care { return state.AtOnce }
func (s *sheet) Why(intent.Intent) string      { return "" }
func (s *sheet) Fail(string)                   {}

func (s *sheet) Says(key string) string {
	if at := slices.IndexFunc(s.hints, func(h paint.Hint) bool { return h.Key == key }); at >= 0 {
		return s.hints[at].Words
	}
	return ""
}

func (s *sheet) Leave() string           { return "" }
func (s *sheet) Dock(uv.Screen, int) int { return s.dock }

// dockRows is what most questions need, so that one after the other is in the same place.
const dockRows = 13

// onlySeen keeps a key that scrolls down from going past rows that weren't drawn yet, as keys
// may come faster than frames.
func (s *sheet) onlySeen(i intent.Intent, was, seen int) {
	switch i.(type) {
	case intent.Page, intent.Move:
		if was <= seen {
			s.top = min(s.top, seen)
		}
	}
}

// unread says why what isn't read yet can't be answered.
func (s *sheet) unread(seen int) string {
	if s.top > seen {
		return "scroll through all of it first (pgup: some wasn't in view)"
	}
	return "scroll through all of it first (pgdn)"
}

// leastRows are in view before more than one line of keys is.
const leastRows = 3

// lines is how many of the lines of keys there is room for; ? has all of them.
func (s *sheet) lines(area uv.Rectangle, all int, note bool, rows int) int {
	return min(all, max(1, area.Dy()-s.chrome(1, note)+1-min(rows, leastRows)))
}

func (s *sheet) Wheel(by int) {
	s.top += by
	s.clamp()
}

// Text is where the rows are.
func (s *sheet) Text() selection.Region {
	return selection.Region{Area: s.body, Top: s.top, On: func(n int) (bool, string) {
		if n < 0 || n >= len(s.rows) {
			return false, ""
		}
		return s.rows[n].on, s.rows[n].joint
	}}
}

// onward says that rows are one line, but after a line break of a command.
func onward(rows []row) []row {
	for i := 1; i < len(rows); i++ {
		last := rows[i-1].spans[len(rows[i-1].spans)-1].s
		if rows[i].on = !strings.HasSuffix(last, api.Break); strings.HasSuffix(last, " ") {
			rows[i].joint = " "
		}
	}
	return rows
}

func (s *sheet) clamp() { s.top = max(0, min(s.top, s.total-s.height)) }

// margin is what the frame takes of an area's columns.
const margin = 6

// begin is empty paper, as wide as there is room in an area, but of at most so many
// columns outside of the dock.
func (s *sheet) begin(f paint.Frame, area uv.Rectangle, most int) *paper {
	s.width = max(10, min(area.Dx()-2, most)-margin)
	if s.dock > 0 {
		s.width = max(10, area.Dx()-margin)
	}
	return &paper{dst: f.Screen, width: s.width}
}

// chrome is how many rows the frame takes, with so many lines of keys: its borders, a rule
// above the keys, and what stands above them, which in the dock is in the rule.
func (s *sheet) chrome(foot int, note bool) int {
	rows := 2 + foot
	if foot > 0 || note {
		rows++
	}
	if note && s.dock == 0 {
		rows++
	}
	return rows
}

// titled is a title of one look.
func titled(words string) []text { return []text{{words, themes.Strong}} }

// hint is what a key does here.
func hint(i intent.Intent, place keys.Scope, words string, off bool) paint.Hint {
	return paint.Hint{Key: keys.First(i, place), Words: words, Off: off}
}

// leave is the hint of what leaves a dialog.
func leave(words string) paint.Hint { return paint.Hint{Key: "esc", Words: words} }

// draw draws the frame, the rows in view and the foot. It returns the area of
// the rows.
func (s *sheet) draw(b *paper, area uv.Rectangle, f paint.Frame, title []text, hints []paint.Hint, note text) uv.Rectangle {
	p, dst, rows := f.P, b.dst, b.rows
	foot := paint.WrapHints(dst, hints, s.width)
	foot = foot[:s.lines(area, len(foot), note.s != "", len(rows))]
	if f.Spin != "" {
		note.s = strings.Replace(note.s, "⋯", f.Spin, 1)
	}
	if s.dock > 0 && len(rows) > 0 && len(rows[0].spans) == 0 {
		rows = rows[1:]
	}
	chrome := s.chrome(len(foot), note.s != "")
	s.total = len(rows)
	s.height = max(0, min(len(rows), area.Dy()-chrome))
	s.clamp()
	w, h := s.width+margin, s.height+chrome
	frame := uv.Rect(area.Min.X+max(0, (area.Dx()-w)/2), area.Min.Y+max(0, (area.Dy()-h)/2), min(w, area.Dx()), min(h, area.Dy()))
	if s.low {
		frame = frame.Add(uv.Pos(0, max(area.Min.Y, area.Max.Y-frame.Dy())-frame.Min.Y))
	}
	if s.dock > 0 {
		frame = area
	}
	paint.Fill(dst, frame, p.S(themes.Surface))
	border := p.S(themes.SurfaceBorder)
	if s.dock > 0 && !f.Focused {
		paint.Thin(dst, frame, border)
	} else {
		paint.Heavy(dst, frame, border)
	}
	x, y, end := frame.Min.X, frame.Min.Y, frame.Max.X-2
	paint.Point(dst, uv.Pos(x+3, y))
	n := paint.Text(dst, x+2, y, end, " ", border)
	for _, sp := range title {
		st := p.S(sp.k)
		st.Bg = p.S(themes.Surface).Bg
		n = paint.Clip(dst, n, y, end, sp.s, st)
	}
	paint.Text(dst, n, y, end, " ", border)

	in := uv.Rect(x+3, y+1, min(s.width, frame.Dx()-margin), s.height)
	s.body, s.rows, s.hints = in, rows, hints
	for i, r := range rows[s.top:min(s.top+s.height, len(rows))] {
		drawRow(f, in.Min.X, in.Min.Y+i, in.Max.X, r)
	}
	paint.Scrollbar(dst, frame.Max.X-1, in, s.top, len(rows), border)
	if len(foot) > 0 || note.s != "" {
		s.drawFoot(uv.Rect(x, frame.Max.Y-chrome+1, frame.Dx(), chrome-1), f, foot, note)
	}
	return in
}

// drawFoot draws the rule, what stands above the keys, and these.
func (s *sheet) drawFoot(r uv.Rectangle, f paint.Frame, foot [][]paint.Hint, note text) {
	x, at, end := r.Min.X+3, r.Min.Y, r.Max.X-3
	f.Rule(r.Min.X+1, at, r.Max.X-1, themes.SurfaceMuted)
	if s.total > s.height && (s.dock == 0 || f.Width(note.s)+24 < end-x) {
		words := "more below (pgdn)"
		switch {
		case s.top+s.height >= s.total:
			words = "end"
		case s.top > 0:
			words = "more above and below"
		}
		f.Right(x, at, end, paint.Line{f.Span(" "+words+" ", themes.SurfaceMuted)})
		end -= f.Width(words) + 3
	}
	switch {
	case note.s == "":
		at++
	case s.dock > 0:
		f.ClipOn(x-1, at, end, " "+note.s+" ", note.k, themes.Surface)
		at++
	default:
		f.ClipOn(x, at+1, r.Max.X-3, note.s, note.k, themes.Surface)
		at += 2
	}
	for _, line := range foot {
		if at >= r.Max.Y-1 {
			break
		}
		f.Hints(x, at, r.Max.X-3, themes.Surface, line)
		at++
	}
}

func drawRow(f paint.Frame, x, y, end int, r row) {
	ground := themes.Surface
	if r.inset {
		ground = themes.Inset
		f.Fill(uv.Rect(x, y, end-x, 1), ground)
	}
	x += r.indent
	for _, sp := range r.spans {
		if sp.k == themes.Surface || sp.k == themes.Inset {
			x = f.Clip(x, y, end, sp.s, ground)
		} else {
			x = f.ClipOn(x, y, end, sp.s, sp.k, ground)
		}
	}
}

// warning is a note of what is in the way.
func warning(why string) text { return text{"! " + why, themes.Warn} }

// waiting says that keys don't answer yet, or nothing.
func waiting(f paint.Frame) text {
	if f.Wait > 0 {
		return text{"⋯ keys answer in a moment", themes.SurfaceMuted}
	}
	return text{}
}
