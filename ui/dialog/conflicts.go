package dialog

import (
	"fmt"
	"slices"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
)

// choose notes that the choices aren't those of the plan any more.
func (p *Plan) choose() intent.Intent {
	p.wanted++
	p.notice, p.failure = "", ""
	p.put(p.list())
	return intent.Replan{}
}

// decide takes a choice for a conflict, or with a place from 0 on for that place of it.
func (p *Plan) decide(c api.Conflict, place int, w api.Way) intent.Intent {
	r := p.choices[c.Key]
	if r == nil || place < 0 || r.Way != api.WayMerge {
		r = &api.Resolution{Key: c.Key, Way: w}
		if place >= 0 || w == api.WayMerge && !c.Clean {
			r.Way, r.Sides = api.WayMerge, make([]api.Way, len(c.Clashes))
		}
		p.choices[c.Key] = r
	}
	if place >= 0 {
		r.Sides[place] = w
	}
	return p.choose()
}

// option is one of the ways between which a person chooses.
type option struct {
	key   string
	way   api.Way
	words string
}

// between makes an item for a choice, and adds the options to its row. now is the
// one that is chosen.
func (p *Plan) between(c api.Conflict, place int, now api.Way, r row, options ...option) (item, row) {
	it := item{
		id: fmt.Sprint("conflict ", c.Key, place), choose: func(w api.Way) intent.Intent { return p.decide(c, place, w) },
	}
	it.toggle = func() intent.Intent { return it.choose(it.ways[(slices.Index(it.ways, now)+1)%len(it.ways)]) }
	for _, o := range options {
		mark, k := "○ ", themes.SurfaceMuted
		if o.way == now {
			mark, k = "● ", themes.Strong
		}
		it.ways = append(it.ways, o.way)
		r.spans = append(r.spans, text{o.key + " ", themes.Key}, text{mark + o.words + "  ", k})
	}
	return it, r
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

// conflict is a file in which changes meet, and each place where they clash.
func (p *Plan) conflict(c api.Conflict) []item {
	var way api.Way
	r := p.choices[c.Key]
	merge := option{"m", api.WayMerge, "both"}
	if r != nil {
		if way = r.Way; way == api.WayMerge && open(r) > 0 {
			merge.words = fmt.Sprintf("both (%d to choose)", open(r))
		}
	}
	wanted, there := p.sides()
	options := []option{merge, {"w", api.WayWanted, wanted}, {"t", api.WayThere, there}}
	sides := options[1:]
	if !c.Clean && len(c.Clashes) == 0 {
		options = sides
	}
	it, choice := p.between(c, -1, way, row{indent: 2}, options...)
	it.must = fmt.Sprint("conflict", c.Key, c.Why)
	it.rows = func(b *paper) {
		b.say("≠ "+c.Path+": "+c.Why, themes.Warn)
		b.add(choice)
		if r == nil {
			b.muted("  nothing chosen: it stays as it is")
		}
	}
	switch {
	case c.Clean:
		it.about = func(b *paper) {
			b.say("Both changes fit together. Beside what is there now, m changes this:", themes.SurfaceMuted)
			b.hunks(c.Merged, mostRows)
		}
	case len(c.Clashes) == 0:
		it.about = says("Both can't be had together, as lines of text could: it is one or the other.", themes.SurfaceMuted)
	default:
		it.about = func(b *paper) {
			b.say("They meet in "+paint.Count(len(c.Clashes), "place", "places")+". All else fits together; "+keys.First(intent.Choose{Way: api.WayMerge}, keys.Plan)+" takes both and lets you choose for each place.", themes.SurfaceMuted)
			for i, x := range c.Clashes {
				p.clash(b, i, x)
			}
		}
	}
	out := []item{it}
	if way != api.WayMerge || c.Clean {
		return out
	}
	for k, x := range c.Clashes {
		head := text{fmt.Sprintf("%d of %d, line %d  ", k+1, len(c.Clashes), x.Line), themes.Surface}
		it, choice := p.between(c, k, r.Sides[k], row{indent: 4, spans: []text{head}}, sides...)
		it.must = fmt.Sprint("clash", c.Key, x)
		it.rows = func(b *paper) { b.add(choice) }
		it.about = func(b *paper) { p.clash(b, k, x) }
		out = append(out, it)
	}
	return out
}

// clash shows the lines of all three states of a place.
func (p *Plan) clash(b *paper, n int, c api.Clash) {
	wanted, there := p.sides()
	for _, x := range []struct {
		words, op string
		lines     []string
	}{{"what both come from", " ", c.Base}, {"t  " + there, "t", c.There}, {"w  " + wanted, "w", c.Wanted}} {
		b.line(text{fmt.Sprintf("── %d: %s", n+1, x.words), themes.Strong})
		for _, l := range x.lines {
			b.diffLine(x.op, l)
		}
		if len(x.lines) == 0 {
			b.muted("  (nothing)")
		}
	}
}
