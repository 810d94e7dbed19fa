package changes

import (
	"slices"

	"stepbox/session/api"
)

// pick is what of a file is selected: all of it, or some of the hunks of a diff.
type pick struct {
	hunks []bool // for each hunk; nil for all of the file
	of    string // the hash of that diff
}

// Marks of what is selected: nothing, a part, all.
const (
	markNone = "○"
	markSome = "◐"
	markAll  = "●"
)

// Selected is how many files are selected, also in part.
func (p *Pane) Selected() int {
	if p.all {
		return p.shown().Total
	}
	return len(p.picks)
}

// Selection is what is selected. Without anything selected it is all that is in
// scope: see Selected. Of what changed since a checkpoint, files are selected as
// the session changed them.
func (p *Pane) Selection() api.Selection {
	s := p.inScope()
	if p.all && p.Since == 0 {
		return s
	}
	t := p.shown()
	for i := range t.Files {
		k, ok := p.picks[t.Files[i].Key]
		if ok || p.all || len(p.picks) == 0 && p.Since != 0 {
			s.Files = append(s.Files, choices(&t.Files[i], k)...)
		}
	}
	return s
}

// Under is what the cursor is on: a file, all files of a folder, or while the
// diff is read a hunk. It is false when there is nothing, or not all is known of it.
func (p *Pane) Under() (api.Selection, bool) {
	s := p.inScope()
	n, ok := p.at()
	if !ok || n.open {
		return s, false
	}
	for i := n.from; i < n.to; i++ {
		if p.has(int(i), int(i)+1) == 0 {
			continue
		}
		k := pick{}
		if h, d := p.hunk(), p.view.diff; p.Reading && h >= 0 && d.Hash != "" && p.Since == 0 {
			k = pick{of: d.Hash, hunks: make([]bool, d.Hunks)}
			k.hunks[h] = true
		}
		s.Files = append(s.Files, choices(&p.tree.Files[i], k)...)
	}
	return s, len(s.Files) > 0
}

func (p *Pane) inScope() api.Selection {
	if p.Action != 0 {
		return api.Selection{Actions: []int{p.Action}}
	}
	return api.Selection{}
}

// choices name what is selected of a file: of one that was renamed and edited,
// what went and what came.
func choices(f *api.Change, k pick) []api.Choice {
	c := api.Choice{Key: f.Key, Of: k.of}
	for i, on := range k.hunks {
		if on {
			c.Hunks = append(c.Hunks, i)
		}
	}
	if f.FromKey != "" {
		return []api.Choice{{Key: f.FromKey}, c}
	}
	return []api.Choice{c}
}

// toggle selects what is at the cursor, or no longer, and says why it doesn't.
func (p *Pane) toggle() string {
	n, ok := p.at()
	switch {
	case !ok:
		return "there is nothing to select"
	case p.Reading && p.view.diff != nil && p.view.diff.Hunks > 0:
		return p.toggleHunk()
	case n.open || p.all && p.shown().Next != "":
		at := n.place
		p.later = func() {
			if i := p.tree.folderAt(at); i >= 0 && n.file < 0 {
				p.toggleAll(&p.tree.nodes[i])
			} else if i := p.tree.find(p.selected); i >= 0 && n.file >= 0 {
				p.toggleAll(&p.tree.nodes[i])
			}
		}
		return ""
	}
	p.toggleAll(n)
	return ""
}

// toggleAll selects all files below a node that are listed, or if they are, none of them.
func (p *Pane) toggleAll(n *node) {
	p.spread()
	p.toggleListed(n.from, n.to)
}

func (p *Pane) toggleListed(from, to int32) {
	on := false
	for i := from; i < to; i++ {
		k, ok := p.picks[p.tree.Files[i].Key]
		on = on || p.has(int(i), int(i)+1) > 0 && (!ok || k.hunks != nil)
	}
	for i := from; i < to; i++ {
		if p.has(int(i), int(i)+1) == 0 {
			continue
		}
		if key := p.tree.Files[i].Key; on {
			p.picks[key] = pick{}
		} else {
			delete(p.picks, key)
		}
	}
	p.tally()
}

// spread names each selected file, so that single ones can be taken out.
func (p *Pane) spread() {
	if p.picks == nil {
		p.picks = make(map[string]pick)
	}
	if p.all {
		for i := range p.tree.Files {
			p.picks[p.tree.Files[i].Key] = pick{}
		}
		p.all = false
		p.tally()
	}
}

