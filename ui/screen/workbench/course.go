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

func signOf(k api.MarkKind) sign {
	switch k {
	case api.MarkDenied:
		return sign{"✗", themes.Denied, 7}
	case api.MarkRollback:
		return sign{"↶", themes.Undone, 6}
	case api.MarkApply:
		return sign{"⇑", themes.OK, 5}
	case api.MarkQuestion:
		return sign{"◆", themes.Held, 4}
	case api.MarkResume:
		return sign{"»", themes.Info, 3}
	case api.MarkEdit:
		return sign{"±", themes.AddedWord, 2}
	case api.MarkAttempt:
		return sign{"↗", themes.Info, 1}
	}
	return sign{}
}

// draw draws where the person is, and the course with its marks.
func (t *transport) draw(r uv.Rectangle, f paint.Frame) {
	t.bar = uv.Rectangle{}
	if r.Empty() {
		return
	}
	x, y, end := r.Min.X+1, r.Min.Y, r.Max.X-1
	switch {
	case t.problem != "":
		f.Clip(x, y, end, "no replay: "+t.problem, themes.Warn)
		return
	case !t.rough:
		f.Clip(x, y, end, "reading the session's course…", themes.Muted)
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
	x = f.Text(x, y, end, mark+" ", token)
	x = f.Text(x, y, end, paint.Long(off), themes.Strong)
	x = f.Text(x, y, end, " / "+paint.Long(all), themes.Muted)
	x = f.Text(x, y, end, fmt.Sprintf("  %-4s", "×"+strconv.FormatFloat(speeds[t.speed], 'f', -1, 64)), themes.Info)
	if r.Dx() >= 60 {
		words := ""
		if n := t.current(); t.past() && n > 0 {
			words = "#" + strconv.Itoa(n)
		}
		x = f.Text(x, y, end, fmt.Sprintf(" %-5s", words), themes.Strong)
	}
	if t.line.Damage != "" {
		words := " ⚠ damaged"
		end -= f.Width(words)
		f.Text(end, y, r.Max.X-1, words, themes.Warn)
	}
	if x+1 < end {
		t.bar = uv.Rect(x+1, y, end-x-1, 1)
		t.scrub(f, off, all)
	}
}

// scrub draws the course: what is behind, where the person is, what is ahead.
func (t *transport) scrub(f paint.Frame, off, all time.Duration) {
	w := t.bar.Dx()
	whole := t.gaps.squeezed(all)
	cell := func(d time.Duration) int {
		if whole <= 0 {
			return 0
		}
		return int(float64(t.gaps.squeezed(max(0, min(d, all)))) / float64(whole) * float64(w-1))
	}
	cells := make([]sign, w)
	for _, m := range t.line.Marks {
		if s, at := signOf(m.Kind), cell(m.Offset); s.weight > cells[at].weight {
			cells[at] = s
		}
	}
	at := cell(off)
	for i, s := range cells {
		switch {
		case i == at:
			s = sign{glyph: "●", token: themes.Strong}
		case s.weight > 0:
		case i < at:
			s = sign{glyph: "━", token: themes.BorderFocus}
		default:
			s = sign{glyph: "─", token: themes.Border}
		}
		f.Text(t.bar.Min.X+i, t.bar.Min.Y, t.bar.Max.X, s.glyph, s.token)
	}
}
