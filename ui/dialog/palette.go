package dialog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

// Palette finds a command by a part of its name.
type Palette struct {
	sheet
	all   []keys.Binding
	why   func(intent.Intent) string
	below func() state.Target
	line  Line
	title string
	menu  bool // a number is no action's
	at    int
	first int // first command in view
}

// NewPalette offers commands; why says why one does nothing now, and below what
// they would decide.
func NewPalette(all []keys.Binding, why func(intent.Intent) string, below func() state.Target) *Palette {
	return &Palette{all: all, why: why, below: below, line: NewLine(100), title: "Commands"}
}

// NewMenu offers a few of them.
func NewMenu(title string, all []keys.Binding, why func(intent.Intent) string, below func() state.Target) *Palette {
	p := NewPalette(all, why, below)
	p.title, p.menu = title, true
	return p
}

// Target is what lies below, so that a command isn't for what came there since.
func (p *Palette) Target() state.Target {
	return state.Target{Hash: fmt.Sprint(p.below()), Place: "palette"}
}

func (p *Palette) Scope() keys.Scope { return keys.Picker }

func (p *Palette) Handle(i intent.Intent) intent.Intent {
	found := p.found()
	switch i := i.(type) {
	case intent.Back:
		return i
	case intent.Move:
		if n := len(found); n > 0 {
			p.at = (p.at + i.By + n) % n
		}
	case intent.Yes:
		if p.at < len(found) && p.why(found[p.at].Intent) == "" {
			return intent.Run{Intent: found[p.at].Intent}
		}
	}
	return nil
}

// Chosen is what the selected command does; nil: none is.
func (p *Palette) Chosen() intent.Intent {
	if found := p.found(); p.at < len(found) {
		return found[p.at].Intent
	}
	return nil
}

func (p *Palette) Type(k tea.KeyPressMsg) {
	was := p.line.Value()
	p.line.Type(k)
	if p.line.Value() != was {
		p.at = 0
	}
}

func (p *Palette) Paste(s string) {
	p.line.Insert(s)
	p.at = 0
}

// found is what matches, the best first.
func (p *Palette) found() []keys.Binding {
	type hit struct {
		b     keys.Binding
		score int
	}
	want := strings.ToLower(strings.TrimSpace(p.line.Value()))
	var hits []hit
	for _, b := range p.all {
		best, found := fuzzy(strings.ToLower(b.Name+" "+b.Plain()), want)
		for _, w := range b.Also() { // after what is called so itself
			if s, ok := fuzzy(w, want); ok && (!found || s < best) {
				best, found = s+1, true
			}
		}
		if found {
			hits = append(hits, hit{b, best})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return a.score - b.score })
	var out []keys.Binding
	if n, err := strconv.Atoi(strings.TrimLeft(want, "#:")); err == nil && !p.menu {
		out = append(out, keys.Command(fmt.Sprintf("go to #%d", n), "select this action in Actions", intent.GoTo{Action: n}))
	}
	for _, h := range hits {
		out = append(out, h.b)
	}
	return out
}

// fuzzy says whether all letters of want are in name in their order, and how far
// apart: less is better.
func fuzzy(name, want string) (int, bool) {
	score, last := 0, -1
	for _, r := range want {
		if r == ' ' {
			continue
		}
		i := strings.IndexRune(name[last+1:], r)
		if i < 0 {
			return 0, false
		}
		score += i
		last += i + 1
	}
	return score, true
}

// The palette's columns: a name, the keys, the command of a shell.
const nameCols, keyCols, plainCols = 22, 16, 30

// plain is the command of a shell that does what a binding does, or nothing.
func plain(b keys.Binding) string {
	if b.Plain() == "" {
		return ""
	}
	return "stepbox " + b.Plain()
}

func (p *Palette) Draw(area uv.Rectangle, f paint.Frame) *tea.Cursor {
	b, found := p.begin(f, area, 128), p.found()
	p.at = max(0, min(p.at, len(found)-1))
	// The list scrolls under the line, and keeps its height while letters narrow
	// it down.
	height := min(max(1, area.Dy()-8), 14, max(1, len(p.all)))
	p.first = max(0, min(p.first, len(found)-height))
	p.first = max(min(p.first, p.at), p.at-height+1)
	b.add(row{}, row{})
	note := text{}
	if len(found) == 0 {
		b.muted("  no command has these letters")
	}
	for i := p.first; i < min(p.first+height, len(found)); i++ {
		x := found[i]
		k, words := themes.Surface, x.Help().Desc
		if why := p.why(x.Intent); why != "" {
			k, words = themes.KeyOff, why
		}
		mark := "  "
		if i == p.at {
			mark = "▸ "
			if k == themes.Surface {
				k = themes.Key
			}
		}
		spans := []text{{mark, themes.Key}, {b.pad(x.Name, nameCols), k}, {b.pad(x.Help().Key, keyCols), themes.Key}, {b.pad(plain(x), plainCols), themes.SurfaceMuted}}
		if room := b.width - 2 - nameCols - keyCols - plainCols; room > 20 {
			spans = append(spans, text{b.short(words, room), themes.SurfaceMuted})
		}
		b.line(spans...)
		if i == p.at {
			note = text{b.short(words, b.width), themes.SurfaceMuted}
		}
	}
	for len(b.rows) < 2+height {
		b.gap()
	}
	p.top = 0
	off := func(i intent.Intent) bool {
		_, yes := i.(intent.Yes)
		return yes && (p.Chosen() == nil || p.why(p.Chosen()) != "")
	}
	in := p.draw(b, area, f, titled(p.title), Foot(keys.Picker, off), note)
	return p.line.Draw(f, in.Min.X, in.Min.Y, in.Max.X, "type a part of a name")
}
