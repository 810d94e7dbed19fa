package workbench

import (
	"cmp"
	"time"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/themes"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
)

// panelAfter is how long the leader must have been pressed alone before the panel of what
// can follow comes: who knows the key is not to see it flash.
const panelAfter = 300 * time.Millisecond

// Columns of the panel: a key and what it does.
const (
	panelKey  = 10
	panelCell = 25
)

// panel lists, above the last line, what can follow the leader. It takes no key.
func (s *Screen) panel(dst uv.Screen, area uv.Rectangle, f paint.Frame) {
	if !s.leader || f.Now.IsZero() || s.cfg.Now().Sub(s.ledAt) < panelAfter {
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
	paint.Fill(dst, frame, p.S(themes.Surface))
	paint.Heavy(dst, frame, p.S(themes.SurfaceBorder))
	paint.Text(dst, frame.Min.X+2, frame.Min.Y, frame.Max.X-2, " "+keys.LeaderKey()+" and then ", p.On(themes.Strong, themes.Surface))
	width := (area.Dx() - 4) / cols
	for i, b := range all {
		x, y := frame.Min.X+2+i/height*width, frame.Min.Y+1+i%height
		key, words := p.On(themes.Key, themes.Surface), p.S(themes.Surface)
		if s.Why(b.Intent) != "" {
			key, words = p.On(themes.KeyOff, themes.Surface), p.On(themes.KeyOff, themes.Surface)
		}
		end := min(x+width-1, frame.Max.X-1)
		paint.Clip(dst, x, y, end, b.First(), key)
		paint.Clip(dst, x+panelKey, y, end, cmp.Or(b.Short, b.Name, b.Help().Desc), words)
	}
}
