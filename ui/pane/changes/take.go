package changes

import (
	"slices"
	"strings"

	"stepbox/session/api"
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
