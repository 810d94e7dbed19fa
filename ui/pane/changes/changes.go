// Package changes is the pane that lists changed files as a tree and shows one's
// diff, in which files and hunks are selected. What it shows is fetched by
// others; it says what it wants.
package changes

import (
	"cmp"
	"fmt"
	"strconv"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/find"
	"stepbox/ui/paint"
	"stepbox/ui/pane/rows"
)

// Want names a diff: a file of a scope at a version.
type Want struct {
	Key     string
	Scope   api.Scope
	Version int64
}

// Pane shows the changes of one scope: an action's, those since the person
// looked last, or with neither the whole session's.
type Pane struct {
	Action  int        // the action in scope, or 0
	Since   int64      // the checkpoint since which changes are in scope, or 0
	To      api.Moment // the session's are those up to then; "": up to now
	Loading bool       // the first answer is still under way
	Problem string

	Reading bool // the diff alone, without the list of files
	Flat    bool // files with their whole paths, without folders; changed by SetFlat

	tree     *Tree
	then     api.Moment     // that the tree is of
	rows     []int32        // of the tree's nodes, those that aren't folded away
	turned   map[place]bool // folders that are folded, and groups that aren't
	end      bool           // the person wants the last file, once it is there
	later    func()         // what the person wants done once all files are there
	list     rows.List
	touched  bool   // the person chose a row
	selected string // the key of the file at the cursor, "" for none
	folder   place  // the folder at the cursor, when there is no file
	files    uv.Rectangle

	all   bool            // all files are selected, also those that haven't come
	picks map[string]pick // what of each file is selected, by key
	some  []int32         // how many of the files before each are selected, also in part
	whole []int32         // and how many as a whole

	filter find.Filter
	found  []int32 // how many of the files before each the filter has; nil: all

	view view
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
	t := p.shown()
	switch {
	case p.Loading || p.Problem != "" || p.then != p.Scope().To || t.Next != "" && p.needs() > len(t.Files):
		return Files
	case p.then != "" && !t.Counting:
	case t.Counting || !t.Final && (over || t.Version < newest):
		return News
	}
	return Nothing
}

var nothing Tree

// shown is what is shown, or an empty tree.
func (p *Pane) shown() *Tree { return cmp.Or(p.tree, &nothing) }

// needs is how many files must be there for what is in view, and some beyond.
func (p *Pane) needs() int {
	t := p.shown()
	if p.end || p.later != nil || p.filter.Narrows() {
		return max(t.Total, pageRows)
	}
	i := min(max(p.list.Top()+p.files.Dy(), p.list.At()+1), len(p.rows)) - 1
	for i >= 0 && t.nodes[p.rows[i]].head() && p.folded(&t.nodes[p.rows[i]]) {
		i--
	}
	if i < 0 {
		return pageRows
	}
	n := &t.nodes[p.rows[i]]
	if n.file < 0 && !p.folded(n) {
		return int(n.from) + pageRows
	}
	return int(n.to) + pageRows
}

// Rows is how many files should be fetched. It doubles, so that all that is
// fetched while a person moves down a list is in proportion to its length.
func (p *Pane) Rows() int {
	size := 2 * pageRows
	if len(p.picks) > 0 {
		size = max(size, len(p.shown().Files))
	}
	for size < p.needs() {
		size *= 2
	}
	return size
}

// Scope is what is compared.
func (p *Pane) Scope() api.Scope {
	if p.Action != 0 || p.Since != 0 {
		return api.Scope{Action: p.Action, Since: p.Since}
	}
	return api.Scope{To: p.To}
}

// shows says whether an answer for a scope can be shown: it is of that scope, or of
// another moment of the past on the way to it.
func (p *Pane) shows(of api.Scope) bool {
	now := p.Scope()
	if now.To != "" && of.To != "" {
		of.To = now.To
	}
	return of == now
}

