package dialog

import (
	"fmt"
	"slices"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/paint"
)

// choose notes that the choices aren't those of the plan any more.
func (p *Plan) choose() intent.Intent {
	p.wanted++
	p.notice, p.failure = "", ""
	p.put(p.list())
	return intent.Replan{}
}

// way is what was chosen for a conflict, or for one of its clashes; "" is nothing yet.
func (p *Plan) way(it item) api.Way {
	if it.what == "clash" {
		c, k := it.n>>16, it.n&0xffff
		if r := p.choices[p.shown.Conflicts[c].Key]; r != nil && r.Way == api.WayMerge && k < len(r.Sides) {
			return r.Sides[k]
		}
		return ""
	}
	if r := p.choices[p.shown.Conflicts[it.n].Key]; r != nil {
		return r.Way
	}
	return ""
}

// next is the choice after the one that is made.
func (p *Plan) next(it item) api.Way {
	ways := []api.Way{api.WayMerge, api.WayWanted, api.WayThere}
	if it.what == "clash" || !p.shown.Conflicts[it.n].Clean {
		ways = ways[1:]
	}
	return ways[(slices.Index(ways, p.way(it))+1)%len(ways)]
}

// resolve takes a choice for a conflict, or for a place of it.
func (p *Plan) resolve(it item, w api.Way) intent.Intent {
	n := it.n
	if it.what == "clash" {
		n >>= 16
	}
	c := p.shown.Conflicts[n]
	r := p.choices[c.Key]
	if r == nil || it.what == "conflict" || r.Way != api.WayMerge {
		r = &api.Resolution{Key: c.Key, Way: w}
		if it.what == "clash" || w == api.WayMerge && !c.Clean {
			r.Way, r.Sides = api.WayMerge, make([]api.Way, len(c.Clashes))
		}
		p.choices[c.Key] = r
	}
	if it.what == "clash" {
		r.Sides[it.n&0xffff] = w
	}
	return p.choose()
}

// open is how many places of a merge wait for a choice.
func open(r *api.Resolution) (n int) {
	for _, s := range r.Sides {
		if s == "" {
			n++
		}
	}
	return n
}

// sides are the words for what is wanted and for what is there.
func (p *Plan) sides() (wanted, there string) {
	switch {
	case p.work.Apply != nil:
		return "the session's", "the project's"
	case p.work.Undo != 0:
		return "as before the apply", "as it is"
	case p.work.Back != nil && p.work.Back.Redo != 0:
		return "brought again", "as it is"
	}
	return "as before", "as it is"
}

// pick is a row of choices.
type pick struct{ row }

func (c *pick) add(key string, on bool, words string) {
	mark, k := "○ ", themes.SurfaceMuted
	if on {
		mark, k = "● ", themes.Strong
	}
	c.spans = append(c.spans, text{key + " ", themes.Key}, text{mark + words + "  ", k})
}

// conflict is a file in which changes meet, and each place where they clash.
func (p *Plan) conflict(n int, c api.Conflict) []item {
	it := item{what: "conflict", n: n, must: fmt.Sprint("conflict", c.Key, c.Why)}
	way, r := p.way(it), p.choices[c.Key]
	wanted, there := p.sides()
	choice := pick{row{ground: themes.Surface, indent: 2}}
	if c.Clean || len(c.Clashes) > 0 {
		words := "both"
		if r != nil && r.Way == api.WayMerge && open(r) > 0 {
			words = fmt.Sprintf("both (%d to choose)", open(r))
		}
		choice.add("m", way == api.WayMerge, words)
	}
	choice.add("w", way == api.WayWanted, wanted)
	choice.add("t", way == api.WayThere, there)
	it.rows = joined(says("≠ "+c.Path+": "+c.Why, themes.Warn), func(uv.Screen, int) []row {
		if r == nil {
			return []row{choice.row, muted("  nothing chosen: it stays as it is")}
		}
		return []row{choice.row}
	})
	switch {
	case c.Clean:
		it.about = joined(says("Both changes fit together. Beside what is there now, m changes this:", themes.SurfaceMuted),
			func(dst uv.Screen, width int) []row { return hunks(dst, c.Merged, width) })
	case len(c.Clashes) == 0:
		it.about = says("Both can't be had together, as lines of text could: it is one or the other.", themes.SurfaceMuted)
	default:
		it.about = joined(says("They meet in "+paint.Count(len(c.Clashes), "place", "places")+". All else fits together; m takes both and lets you choose for each place.", themes.SurfaceMuted),
			func(dst uv.Screen, width int) (out []row) {
				for i, x := range c.Clashes {
					out = append(out, p.clash(dst, i, x, width)...)
				}
				return out
			})
	}
	out := []item{it}
	if way != api.WayMerge || c.Clean {
		return out
	}
	for k, x := range c.Clashes {
		choice := pick{row{ground: themes.Surface, indent: 4, spans: []text{{fmt.Sprintf("%d of %d, line %d  ", k+1, len(c.Clashes), x.Line), themes.Surface}}}}
		choice.add("w", r.Sides[k] == api.WayWanted, wanted)
		choice.add("t", r.Sides[k] == api.WayThere, there)
		out = append(out, item{
			what: "clash", n: n<<16 | k, must: fmt.Sprint("clash", c.Key, x), rows: func(uv.Screen, int) []row { return []row{choice.row} },
			about: func(dst uv.Screen, width int) []row { return p.clash(dst, k, x, width) },
		})
	}
	return out
}

// clash shows the lines of all three states of a place.
func (p *Plan) clash(dst uv.Screen, n int, c api.Clash, width int) []row {
	wanted, there := p.sides()
	var out []row
	for _, x := range []struct {
		words, op string
		lines     []string
	}{{"what both come from", " ", c.Base}, {"t  " + there, "t", c.There}, {"w  " + wanted, "w", c.Wanted}} {
		out = append(out, row{ground: themes.Surface, spans: []text{{fmt.Sprintf("── %d: %s", n+1, x.words), themes.Strong}}})
		for _, l := range x.lines {
			out = append(out, diffRow(dst, x.op, l, width))
		}
		if len(x.lines) == 0 {
			out = append(out, muted("  (nothing)"))
		}
	}
	return out
}
