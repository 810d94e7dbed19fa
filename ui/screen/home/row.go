package home

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/paint"
)

// column is what the list of past sessions shows of each.
type column struct {
	head  string
	width int
	from  int  // the width of the list from which on it is there
	right bool // its text ends at its right end
	text  func(x api.Session, now time.Time) string
	token themes.Token
	x     int // where it begins, once that is known
}

// all are the columns after the name, in their order.
var all = [...]column{
	{head: "ended", width: 11, from: 30, text: func(x api.Session, _ time.Time) string { return outcome(x) }},
	{head: "acts", width: 4, from: 48, right: true, token: themes.Text, text: count(func(x api.Session) int { return x.Actions })},
	{head: "deny", width: 4, from: 60, right: true, token: themes.Denied, text: count(func(x api.Session) int { return x.Denials })},
	{head: "back", width: 4, from: 65, right: true, token: themes.Undone, text: count(func(x api.Session) int { return x.Rollbacks })},
	{head: "files", width: 5, from: 55, right: true, token: themes.Text, text: count(func(x api.Session) int { return x.Changed })},
	{head: "net", width: 3, from: 70, right: true, token: themes.Text, text: count(func(x api.Session) int { return x.Attempts })},
	{head: "apply", width: 5, from: 52, right: true, token: themes.Warn, text: count(func(x api.Session) int { return x.Unapplied })},
	{head: "took", width: 6, from: 90, right: true, token: themes.Muted, text: took},
	{head: "when", width: 9, from: 40, right: true, token: themes.Muted, text: func(x api.Session, now time.Time) string {
		return strings.TrimSuffix(paint.Ago(now.Sub(x.Last())), " ago")
	}},
	{head: "project", width: 24, from: 110, token: themes.Muted, text: func(x api.Session, _ time.Time) string { return x.Workspace }},
	{head: "last", width: 40, from: 170, token: themes.Text, text: func(x api.Session, _ time.Time) string { return cmp.Or(x.LastAction, x.Command) }},
}

func count(of func(api.Session) int) func(api.Session, time.Time) string {
	return func(x api.Session, _ time.Time) string {
		if n := of(x); n != 0 {
			return strconv.Itoa(n)
		}
		return "·"
	}
}

// columns are those that a list so wide has, the name's first.
func columns(width int) []column {
	out := []column{{head: "session", width: width - 4}}
	for _, c := range all {
		if width >= c.from {
			out = append(out, c)
			out[0].width -= c.width + 1
		}
	}
	x := 3
	for i := range out {
		out[i].x = x
		x += out[i].width + 1
	}
	return out
}

func (c column) draw(dst uv.Screen, row uv.Rectangle, text string, st uv.Style) {
	x, end := row.Min.X+c.x, row.Min.X+c.x+c.width
	over := paint.Width(dst, text) - c.width
	if n, err := strconv.Atoi(text); err == nil && over > 0 { // cut, it would be another number
		text = strconv.Itoa(n/1000) + "k"
		over = len(text) - c.width
	}
	switch {
	case c.right:
		x = max(x, x-over)
	case c.head == "project" && over > 0: // its end says more
		text = "…" + paint.From(dst, text, over+1)
	}
	paint.Clip(dst, x, row.Min.Y, end, text, st)
}

func heads(dst uv.Screen, row uv.Rectangle, f paint.Frame, cols []column) {
	for _, c := range cols {
		c.draw(dst, row, c.head, f.P.S(themes.Faint))
	}
}

func pastRow(dst uv.Screen, row uv.Rectangle, f paint.Frame, cols []column, x api.Session) {
	p := f.P
	glyph, token, _ := State(x)
	paint.Text(dst, row.Min.X+1, row.Min.Y, row.Max.X, glyph, p.S(token))
	for i, c := range cols {
		switch i {
		case 0:
			c.draw(dst, row, label(x), p.S(themes.Strong))
			continue
		case 1:
			c.token = token
		}
		text := c.text(x, f.Now)
		if text == "·" {
			c.token = themes.Faint
		}
		c.draw(dst, row, text, p.S(c.token))
	}
}

