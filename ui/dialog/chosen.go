package dialog

import (
	"fmt"
	"slices"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/paint"
)

// chosen says what the chosen rule is, and what it would have been about, with examples.
func (r *Rule) chosen(dst uv.Screen, width int) (out, examples []row) {
	b := &paper{dst: dst, width: width}
	b.gap()
	p := r.proposals[r.at]
	if pattern := paint.Clean(p.Pattern); paint.Width(dst, pattern) > width*3/5 { // the list cuts it
		b.say(pattern, themes.Strong)
	}
	if r.problem != "" {
		b.say("wider rules can't be proposed: "+r.problem, themes.SurfaceMuted)
		return b.rows, nil
	}
	if paint.Width(dst, p.Means) > width-2-r.column(dst, width) { // the list cuts it
		b.say(paint.Clean(p.Means), themes.Surface)
	}
	r.atOnce(b, p)
	if !r.counted {
		if len(b.rows) == 1 {
			return nil, nil
		}
		return b.rows, nil
	}
	words, k := "it covers nothing that was done in this folder before", themes.SurfaceMuted
	if p.Matched > 0 {
		one, many := "past attempt", "past attempts"
		if r.commands {
			one, many = "past action", "past actions"
		}
		words, k = "it covers "+paint.Count(p.Matched, one, many)+" of this folder", themes.Surface
	}
	if p.Denied > 0 {
		words, k = words+fmt.Sprintf(", %d of them denied by you", p.Denied), themes.Warn
	}
	b.say(words, k)
	for _, e := range p.Examples[:min(3, len(p.Examples))] {
		examples = append(examples, row{indent: 2, spans: []text{{b.short(paint.Clean(e), width-2), themes.SurfaceMuted}}})
	}
	return b.rows, examples
}

// maxAtOnce is how many of each are named.
const maxAtOnce = 3

// atOnce says what else runs with the answer: what else the question is about, and what
// waits beside it.
func (r *Rule) atOnce(b *paper, p api.Proposal) {
	var waits []string
	for _, q := range r.held {
		if !slices.Contains(p.Waiting, q.ID) {
			continue
		}
		words := asked(q)
		if q.Connection != nil && q.Connection.Written {
			words += " (this session wrote it)"
		}
		waits = append(waits, words)
	}
	for _, l := range []struct {
		words string
		all   []string
	}{{"approves once, too: ", p.Once}, {"allows what waits, too: ", waits}} {
		for i, c := range l.all {
			if i == maxAtOnce {
				c, l.words = "", fmt.Sprintf("and %d more", len(l.all)-i)
			}
			if i <= maxAtOnce {
				b.say(l.words+paint.Clean(c), themes.Warn)
			}
		}
	}
}
