package terminal

import (
	"fmt"
	"sort"
	"strings"
	"unicode"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/selection"
)

// mostHits bounds what a search finds.
const mostHits = 10_000

// finding is a search in what is read.
type finding struct {
	words string
	back  bool        // towards the beginning
	from  uv.Position // where it began
	hits  []selection.Range
	at    int // the place that the cursor is at, or -1
}

// count says which of the places it is.
func (f *finding) count() string {
	switch n := len(f.hits); {
	case f.words == "":
		return ""
	case n == 0:
		return "not found"
	case n == mostHits:
		return fmt.Sprintf("%d of the first %d", f.at+1, n)
	default:
		return fmt.Sprintf("%d of %d", f.at+1, n)
	}
}

// answer takes the intents while what is searched for is typed.
func (c *Copy) answer(i intent.Intent) (why string) {
	switch i.(type) {
	case intent.Yes:
		c.asked = nil
		if c.find.words != "" && len(c.find.hits) == 0 {
			return fmt.Sprintf("%q isn't in the scrollback; in a replay %s searches all that was ever printed", c.find.words, keys.First(intent.Search{}, keys.Replay))
		}
	case intent.Back:
		c.asked, c.cur = nil, c.find.from
		c.find = finding{back: c.find.back, at: -1}
	}
	c.show()
	return ""
}

// look searches for what has been typed by now, from where that began.
func (c *Copy) look() {
	if words := c.asked.Value(); words != c.find.words {
		c.find.words = words
		c.find.hits = c.all(words)
		c.cur, c.find.at = c.find.from, -1
		if len(c.find.hits) > 0 {
			by := 1
			if c.find.back {
				by = -1
			}
			c.goTo(c.after(by, true))
		}
		c.show()
	}
}

// next goes to another place: by is 1 the way that the search goes, or -1.
func (c *Copy) next(by int) string {
	switch {
	case c.find.words == "":
		return "nothing was searched for: / searches, and ? backwards"
	case len(c.find.hits) == 0:
		return fmt.Sprintf("%q isn't here", c.find.words)
	}
	if c.find.back {
		by = -by
	}
	c.goTo(c.after(by, false))
	return ""
}

// after is the first place after the cursor, or before it; beyond the last is the first.
func (c *Copy) after(by int, here bool) int {
	hits := c.find.hits
	before := func(a, b uv.Position) bool { return a.Y < b.Y || a.Y == b.Y && a.X < b.X }
	if by > 0 {
		i := sort.Search(len(hits), func(i int) bool { return before(c.cur, hits[i].Anchor) || here && c.cur == hits[i].Anchor })
		return i % len(hits)
	}
	i := sort.Search(len(hits), func(i int) bool { return !before(hits[i].Anchor, c.cur) && !(here && c.cur == hits[i].Anchor) })
	return (i - 1 + len(hits)) % len(hits)
}

func (c *Copy) goTo(hit int) {
	at := c.find.hits[hit].Anchor
	c.ToRow(at.Y)
	c.find.at, c.cur, c.want = hit, at, at.X
}

// all are the places that have words. Small letters stand for capitals too.
func (c *Copy) all(words string) (hits []selection.Range) {
	if words == "" {
		return nil
	}
	fold := func(s string) string { return s }
	if !strings.ContainsFunc(words, unicode.IsUpper) {
		fold = strings.ToLower
	}
	for first := 0; first < c.n && len(hits) < mostHits; {
		_, last := selection.Whole(c.row, first, c.n)
		hits = append(hits, c.line(first, last, words, fold)...)
		first = last + 1
	}
	return hits[:min(len(hits), mostHits)]
}

// line are the places in one line, which may have several rows.
func (c *Copy) line(first, last int, words string, fold func(string) string) (hits []selection.Range) {
	var text strings.Builder
	var at []uv.Position // of each byte
	for y := first; y <= last; y++ {
		for x, cell := range c.row(y).Cells {
			n, _ := text.WriteString(fold(cell))
			for range n {
				at = append(at, uv.Pos(x, y))
			}
		}
	}
	line := text.String()
	for from := 0; ; {
		i := strings.Index(line[from:], words)
		if i < 0 {
			return hits
		}
		from += i
		hits = append(hits, selection.Range{Anchor: at[from], Head: at[from+len(words)-1]})
		from += len(words)
	}
}
