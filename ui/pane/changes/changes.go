// Package changes is the pane that lists changed files and shows one's diff.
// What it shows is fetched by others; it says what it wants.
package changes

import (
	"fmt"
	"slices"
	"strconv"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/paint"
	"stepbox/ui/pane/rows"
)

// Want names a diff: a file of a scope at a version.
type Want struct {
	Key     string
	Action  int
	Version int64
}

// Pane shows the changes of one scope.
type Pane struct {
	Action  int  // the scope: an action, or 0 for the whole session
	Loading bool // the first answer is still under way
	Problem string

	Reading bool // the diff alone, without the list of files

	changes  api.Changes
	end      bool // the person wants the last file, once it is there
	list     rows.List
	touched  bool // the person chose a file
	selected string
	diff     *Diff
	diffOf   Want
	diffErr  string
	top      int // first row of the diff in view
	slide    int // columns scrolled to the right
	diffRows int // rows in view
	files    uv.Rectangle
	body     uv.Rectangle
}

// Lack is what a pane lacks of the changes that it shows.
type Lack int

const (
	Nothing Lack = iota
	News         // there is a newer version
	Files        // nothing has come yet, or the person has moved beyond what has
)

// pageRows is how many files are asked for at a time.
const pageRows = 500

// Lacks says whether what is shown is outdated: newest is the newest version
// that was told of, over says that the session has ended.
func (p *Pane) Lacks(newest int64, over bool) Lack {
	switch {
	case p.Loading || p.Problem != "" || p.changes.Next != "" && p.Rows() > len(p.changes.Files):
		return Files
	case !p.changes.Final && (over || p.changes.Version < newest):
		return News
	}
	return Nothing
}

// Rows is how many files should be listed: those up to the view, and more.
func (p *Pane) Rows() int {
	if p.end {
		return max(p.changes.Total, pageRows)
	}
	return (max(p.list.At(), p.list.Top()+p.files.Dy())/pageRows + 2) * pageRows
}

// SetChanges takes what differs in a scope. An answer for a scope that is no
// longer shown is ignored, and so is one that is older than what is shown.
func (p *Pane) SetChanges(action int, c api.Changes) {
	if action != p.Action || !p.Loading && !c.Final && (p.changes.Final || c.Version < p.changes.Version) {
		return
	}
	p.changes, p.Loading, p.Problem = c, false, ""
	if p.end && c.Next == "" {
		p.end = false
		p.choose(len(c.Files) - 1)
	}
	at := slices.IndexFunc(c.Files, func(f api.Change) bool { return f.Key == p.selected })
	switch {
	case len(c.Files) == 0:
		p.selected, p.diff, p.diffErr = "", nil, ""
	case !p.touched:
		p.choose(0)
	case at < 0:
		p.choose(max(0, min(p.list.At(), len(c.Files)-1)))
	default:
		p.list.Select(at)
	}
}

// SetScope shows an action's changes, or with 0 the whole session's.
func (p *Pane) SetScope(action int) {
	if action == p.Action {
		return
	}
	*p = Pane{Action: action, Loading: true, Reading: p.Reading, diffRows: p.diffRows}
}

// SetDiff takes a prepared diff, or the words for why there is none.
func (p *Pane) SetDiff(w Want, d *Diff, problem string) {
	if w.Key != p.selected || w.Action != p.Action {
		return
	}
	if p.diffOf.Key != w.Key || p.diffOf.Action != w.Action {
		p.top, p.slide = 0, 0
	}
	p.diff, p.diffOf, p.diffErr = d, w, problem
	p.scroll(0)
}

// Wanted is the diff that should be shown and isn't yet.
func (p *Pane) Wanted() (Want, bool) {
	w := Want{Key: p.selected, Action: p.Action, Version: p.changes.Version}
	return w, w.Key != "" && w != p.diffOf
}

// Version is the version of the changes that are shown.
func (p *Pane) Version() int64 { return p.changes.Version }

// Count is how many files are listed.
func (p *Pane) Count() int { return len(p.changes.Files) }

func (p *Pane) choose(i int) {
	p.list.Select(i)
	if i < 0 || i >= len(p.changes.Files) {
		return
	}
	if key := p.changes.Files[i].Key; key != p.selected {
		p.selected, p.top, p.slide = key, 0, 0
		p.diff, p.diffErr, p.diffOf = nil, "", Want{}
	}
}

