package dialog

import (
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/themes"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
)

// Next is where the next question will be, while none waits and the person is still
// deciding. It has the keys, so that none that is pressed for a question that doesn't
// come is anybody else's.
type Next struct {
	sheet
	Since time.Time
	to    string
}

// NewNext opens one that has so many rows of the dock; to is what has the focus after it.
func NewNext(rows int, since time.Time, to string) *Next {
	return &Next{sheet: sheet{dock: rows}, Since: since, to: to}
}

func (n *Next) Scope() keys.Scope { return keys.Between }
func (n *Next) Leave() string     { return "back to " + n.to }

func (n *Next) Draw(area uv.Rectangle, f paint.Frame) *tea.Cursor {
	b := n.begin(f, area, 0)
	b.say("Nothing waits. What comes in a moment is asked here.", themes.SurfaceMuted)
	n.draw(b, area, f, titled("◇ deciding"), []paint.Hint{leave(n.Leave())}, text{})
	return nil
}
