package workbench

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
)

// heldLine is the last line: what is held, and the keys that work now.
func (s *Screen) heldLine(r uv.Rectangle, f paint.Frame) {
	x, y, end := r.Min.X+1, r.Min.Y, r.Max.X-1
	n := s.said()
	right := s.rightHints()
	switch {
	case n.ofKey:
		right = nil // its words are cut last
	case len(right) > 1 && r.Dx() < 60:
		right = right[:1] // help is always there
	}
	rw := f.HintsWidth(right)
	stop := end
	if rw > 0 {
		stop = end - rw
		f.Hints(stop, y, end, themes.Text, right)
		stop -= 2
	}
	if s.past() {
		// What is held now stands in the title.
	} else if held := len(s.st.Questions); held > 0 && s.caught {
		words := fmt.Sprintf("◆ %d held", held)
		if q, ok := s.question(); ok && held == 1 {
			words = fmt.Sprintf("◆ %sheld%s", s.short(f.Screen, q), f.Since(q.HeldAt))
		} else if ok {
			at, of := s.st.Place(q.ID)
			words = fmt.Sprintf("◆ %d of %d held", at, of)
		}
		if w := f.Width(words) + 3; !n.ofKey || w+f.Width(n.text) <= stop-x { // else the pane's title has it
			f.Text(x, y, stop, words, themes.Held)
			x += w
		}
	}
	if s.asking.deciding() && !n.ofKey { // what is said of a key needs the room
		x = f.Clip(x, y, stop, "deciding: the next question follows", themes.Info) + 3
	}
	if n.text != "" && (n.ofKey || s.asking.dialogs.Over(f.Screen) || s.find.in == intent.Actions || s.view.panes.Of(intent.Actions).Empty()) {
		// The place where notices usually are is covered, or isn't shown.
		f.Clip(x, y, stop, n.text, n.token)
		return
	}
	f.Hints(x, y, stop, themes.Text, s.hints(f.Screen))
}

// short is what the line calls a question, where its row isn't what has the keys.
func (s *Screen) short(dst uv.Screen, q api.Question) string {
	if q.Apart() && (s.view.focus == intent.Actions || s.view.focus == intent.Network) {
		return ""
	}
	if q.Apart() && s.typing() && s.view.cols < 100 {
		return string(q.Subject) + " " // its row names it, and what answers needs the room
	}
	return paint.Shorten(dst, dialog.Called(q, 0), 34) + " "
}

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
	frame := uv.Rect(area.Min.X, area.Max.Y-height-2, area.Dx(), height+2)
	f.Fill(frame, themes.Surface)
	paint.Heavy(f.Screen, frame, f.P.S(themes.SurfaceBorder))
	paint.Text(f.Screen, frame.Min.X+2, frame.Min.Y, frame.Max.X-2, " "+keys.LeaderKey()+" and then ", f.P.On(themes.Strong, themes.Surface))
	x, end := frame.Min.X+2, frame.Max.X-2
	for column := range slices.Chunk(all, height) {
		words, right := x, x
		for _, b := range column {
			words = max(words, x+f.Width(b.First())+2)
		}
		for i, b := range column {
			key, look := themes.Key, themes.Surface
			if s.Why(b.Intent) != "" {
				key, look = themes.KeyOff, themes.KeyOff
			}
			y := frame.Min.Y + 1 + i
			f.ClipOn(x, y, end, b.First(), key, themes.Surface)
			right = max(right, f.ClipOn(words, y, end, cmp.Or(b.Short, b.Name, b.Help().Desc), look, themes.Surface))
		}
		x = right + 4
	}
}
