package actions

import (
	"fmt"
	"strconv"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/themes"
	"stepbox/ui/paint"
)

// asked draws the row of what is asked about beside the actions: who wants to go
// where, for how long that waits, and why it is asked.
func (p *Pane) asked(r uv.Rectangle, f paint.Frame, c columns, it item) {
	q, ok := p.State.Question(it.question)
	if !ok || !q.Apart() {
		return
	}
	x, y, right := r.Min.X+1+c.mark, r.Min.Y, r.Max.X-1
	f.Text(x, y, right, "◆", themes.Held)
	if x += 2; q.Action != 0 {
		f.Text(x, y, right, fmt.Sprintf("%*s", c.digits, "#"+strconv.Itoa(q.Action)), themes.Muted)
	}
	x += c.digits + 2
	room, alone := c.title(r.Dx(), true)
	f.Clip(x, y, min(right, x+room), paint.Wants(q), themes.Strong)
	if alone {
		return
	}
	x = f.Text(right-c.heldWidth(), y, right, heldSince(q.HeldAt, f), themes.Held)
	why := paint.Reason(f.Screen, q.Rule, right-x-2)
	if q.Connection != nil && q.Connection.Waiting == 0 {
		why = "gave up for now"
	}
	f.Clip(x+2, y, right, why, themes.Muted)
}