// toggleHunk selects the hunk at the cursor, or no longer.
func (p *Pane) toggleHunk() string {
	d, at := p.view.diff, p.hunk()
	n, _ := p.at()
	key := p.selected
	switch {
	case at < 0:
		return ""
	case p.Since != 0:
		p.view.note = "only whole files here (esc, space); hunks in the session's changes (s)"
		return p.view.note
	case d.Hash == "" || d.Cut:
		return "this file's hunks can't be selected: select it in the list (esc, space)"
	case p.all && p.shown().Next != "":
		p.later = func() { p.toggleHunk() }
		return ""
	case d.Hunks == 1 && d.whole:
		p.toggleAll(n)
		return ""
	}
	p.spread()
	k, ok := p.picks[key]
	hunks := make([]bool, d.Hunks)
	for i := range hunks {
		hunks[i] = ok && (k.hunks == nil || i < len(k.hunks) && k.hunks[i])
	}
	hunks[at] = !hunks[at]
	switch {
	case !slices.Contains(hunks, true):
		delete(p.picks, key)
	case !slices.Contains(hunks, false) && d.whole:
		p.picks[key] = pick{}
	default:
		p.picks[key] = pick{hunks: hunks, of: d.Hash}
	}
	p.tally()
	return ""
}

// selectAll selects all that is in scope, or if it is, nothing; of what a filter has,
// only that.
func (p *Pane) selectAll() {
	if p.filter.Narrows() {
		all := func() {
			p.spread()
			p.toggleListed(0, int32(len(p.shown().Files)))
		}
		if p.shown().Next != "" {
			p.later = all
			return
		}
		all()
		return
	}
	all := p.all || len(p.picks) > 0 && len(p.picks) == p.shown().Total && p.shown().Next == ""
	p.Clear()
	switch {
	case all:
	case p.Since != 0 && p.shown().Next != "": // each of them has to be named
		p.later = func() { p.all = true }
	default:
		p.all = true
	}
}

// Clear selects nothing, and says whether anything was selected.
func (p *Pane) Clear() bool {
	had := p.Selected() > 0 || p.later != nil
	p.all, p.picks, p.later = false, nil, nil
	p.tally()
	return had
}

// tally counts the selected files, so that what a folder has is known at once,
// and forgets those that don't differ any more.
func (p *Pane) tally() {
	p.some, p.whole = nil, nil
	if len(p.picks) == 0 {
		return
	}
	t := p.shown()
	p.some, p.whole = make([]int32, len(t.Files)+1), make([]int32, len(t.Files)+1)
	for i := range t.Files {
		p.some[i+1], p.whole[i+1] = p.some[i], p.whole[i]
		if k, ok := p.picks[t.Files[i].Key]; ok {
			p.some[i+1]++
			if k.hunks == nil {
				p.whole[i+1]++
			}
		}
	}
	if found := int(p.some[len(t.Files)]); found < len(p.picks) && t.Next == "" {
		kept := make(map[string]pick, found)
		for i := range t.Files {
			if k, ok := p.picks[t.Files[i].Key]; ok {
				kept[t.Files[i].Key] = k
			}
		}
		p.picks = kept
	}
}

// count is how many of the files below a node a tally has.
func (p *Pane) count(tally []int32, n *node) int32 {
	if tally == nil {
		return 0
	}
	return tally[n.to] - tally[n.from]
}

// mark says how much of a node is selected; "" while nothing is selected at all.
func (p *Pane) mark(n *node) string {
	switch {
	case p.all:
		return markAll
	case len(p.picks) == 0:
		return ""
	case !n.open && p.count(p.whole, n) == n.to-n.from:
		return markAll
	case p.count(p.some, n) > 0:
		return markSome
	}
	return markNone
}

// hunkMark says whether a hunk of the shown diff is selected; "" while nothing is.
func (p *Pane) hunkMark(hunk int) string {
	k, ok := p.picks[p.selected]
	switch {
	case p.all || ok && (k.hunks == nil || hunk < len(k.hunks) && k.hunks[hunk]):
		return markAll
	case len(p.picks) == 0:
		return ""
	}
	return markNone
}