// SetChanges takes what differs in a scope. An answer for a scope that is no longer
// shown is ignored, and so is one that is older than what is shown.
func (p *Pane) SetChanges(of api.Scope, t *Tree) {
	old := p.shown()
	if !p.shows(of) || !p.Loading && of.To == p.then && !t.Final && (old.Final || t.Version < old.Version) {
		return
	}
	p.tree, p.then, p.Loading, p.Problem = t, of.To, false, ""
	p.arrange()
	p.tally()
	if t.Next == "" {
		if p.later != nil {
			p.later()
		}
		if p.end {
			p.choose(len(p.rows) - 1)
		}
		p.end, p.later = false, nil
	}
}

// arrange lists the rows anew and keeps the cursor on what it was on.
func (p *Pane) arrange() {
	t := p.shown()
	p.sift()
	p.rows = t.rows(p.Flat, p.folded, p.without)
	at := -1
	switch {
	case len(p.rows) == 0:
		p.selected, p.folder = "", place{}
		p.view.drop()
		return
	case !p.touched:
		at = p.first()
	case p.selected != "":
		if at = t.find(p.selected); at >= 0 && p.without(&t.nodes[at]) {
			at = p.near(at)
		}
	default:
		at = t.folderAt(p.folder)
		for p.Flat && at >= 0 && t.nodes[at].file < 0 && !t.nodes[at].head() {
			at++ // what is in it comes next
		}
	}
	if at < 0 { // it is gone
		p.choose(max(0, min(p.list.At(), len(p.rows)-1)))
		return
	}
	p.choose(p.rowOf(at))
}

// SetFlat lists the files without their folders, or with them.
func (p *Pane) SetFlat(flat bool) {
	if flat != p.Flat {
		p.Flat = flat
		p.arrange()
	}
}

// first is the node of the first file that is shown, or else of the first row.
func (p *Pane) first() int {
	for _, i := range p.rows {
		if p.tree.nodes[i].file >= 0 {
			return int(i)
		}
	}
	return int(p.rows[0])
}

// SetScope shows an action's changes, those since a checkpoint, or with neither
// the whole session's.
func (p *Pane) SetScope(s api.Scope) {
	if s.Action == p.Action && s.Since == p.Since {
		return
	}
	*p = Pane{Action: s.Action, Since: s.Since, To: p.To, Loading: true, Reading: p.Reading, Flat: p.Flat, turned: p.turned, filter: p.filter, view: view{split: p.view.split, height: p.view.height}}
}

// SetDiff takes a prepared diff, or the words for why there is none.
func (p *Pane) SetDiff(w Want, d *Diff, problem string) {
	if w.Key != p.selected || !p.shows(w.Scope) {
		return
	}
	p.view.set(w, d, problem)
	if k, ok := p.picks[w.Key]; ok && d != nil && len(k.hunks) > 0 && k.of != d.Hash {
		delete(p.picks, w.Key)
		p.tally()
		p.view.note = "it has changed since: select its hunks again"
	}
}

// Wanted is the diff that should be shown and isn't yet.
func (p *Pane) Wanted() (Want, bool) {
	w := Want{Key: p.selected, Scope: p.Scope(), Version: p.shown().Version}
	return w, w.Key != "" && w != p.view.of
}

// File is the key of the file that the cursor is on, or "".
func (p *Pane) File() string { return p.selected }

// Looked is the checkpoint up to which all changes are in what is shown, so that
// a person who has looked at it has seen them; 0 when that can't be said.
func (p *Pane) Looked() int64 {
	if p.Action != 0 || p.Loading {
		return 0
	}
	return p.shown().Checkpoint
}

