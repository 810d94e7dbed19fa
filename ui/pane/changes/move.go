package changes

import (
	"slices"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/ui/intent"
)

// folded says whether what is below a folder is folded away: a group is, until
// it is unfolded, and any other folder isn't. Of what a filter has nothing is.
func (p *Pane) folded(n *node) bool { return p.found == nil && n.head() != p.turned[n.place] }

// at is what the cursor is on.
func (p *Pane) at() (*node, bool) {
	if i := p.list.At(); i < len(p.rows) && !p.list.Follows() {
		return &p.tree.nodes[p.rows[i]], true
	}
	return nil, false
}

// rowOf is the row of a node, or of the folder that it is folded into.
func (p *Pane) rowOf(node int) int {
	i, found := slices.BinarySearch(p.rows, int32(node))
	if !found {
		i--
	}
	return i
}

// choose puts the cursor on a row.
func (p *Pane) choose(i int) {
	p.list.Select(i)
	n, ok := p.at()
	if !ok {
		return
	}
	if n.file < 0 {
		p.selected, p.folder = "", n.place
		p.view.drop()
		return
	}
	if key := p.tree.Files[n.file].Key; key != p.selected {
		p.selected, p.folder = key, place{}
		p.view.drop()
	}
}

// Select puts the cursor on the file of a key, once it is there.
func (p *Pane) Select(key string) {
	if key != "" && key != p.selected {
		p.selected, p.folder, p.touched = key, place{}, true
		p.view.drop()
		if p.tree != nil {
			p.arrange()
		}
	}
}

// Handle carries out an intent, and says why it does nothing.
func (p *Pane) Handle(i intent.Intent) string {
	switch i := i.(type) {
	case intent.Toggle:
		return p.toggle()
	case intent.ToggleAll:
		p.selectAll()
	case intent.Open:
		p.open()
	case intent.Sides:
		return p.view.turn()
	case intent.Hunk:
		p.view.walk(i.By)
	case intent.Beside:
		if p.Reading {
			p.moveFile(i.By)
		} else {
			p.view.page(i.By)
		}
	default:
		if p.Reading {
			p.view.handle(i)
		} else {
			p.inList(i)
		}
	}
	return ""
}

// inList carries out an intent that moves in the list of files.
func (p *Pane) inList(i intent.Intent) {
	switch i := i.(type) {
	case intent.Move:
		p.move(i.By)
	case intent.Page:
		p.view.page(i.By)
	case intent.Top:
		p.move(-len(p.rows))
	case intent.Bottom:
		p.move(len(p.rows))
		p.end = p.shown().Next != ""
	case intent.Slide:
		p.fold(i.By < 0)
	}
}

func (p *Pane) move(by int) {
	if n := len(p.rows); n > 0 {
		p.touched, p.end = true, false
		p.choose(max(0, min(p.list.At()+by, n-1)))
	}
}

// moveFile goes to another file that is shown, past folders.
func (p *Pane) moveFile(by int) {
	for i := p.list.At() + by; i >= 0 && i < len(p.rows); i += by {
		if p.tree.nodes[p.rows[i]].file >= 0 {
			p.touched = true
			p.choose(i)
			return
		}
	}
}

// open unfolds or folds a folder, and reads a file's diff alone or no longer.
func (p *Pane) open() {
	n, ok := p.at()
	switch {
	case !ok:
		p.Reading = false
	case n.file < 0:
		p.Reading = false
		p.fold(!p.folded(n))
	default:
		if p.Reading = !p.Reading; p.Reading {
			p.view.start()
		}
	}
}

// fold folds or unfolds the folder at the cursor. What is folded already, or a
// file, leads to the folder that it is in.
func (p *Pane) fold(away bool) {
	n, ok := p.at()
	if !ok {
		return
	}
	p.touched = true
	if n.file < 0 && p.folded(n) != away && p.found == nil {
		if p.turned == nil {
			p.turned = make(map[place]bool)
		}
		p.turned[n.place] = !p.turned[n.place]
		p.arrange()
		return
	}
	if !away {
		if n.file < 0 {
			p.move(1)
		}
		return
	}
	for i := p.list.At() - 1; i >= 0; i-- {
		if up := &p.tree.nodes[p.rows[i]]; up.file < 0 && up.depth < n.depth {
			p.choose(i)
			return
		}
	}
}

// Click puts the cursor where the mouse is; on the folder that it is on already,
// it folds or unfolds that.
func (p *Pane) Click(x, y int) {
	at := uv.Pos(x, y)
	switch {
	case at.In(p.files):
		i := p.list.Top() + y - p.files.Min.Y
		if i >= len(p.rows) {
			return
		}
		if n := &p.tree.nodes[p.rows[i]]; n.file < 0 && i == p.list.At() {
			p.fold(!p.folded(n))
			return
		}
		p.touched = true
		p.choose(i)
	case at.In(p.view.area) && p.Reading:
		p.view.to(p.view.top + y - p.view.area.Min.Y)
	}
}

// Wheel scrolls what is under a point.
func (p *Pane) Wheel(x, y, by int) {
	if uv.Pos(x, y).In(p.files) && len(p.rows) > 0 {
		p.touched = true
		p.list.Scroll(by, len(p.rows))
		p.choose(p.list.At())
		return
	}
	p.view.scroll(by)
}
