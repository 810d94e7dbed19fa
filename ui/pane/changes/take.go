package changes

import (
	"slices"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/ui/selection"
)

// Path is the path of the file that the cursor is on, or "".
func (p *Pane) Path() string {
	if n, ok := p.at(); ok && n.file >= 0 {
		return p.tree.Files[n.file].Path
	}
	return ""
}

// Patch asks for the diff of what is selected, else of what the cursor is on, as it is shown.
func (p *Pane) Patch() (api.PatchRequest, bool) {
	sel, ok := p.Under()
	if p.Selected() > 0 {
		sel, ok = p.Selection(), true
	}
	scope := p.Scope()
	if scope == (api.Scope{}) || slices.ContainsFunc(sel.Files, func(c api.Choice) bool { return len(c.Hunks) > 0 }) {
		return api.PatchRequest{Selection: sel}, ok
	}
	r := api.PatchRequest{Scope: scope}
	for _, c := range sel.Files {
		if i := slices.IndexFunc(p.shown().Files, func(f api.Change) bool { return f.Key == c.Key }); i >= 0 {
			r.Globs = append(r.Globs, literal.Replace(p.tree.Files[i].Path))
		}
	}
	return r, ok && len(r.Globs) == len(sel.Files)
}

// literal makes a pattern of a path that matches it alone.
var literal = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "{", `\{`)

// Text is where the text around a point was drawn last: the list, or the diff, and of that
// one side where both are shown. From the text of a line on it is that without numbers.
func (p *Pane) Text(x, y int) selection.Region {
	if uv.Pos(x, y).In(p.files) {
		return selection.Region{Area: p.files, Top: p.list.Top()}
	}
	v := &p.view
	r, s := v.area, unified
	if v.diff == nil || r.Empty() {
		return selection.Region{Area: r}
	}
	if v.beside {
		half := (r.Dx() - 1) / 2
		if s = oldText; x > r.Min.X+half {
			s = newText
			r.Min.X += half + 1
		} else {
			r.Max.X = r.Min.X + half
		}
	}
	numbers := 2
	if s != unified {
		numbers = 1
	}
	if wide := p.numberCols(r.Dx(), s); wide > 0 {
		numbers *= wide + 1
	} else {
		numbers = 0
	}
	if text := r.Min.X + numbers + 3; x >= text {
		r.Min.X = min(text, r.Max.X)
	}
	return selection.Region{Area: r, Top: v.top}
}

// Empty says whether the cursor is on nothing.
func (p *Pane) Empty() bool {
	_, ok := p.at()
	return !ok
}

// Gone says whether the file that the cursor is on was deleted.
func (p *Pane) Gone() bool {
	n, ok := p.at()
	return ok && n.file >= 0 && p.tree.Files[n.file].Status == "D"
}

// Line is the line of the new text that the cursor is at, or else the first that came or
// that follows what went; 0 where that isn't known.
func (p *Pane) Line() int {
	v := &p.view
	if v.diff == nil {
		return 0
	}
	from := v.rowAt(v.cur)
	for _, r := range v.diff.Rows[min(max(from, 0), len(v.diff.Rows)):] {
		if r.New > 0 && (p.Reading || r.Op == '+') {
			return r.New
		}
	}
	for _, r := range v.diff.Rows {
		if r.New > 0 {
			return r.New
		}
	}
	return 0
}
