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
func (p *Pane) asked(dst uv.Screen, r uv.Rectangle, f paint.Frame, c columns, it item) {
	q, ok := p.State.Question(it.question)
	if !ok || !q.Apart() {
		return
	}
	x, y, right := r.Min.X+1+c.mark, r.Min.Y, r.Max.X-1
	paint.Text(dst, x, y, right, "◆", f.P.S(themes.Held))
	if x += 2; q.Action != 0 {
		paint.Text(dst, x, y, right, fmt.Sprintf("%*s", c.digits, "#"+strconv.Itoa(q.Action)), f.P.S(themes.Muted))
	}
	x += c.digits + 2
	room, alone := c.title(r.Dx(), true)
	paint.Clip(dst, x, y, min(right, x+room), paint.Wants(q), f.P.S(themes.Strong))
	if alone {
		return
	}
	x = paint.Text(dst, right-c.heldWidth(), y, right, heldSince(q.HeldAt, f), f.P.S(themes.Held))
	why := paint.Reason(dst, q.Rule, right-x-2)
	if q.Connection != nil && q.Connection.Waiting == 0 {
		why = "gave up for now"
	}
	paint.Clip(dst, x+2, y, right, why, f.P.S(themes.Muted))
}