// outcome is how a session ended, short.
func outcome(x api.Session) string {
	_, _, words := State(x)
	return strings.TrimPrefix(words, "ended: ")
}

func took(x api.Session, now time.Time) string {
	if d := x.Ran(now); d > 0 {
		return paint.Took(d)
	}
	return "·"
}

// namesWidth is the width of the column of names.
func namesWidth(dst uv.Screen, list []api.Session, width int) int {
	w := 10
	for _, x := range list {
		w = max(w, paint.Width(dst, label(x)))
	}
	return min(w, max(12, width/3))
}

// label is a session's name, and what else tells it from others at a glance.
func label(x api.Session) string {
	out := name(x)
	if x.Agent != "" && x.Agent != out {
		out += " · " + x.Agent
	}
	if x.Pinned {
		out = "▪ " + out
	}
	for _, t := range x.Tags {
		out += " #" + t
	}
	return out
}

func (s *Screen) liveRow(dst uv.Screen, r uv.Rectangle, f paint.Frame, x api.Session, names int) {
	p := f.P
	y, end := r.Min.Y, r.Max.X-1
	glyph, token, words := State(x)
	at := paint.Text(dst, r.Min.X+1, y, end, glyph+" ", p.S(token))
	paint.Clip(dst, at, y, min(end, at+names), label(x), p.S(themes.Strong))
	at += names + 2
	right := paint.Right(dst, at, y, end, paint.Line{{Text: paint.Long(x.Ran(f.Now)), Style: p.S(themes.Muted)}}) - 2
	const stateWidth = 22
	room := min(stateWidth, max(8, right-at))
	paint.Clip(dst, at, y, min(right, at+room), words, p.S(token))
	at += room + 1
	if at >= right-8 {
		return
	}
	if r.Dx() >= 90 {
		paint.Clip(dst, at, y, right, strings.ToUpper(string(x.Mode)), p.S(themes.Muted))
		at += 8
	}
	if others := s.neighbours(x); others != "" && at < right {
		at = paint.Clip(dst, at, y, right, "shares its folder with "+others, p.S(themes.Info)) + 2
	}
	if at < right {
		paint.Clip(dst, at, y, right, cmp.Or(x.LastAction, x.Command), p.S(themes.Text))
	}
}

// neighbours names the other live sessions on a session's folder: what one of them
// has applied, the others' files don't have.
func (s *Screen) neighbours(x api.Session) string {
	var out []string
	for _, o := range s.live {
		if o.Folder == x.Folder && o.ID != x.ID && o.Folder != "" {
			out = append(out, name(o))
		}
	}
	return strings.Join(out, ", ")
}

// State is a session's state as a mark and in words.
func State(x api.Session) (glyph string, token themes.Token, words string) {
	switch {
	case x.Live() && x.Held > 0:
		words = fmt.Sprintf("%d held", x.Held)
		if x.State == api.SessionPaused {
			words += " · paused"
		}
		return "◆", themes.Held, words
	case x.State == api.SessionPaused:
		return "‖", themes.Running, "paused"
	case x.State == api.SessionStarting:
		return "…", themes.Running, "starting"
	case x.Live():
		words = "running"
		if x.Unreviewed > 0 {
			words += fmt.Sprintf(" · %d to review", x.Unreviewed)
		}
		return "●", themes.OK, words
	case x.State == api.SessionInterrupted:
		return "!", themes.Warn, "interrupted"
	case x.Exit != nil && x.Exit.Signal != "":
		return "✗", themes.Fail, "ended: " + paint.Clean(x.Exit.Signal)
	case x.Exit != nil && x.Exit.Code != 0:
		return "✗", themes.Fail, fmt.Sprintf("ended: exit %d", x.Exit.Code)
	case x.Exit != nil:
		return "✓", themes.Muted, "ended: exit 0"
	}
	return "○", themes.Muted, "ended"
}
