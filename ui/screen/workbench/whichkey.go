package workbench

import (
	"cmp"
	"slices"
	"time"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/themes"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
)

// panelAfter is how long the leader must have been pressed alone before the panel of what
// can follow comes: who knows the key is not to see it flash.
const panelAfter = 300 * time.Millisecond

// panelCell is what a column of the panel takes at least: a key and what it does.
const panelCell = 25

// panelled says whether the panel is there: what it covers isn't in view.
func (s *Screen) panelled() bool { return s.leader && s.cfg.Now().Sub(s.ledAt) >= panelAfter }

// panel lists, above the last line, what can follow the leader. It takes no key.
func (s *Screen) panel(area uv.Rectangle, f paint.Frame) {
	if !s.panelled() || f.Now.IsZero() {
		return
	}
	all := keys.In(keys.Leader)
	cols := max(1, (area.Dx()-4)/panelCell)
	height := min((len(all)+cols-1)/cols, area.Dy()-2)
	if height < 1 {
		return
	}
	p := f.P
	frame := uv.Rect(area.Min.X, area.Max.Y-height-2, area.Dx(), height+2)
	f.Fill(frame, themes.Surface)
	paint.Heavy(f.Screen, frame, p.S(themes.SurfaceBorder))
	paint.Text(f.Screen, frame.Min.X+2, frame.Min.Y, frame.Max.X-2, " "+keys.LeaderKey()+" and then ", p.On(themes.Strong, themes.Surface))
	x, end := frame.Min.X+2, frame.Max.X-2
	for column := range slices.Chunk(all, height) {
		words, right := x, x
		for _, b := range column {
			words = max(words, x+f.Width(b.First())+2)
		}
		for i, b := range column {
			key, look := p.On(themes.Key, themes.Surface), p.S(themes.Surface)
			if s.Why(b.Intent) != "" {
				key, look = p.On(themes.KeyOff, themes.Surface), p.On(themes.KeyOff, themes.Surface)
			}
			y := frame.Min.Y + 1 + i
			paint.Clip(f.Screen, x, y, end, b.First(), key)
			right = max(right, paint.Clip(f.Screen, words, y, end, cmp.Or(b.Short, b.Name, b.Help().Desc), look))
		}
		x = right + 4
	}
}
