package workbench

import (
	"fmt"
	"strconv"
	"time"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/paint"
)

// sign is how a kind of mark looks on the course. Of several in one cell the one
// with the most weight is shown.
type sign struct {
	glyph  string
	token  themes.Token
	weight int
}

func signOf(k api.MarkKind) (sign, bool) {
	switch k {
	case api.MarkDenied:
		return sign{"✗", themes.Denied, 7}, true
	case api.MarkRollback:
		return sign{"↶", themes.Undone, 6}, true
	case api.MarkApply:
		return sign{"⇑", themes.OK, 5}, true
	case api.MarkQuestion:
		return sign{"◆", themes.Held, 4}, true
	case api.MarkResume:
		return sign{"»", themes.Info, 3}, true
	case api.MarkEdit:
		return sign{"±", themes.AddedWord, 2}, true
	case api.MarkAttempt:
		return sign{"↗", themes.Info, 1}, true
	}
	return sign{}, false
}

// draw draws where the person is, and the course with its marks.
func (t *transport) draw(dst uv.Screen, r uv.Rectangle, f paint.Frame) {
	t.bar = uv.Rectangle{}
	if r.Empty() {
		return
	}
	p := f.P
	x, y, end := r.Min.X+1, r.Min.Y, r.Max.X-1
	switch {
	case t.problem != "":
		paint.Clip(dst, x, y, end, "no replay: "+t.problem, p.S(themes.Warn))
		return
	case !t.rough:
		paint.Clip(dst, x, y, end, "reading the session's course…", p.S(themes.Muted))
		return
	}
	off, _ := t.here()
	all := t.length()
	mark, token := "‖", themes.Info
	switch {
	case !t.past():
		mark, token = "■", themes.Muted
	case t.playing:
		mark, token = "▶", themes.Running
	}
	x = paint.Text(dst, x, y, end, mark+" ", p.S(token))
	x = paint.Text(dst, x, y, end, paint.Long(off), p.S(themes.Strong))
	x = paint.Text(dst, x, y, end, " / "+paint.Long(all), p.S(themes.Muted))
	x = paint.Text(dst, x, y, end, fmt.Sprintf("  %-4s", "×"+strconv.FormatFloat(speeds[t.speed], 'f', -1, 64)), p.S(themes.Info))
	if r.Dx() >= 60 {
		words := ""
		if n := t.current(); t.past() && n > 0 {
			words = "#" + strconv.Itoa(n)
		}
		x = paint.Text(dst, x, y, end, fmt.Sprintf(" %-5s", words), p.S(themes.Strong))
	}
	if t.line.Damage != "" {
		words := " ⚠ damaged"
		end -= paint.Width(dst, words)
		paint.Text(dst, end, y, r.Max.X-1, words, p.S(themes.Warn))
	}
	if x+1 < end {
		t.bar = uv.Rect(x+1, y, end-x-1, 1)
		t.scrub(dst, f, off, all)
	}
}

// scrub draws the course: what is behind, where the person is, what is ahead.
func (t *transport) scrub(dst uv.Screen, f paint.Frame, off, all time.Duration) {
	w := t.bar.Dx()
	whole := t.gaps.squeezed(all)
	cell := func(d time.Duration) int {
		if whole <= 0 {
			return 0
		}
		return int(float64(t.gaps.squeezed(max(0, min(d, all)))) / float64(whole) * float64(w-1))
	}
	signs := make([]sign, w)
	for _, m := range t.line.Marks {
		if s, ok := signOf(m.Kind); ok {
			if at := cell(m.Offset); s.weight > signs[at].weight {
				signs[at] = s
			}
		}
	}
	at := cell(off)
	for i, s := range signs {
		switch {
		case i == at:
			s = sign{glyph: "●", token: themes.Strong}
		case s.weight > 0:
		case i < at:
			s = sign{glyph: "━", token: themes.BorderFocus}
		default:
			s = sign{glyph: "─", token: themes.Border}
		}
		paint.Text(dst, t.bar.Min.X+i, t.bar.Min.Y, t.bar.Max.X, s.glyph, f.P.S(s.token))
	}
}