func (p *Pane) Draw(area uv.Rectangle, f paint.Frame) *tea.Cursor {
	box := paint.Box{Title: rows.Title("Changes", p.filter, p.has(0, len(p.shown().Files)), max(p.shown().Total, len(p.shown().Files)))}
	switch {
	case p.Action != 0:
		box.Right = paint.Line{f.Span("of #"+strconv.Itoa(p.Action), themes.Info)}
	case p.Since != 0:
		box.Right = paint.Line{f.Span("since you looked", themes.Info)}
	case p.To != "":
		box.Right = paint.Line{f.Span("as it was", themes.Info)}
	default:
		box.Right = paint.Line{f.Span("session", themes.Muted)}
	}
	if n, ok := p.at(); ok && n.file >= 0 && area.Dx() >= 44 {
		of := p.shown().Total
		if apart, _, _ := p.shown().apart(); int(n.file) < of-apart {
			of -= apart // as the title counts
		}
		box.Right = append(box.Right, f.Span(fmt.Sprintf("  %d/%d", n.file+1, of), themes.Muted))
	}
	if (p.filter.Narrows() || p.chosen() != "" && p.Since == 0) && p.Action == 0 && area.Dx() < 48 {
		box.Right = nil // how many are found, or selected, is said first
	}
	box.Facts = p.facts(f)
	inner := box.Draw(area, f)
	p.files, p.view.area = uv.Rectangle{}, uv.Rectangle{}
	if inner.Empty() {
		return nil
	}
	t := p.shown()
	if len(p.rows) == 0 {
		p.empty(inner, f)
		return nil
	}
	body := inner
	if !p.Reading {
		extra := 0
		if t.Next != "" || t.More > 0 {
			extra++
		}
		extra += len(t.below())
		h := min(len(p.rows)+extra, max(2, inner.Dy()*2/5))
		if inner.Dy() < 6 {
			h = inner.Dy()
		}
		p.files = uv.Rect(inner.Min.X, inner.Min.Y, inner.Dx(), h)
		p.list.Draw(area, p.files, len(p.rows)+extra, f, true, "", func(r uv.Rectangle, n int) { p.row(r, f, n) })
		if inner.Dy()-h < 3 {
			return nil
		}
		y := inner.Min.Y + h
		f.Rule(inner.Min.X, y, inner.Max.X, themes.Border)
		body = uv.Rect(inner.Min.X, y+1, inner.Dx(), inner.Max.Y-y-1)
	}
	p.drawDiff(area, body, f)
	return nil
}

// apart is what is in groups: not what one came for, and folded away.
func (t *Tree) apart() (files, added, removed int) {
	for i := range t.nodes {
		if g := &t.nodes[i]; g.head() {
			files, added, removed = files+int(g.files), added+g.added, removed+g.removed
		}
	}
	return files, added, removed
}

// facts count what changed: the files of the tree, and apart from them those that
// are folded away by their groups.
func (p *Pane) facts(f paint.Frame) paint.Line {
	t := p.shown()
	n := max(t.Total, len(t.Files)+t.More)
	if n == 0 {
		return nil
	}
	if p.filter.Narrows() {
		var out paint.Line
		if chosen := p.chosen(); chosen != "" {
			out = paint.Line{f.Span(chosen, themes.Info)}
		}
		return out
	}
	apart, added, removed := t.apart()
	added, removed = t.Added-added, t.Removed-removed
	var out paint.Line
	if chosen := p.chosen(); chosen != "" { // it is said above all
		out = append(out, f.Span(chosen, themes.Info), f.Span(paint.Between, themes.Faint))
	}
	lines := paint.Line{
		{Text: paint.Files(n - apart), Style: f.P.S(themes.Muted)},
		{Text: "  +" + strconv.Itoa(added), Style: f.P.S(themes.AddedWord)},
		{Text: " −" + strconv.Itoa(removed), Style: f.P.S(themes.RemovedWord)},
	}
	if out = append(out, lines[0]); t.Counting {
		out = append(out, f.Span(" counting…", themes.Muted))
	}
	if added+removed > 0 {
		out = append(out, lines[1:]...)
	}
	if apart > 0 {
		out = append(out, f.Span("  and "+strconv.Itoa(apart)+" folded", themes.Faint))
	}
	return out
}

// chosen says how much is selected.
func (p *Pane) chosen() string {
	switch {
	case p.later != nil:
		return "selecting…"
	case p.all:
		return "all selected"
	case len(p.picks) > 0:
		return strconv.Itoa(len(p.picks)) + " selected"
	}
	return ""
}
