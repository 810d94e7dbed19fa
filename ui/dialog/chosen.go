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
	out = []row{{}}
	p := r.proposals[r.at]
	if pattern := paint.Clean(p.Pattern); paint.Width(dst, pattern) > width*3/5 { // the list cuts it
		out = append(out, wrapped(dst, pattern, width, themes.Strong)...)
	}
	if r.problem != "" {
		return append(out, wrapped(dst, "wider rules can't be proposed: "+r.problem, width, themes.SurfaceMuted)...), nil
	}
	if paint.Width(dst, p.Means) > width-2-r.column(dst, width) { // the list cuts it
		out = append(out, wrapped(dst, paint.Clean(p.Means), width, themes.Surface)...)
	}
	out = append(out, r.atOnce(dst, p, width)...)
	if !r.counted {
		if len(out) == 1 {
			return nil, nil
		}
		return out, nil
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
	out = append(out, wrapped(dst, words, width, k)...)
	for _, e := range p.Examples[:min(3, len(p.Examples))] {
		examples = append(examples, row{indent: 2, spans: []text{{paint.Shorten(dst, paint.Clean(e), width-2), themes.SurfaceMuted}}})
	}
	return out, examples
}

// maxAtOnce is how many of each are named.
const maxAtOnce = 3

// atOnce says what else runs with the answer: what else the question is about, and what
// waits beside it.
func (r *Rule) atOnce(dst uv.Screen, p api.Proposal, width int) (out []row) {
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
				out = append(out, wrapped(dst, l.words+paint.Clean(c), width, themes.Warn)...)
			}
		}
	}
	return out
}
