package workbench

import (
	"fmt"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
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