// Move selects another file.
func (p *Pane) Move(by int) {
	if n := len(p.changes.Files); n > 0 {
		p.touched, p.end = true, false
		p.choose(max(0, min(p.list.At()+by, n-1)))
	}
}

// End selects the last file, as soon as it is there.
func (p *Pane) End() {
	p.Move(len(p.changes.Files))
	p.end = p.changes.Next != ""
}

// Page scrolls the diff by pages, Slide by columns.
func (p *Pane) Page(by int)  { p.scroll(by * max(p.diffRows-1, 1)) }
func (p *Pane) Slide(by int) { p.slide = max(0, min(p.slide+by, maxLine)) }

// Wheel scrolls what is under a point.
func (p *Pane) Wheel(x, y, by int) {
	if uv.Pos(x, y).In(p.files) {
		p.list.Scroll(by, len(p.changes.Files))
		return
	}
	p.scroll(by)
}

func (p *Pane) scroll(by int) {
	n := 0
	if p.diff != nil {
		n = len(p.diff.Rows)
	}
	p.top = max(0, min(p.top+by, n-p.diffRows))
}

// Draw draws the pane.
func (p *Pane) Draw(dst uv.Screen, area uv.Rectangle, f paint.Frame) *tea.Cursor {
	box := paint.Box{Number: f.Number, Title: "Changes", Focused: f.Focused, Facts: p.facts(f)}
	if p.Action != 0 {
		box.Right = paint.Line{{Text: "action " + strconv.Itoa(p.Action), Style: f.P.S(themes.Info)}}
	}
	if p.Reading && p.list.At() < len(p.changes.Files) {
		words := fmt.Sprintf("  %d/%d", p.list.At()+1, len(p.changes.Files))
		name := paint.ShortenLeft(dst, p.changes.Files[p.list.At()].Path, max(8, area.Dx()-50))
		box.Right = append(box.Right, paint.Span{Text: "  " + name, Style: f.P.S(themes.Strong)}, paint.Span{Text: words, Style: f.P.S(themes.Muted)})
	}
	inner := box.Draw(dst, area, f.P)
	p.files, p.body = uv.Rectangle{}, uv.Rectangle{}
	if inner.Empty() {
		return nil
	}
	files := p.changes.Files
	if len(files) == 0 {
		p.empty(dst, inner, f)
		return nil
	}
	body := inner
	if !p.Reading {
		extra := 0
		if p.changes.More > 0 {
			extra++
		}
		if len(p.changes.Apart) > 0 {
			extra++
		}
		h := min(len(files)+extra, max(2, inner.Dy()*2/5))
		if inner.Dy() < 6 {
			h = inner.Dy()
		}
		p.files = uv.Rect(inner.Min.X, inner.Min.Y, inner.Dx(), h)
		p.list.Draw(dst, area, p.files, len(files)+extra, f, true, func(r uv.Rectangle, n int) { p.row(dst, r, f, n) })
		if inner.Dy()-h < 3 {
			return nil
		}
		y := inner.Min.Y + h
		paint.Rule(dst, inner.Min.X, y, inner.Max.X, f.P.S(themes.Border))
		body = uv.Rect(inner.Min.X, y+1, inner.Dx(), inner.Max.Y-y-1)
	}
	p.body = body
	p.drawDiff(dst, body, f)
	if p.diff != nil {
		bar := f.P.S(themes.Border)
		if f.Focused {
			bar = f.P.S(themes.BorderFocus)
		}
		paint.Scrollbar(dst, area.Max.X-1, body, p.top, len(p.diff.Rows), bar)
	}
	return nil
}

func (p *Pane) facts(f paint.Frame) paint.Line {
	n := len(p.changes.Files) + p.changes.More
	if n == 0 {
		return nil
	}
	return paint.Line{
		{Text: paint.Count(n, "file", "files"), Style: f.P.S(themes.Muted)},
		{Text: "  +" + strconv.Itoa(p.changes.Added), Style: f.P.S(themes.AddedWord)},
		{Text: " −" + strconv.Itoa(p.changes.Removed), Style: f.P.S(themes.RemovedWord)},
	}
}
