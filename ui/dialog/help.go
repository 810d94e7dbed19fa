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

func (h *Help) Draw(dst uv.Screen, area uv.Rectangle, f paint.Frame) *tea.Cursor {
	width := h.measure(area, 100)
	title, rows := "Keys", []row(nil)
	hints := Foot(keys.Helping, nil)
	switch {
	case h.find != nil:
		title, rows = "Help: search", h.found(dst, width)
		hints = []paint.Hint{{Key: "esc", Words: "all again"}}
		if h.typing {
			hints = slices.Insert(hints, 0, paint.Hint{Key: keys.First(intent.Yes{}, keys.Input), Words: "scroll through it"})
		}
	case h.page > 0:
		t := topics.All[h.page-1]
		title = fmt.Sprintf("Help: %s  %d/%d  %s", t.Name, h.page+1, len(topics.All)+1, t.Title)
		rows = page(dst, t.Text(), width)
	default:
		rows = h.keys(dst, width, h.Place, "")
	}
	body := h.draw(dst, area, f, []text{{title, themes.Strong}}, rows, hints, text{})
	if !h.typing || h.top > 0 {
		return nil
	}
	return h.find.Draw(dst, body.Min.X, body.Min.Y, body.Max.X, f.P, "a word of what it does, or a key")
}

// page is a topic's text in rows. Its lines may be longer than there is room: paragraphs
// are broken anew, and of others what is in the last column.
func page(dst uv.Screen, words string, width int) []row {
	rows := []row{{}}
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
			for _, r := range paint.Wrap(dst, line[at:], min(width, 78)-paint.Width(dst, column.s)) {
				rows = append(rows, row{spans: []text{column, {r, themes.Surface}}})
				column.s = strings.Repeat(" ", paint.Width(dst, column.s))
			}
		}
		rows = append(rows, row{})
	}
	return rows
}

// keys are the rows of the keys of places, or of those that have a word in them.
func (h *Help) keys(dst uv.Screen, width int, place []keys.Scope, word string) []row {
	var rows []row
	if word == "" {
		rows = append(rows, row{})
		if h.Intro != "" {
			rows = append(append(rows, wrapped(dst, h.Intro, width, themes.SurfaceMuted)...), row{})
		}
	}
	for _, s := range place {
		title := string(s)
		if s == keys.Leader {
			title += "  " + keys.LeaderKey()
		}
		all := []row{{spans: []text{{title, themes.Strong}}}}
		for _, b := range keys.In(s) {
			if has(word, title, b.Help().Key, b.Name, b.Help().Desc) {
				all = append(all, h.key(dst, width, b)...)
			}
		}
		if len(all) > 1 {
			rows = append(append(rows, all...), row{})
		}
	}
	return rows
}

func (h *Help) key(dst uv.Screen, width int, b keys.Binding) (rows []row) {
	words, k, key := b.Help().Desc, themes.Surface, themes.Key
	if h.Off != nil {
		if why := h.Off(b.Intent); why != "" {
			k, key = themes.SurfaceMuted, themes.KeyOff
			if !strings.Contains(words, why) {
				words += " — " + why
			}
		}
	}
	label := b.Help().Key
	for _, r := range paint.Wrap(dst, words, width-20) {
		rows = append(rows, row{indent: 2, spans: []text{{padCells(dst, label, 16), key}, {r, k}}})
		label = ""
	}
	onward(rows)
	return rows
}

// found is what has the word: keys of this place first, then of others, then lines of
// the pages. The first row is the line's.
func (h *Help) found(dst uv.Screen, width int) []row {
	word := strings.TrimSpace(h.find.Value())
	rows := []row{{}, {}}
	if h.typing = h.typing || word == ""; word == "" {
		return append(rows, h.keys(dst, width, h.Place, "")[1:]...)
	}
	if !h.typing {
		rows[0] = row{spans: []text{{"/" + word, themes.Key}}}
	}
	rows = append(rows, h.keys(dst, width, h.Place, word)...)
	var others []keys.Scope
	for _, s := range keys.Scopes {
		if !slices.Contains(h.Place, s) {
			others = append(others, s)
		}
	}
	rows = append(rows, h.keys(dst, width, others, word)...)
	for _, t := range topics.All {
		said := false
		for line := range strings.Lines(t.Text()) {
			if !has(word, line) {
				continue
			}
			if !said {
				rows = append(rows, row{spans: []text{{"Help: " + t.Name, themes.Strong}}})
				said = true
			}
			for _, r := range paint.Wrap(dst, strings.TrimSpace(line), width-2) {
				rows = append(rows, row{indent: 2, spans: []text{{r, themes.Surface}}})
			}
		}
	}
	if len(rows) == 2 {
		rows = append(rows, muted("  nothing has that"))
	}
	return rows
}

// has says whether one of the texts has a word, whatever its case; "" is in all.
func has(word string, texts ...string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(strings.ToLower(t), strings.ToLower(word)) })
}

func padCells(dst uv.Screen, s string, n int) string {
	return s + strings.Repeat(" ", max(1, n-paint.Width(dst, s)))
}
