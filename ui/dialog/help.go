package dialog

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
	"stepbox/ui/topics"
)

// Help shows every key of a place, from the innermost scope out, and behind them the
// pages about one subject each. What is searched is searched in all of them, and in
// the keys of all other places.
type Help struct {
	sheet
	Place []keys.Scope
	Intro string
	Off   func(intent.Intent) string // why an intent does nothing now

	page   int   // 0: the keys; n: the nth topic
	find   *Line // what is searched; nil: nothing
	typing bool  // the keys go to that line
}

// maxFind bounds what is searched, in bytes.
const maxFind = 100

func (h *Help) Scope() keys.Scope {
	if h.typing {
		return keys.Input
	}
	return keys.Helping
}

func (h *Help) Type(k tea.KeyPressMsg) {
	if h.typing {
		h.find.Type(k)
		h.top = 0
	}
}

func (h *Help) Paste(s string) {
	if h.typing {
		h.find.Insert(s)
		h.top = 0
	}
}

// Leave says what esc does first.
func (h *Help) Leave() string {
	if h.find != nil {
		return "all again"
	}
	return ""
}

// Handle turns pages, searches, scrolls and closes.
func (h *Help) Handle(i intent.Intent) intent.Intent {
	switch i := i.(type) {
	case intent.Search:
		line := NewLine(maxFind)
		h.find, h.typing, h.top = &line, true, 0
	case intent.Yes:
		h.typing = false
	case intent.Turn:
		n := len(topics.All) + 1
		h.page, h.find, h.top = (h.page+i.By+n)%n, nil, 0
	case intent.Back:
		if h.find == nil {
			return i
		}
		h.find, h.typing, h.top = nil, false, 0
	default:
		h.scroll(i)
	}
	return nil
}

func (h *Help) Draw(area uv.Rectangle, f paint.Frame) *tea.Cursor {
	b, title := h.begin(f, area, 100), "Keys"
	hints := Foot(keys.Helping, nil)
	switch {
	case h.find != nil:
		h.found(b)
		title, hints = "Help: search", []paint.Hint{leave("all again")}
		if h.typing {
			hints = slices.Insert(hints, 0, hint(intent.Yes{}, keys.Input, "scroll through it", false))
		}
	case h.page > 0:
		t := topics.All[h.page-1]
		title = fmt.Sprintf("Help: %s  %d/%d  %s", t.Name, h.page+1, len(topics.All)+1, t.Title)
		b.page(t.Text())
	default:
		b.gap()
		h.keys(b, h.Place, "")
	}
	in := h.draw(b, area, f, titled(title), hints, text{})
	if !h.typing || h.top > 0 {
		return nil
	}
	return h.find.Draw(f, in.Min.X, in.Min.Y, in.Max.X, "a word of what it does, or a key")
}

// page adds a topic's text. Its lines may be longer than there is room: paragraphs
// are broken anew, and of others what is in the last column.
func (b *paper) page(words string) {
	b.gap()
	for part := range strings.SplitSeq(strings.TrimRight(words, "\n"), "\n\n") {
		if !strings.HasPrefix(part, " ") {
			part = strings.Join(strings.Fields(part), " ")
		}
		for line := range strings.SplitSeq(part, "\n") {
			at := 0
			if i := strings.LastIndex(line, "  "); i >= 0 {
				at = i + 2
			}
			column := text{line[:at], themes.Surface}
			for _, r := range paint.Wrap(b.dst, line[at:], min(b.width, 78)-paint.Width(b.dst, column.s)) {
				b.line(column, text{r, themes.Surface})
				column.s = strings.Repeat(" ", paint.Width(b.dst, column.s))
			}
		}
		b.gap()
	}
}

// keys adds the keys of places, or those that have a word in them.
func (h *Help) keys(b *paper, place []keys.Scope, word string) {
	if word == "" && h.Intro != "" {
		b.say(h.Intro, themes.SurfaceMuted)
		b.gap()
	}
	for _, s := range place {
		title := string(s)
		if s == keys.Leader {
			title += "  " + keys.LeaderKey()
		}
		said := false
		for _, x := range keys.In(s) {
			if !has(word, title, x.Help().Key, x.Name, x.Help().Desc) {
				continue
			}
			if !said {
				b.line(text{title, themes.Strong})
				said = true
			}
			h.key(b, x)
		}
		if said {
			b.gap()
		}
	}
}

func (h *Help) key(b *paper, x keys.Binding) {
	words, k, key := x.Help().Desc, themes.Surface, themes.Key
	if h.Off != nil {
		if why := h.Off(x.Intent); why != "" {
			k, key = themes.SurfaceMuted, themes.KeyOff
			if !strings.Contains(words, why) {
				words += " — " + why
			}
		}
	}
	label, first := x.Help().Key, len(b.rows)
	for _, r := range paint.Wrap(b.dst, words, b.width-20) {
		b.add(row{indent: 2, spans: []text{{b.pad(label, 16), key}, {r, k}}})
		label = ""
	}
	onward(b.rows[first:])
}

// found adds what has the word: keys of this place first, then of others, then lines of
// the pages. The first row is the line's.
func (h *Help) found(b *paper) {
	word := strings.TrimSpace(h.find.Value())
	b.add(row{}, row{})
	if h.typing = h.typing || word == ""; !h.typing {
		b.rows[0] = row{spans: []text{{"/" + word, themes.Key}}}
	}
	if h.keys(b, h.Place, word); word == "" {
		return
	}
	var others []keys.Scope
	for _, s := range keys.Scopes {
		if !slices.Contains(h.Place, s) {
			others = append(others, s)
		}
	}
	h.keys(b, others, word)
	for _, t := range topics.All {
		said := false
		for line := range strings.Lines(t.Text()) {
			if !has(word, line) {
				continue
			}
			if !said {
				b.line(text{"Help: " + t.Name, themes.Strong})
				said = true
			}
			for _, r := range paint.Wrap(b.dst, strings.TrimSpace(line), b.width-2) {
				b.add(row{indent: 2, spans: []text{{r, themes.Surface}}})
			}
		}
	}
	if len(b.rows) == 2 {
		b.muted("  nothing has that")
	}
}

// has says whether one of the texts has a word, whatever its case; "" is in all.
func has(word string, texts ...string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(strings.ToLower(t), strings.ToLower(word)) })
}
