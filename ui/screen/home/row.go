package home

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/paint"
)

// line is what a row is of: a session, and what it uses if it lives.
type line struct {
	x   api.Session
	u   api.Usage
	now time.Time
}

// column is what a list shows of each session.
type column struct {
	head  string
	width int
	from  int  // the width of the list from which on it is there
	right bool // its text ends at its right end
	fits  bool // it is no wider than what it shows, so that the name has the room
	text  func(l line) string
	token themes.Token
	x     int // where it begins, once that is known
}

// pastColumns are those of past sessions after the name, in their order.
var pastColumns = [...]column{
	{head: "ended", width: 11, from: 30, text: func(l line) string { return outcome(l.x) }},
	{head: "acts", width: 4, from: 48, right: true, token: themes.Text, text: count(func(l line) int { return l.x.Actions })},
	{head: "deny", width: 4, from: 88, right: true, token: themes.Denied, text: count(func(l line) int { return l.x.Denials })},
	{head: "back", width: 4, from: 92, right: true, token: themes.Undone, text: count(func(l line) int { return l.x.Rollbacks })},
	{head: "files", width: 5, from: 60, right: true, token: themes.Text, text: count(func(l line) int { return l.x.Changed })},
	{head: "net", width: 3, from: 96, right: true, token: themes.Text, text: count(func(l line) int { return l.x.Attempts })},
	{head: "to apply", width: 8, from: 55, right: true, token: themes.Warn, text: toApply},
	{head: "took", width: 6, from: 100, right: true, token: themes.Muted, text: took},
	{head: "when", width: 9, from: 40, right: true, token: themes.Muted, text: func(l line) string {
		return strings.TrimSuffix(paint.Ago(l.now.Sub(l.x.Last())), " ago")
	}},
	{head: "project", width: 14, from: 76, token: themes.Muted, fits: true, text: project},
	{head: "last", width: 40, from: 170, token: themes.Text, text: func(l line) string { return cmp.Or(l.x.LastAction, l.x.Command) }},
}

// liveColumns are those of live sessions after the name.
var liveColumns = [...]column{
	{head: "state", width: 15, from: 36, text: doing},
	{head: "project", width: 14, from: 100, token: themes.Muted, fits: true, text: project},
	{head: "branch", width: 14, from: 116, token: themes.Muted, fits: true, text: branch},
	{head: "mode", width: 6, from: 48, token: themes.Muted, text: func(l line) string { return strings.ToUpper(string(l.x.Mode)) }},
	{head: "review", width: 6, from: 74, right: true, token: themes.Warn, text: count(func(l line) int { return l.x.Unreviewed })},
	{head: "to apply", width: 8, from: 59, right: true, token: themes.Warn, text: toApply},
	{head: "cpu", width: 4, from: 62, right: true, token: themes.Text, text: func(l line) string {
		if l.u.Pids == 0 {
			return "·" // it isn't known
		}
		return fmt.Sprintf("%.0f%%", l.u.CPU*100)
	}},
	{head: "mem", width: 4, from: 66, right: true, token: themes.Text, text: size(func(l line) int64 { return l.u.Memory })},
	{head: "net", width: 4, from: 84, right: true, token: themes.Text, text: size(func(l line) int64 { return l.u.Sent + l.u.Received })},
	{head: "tokens", width: 6, from: 90, right: true, token: themes.Text, text: func(l line) string {
		if s := l.x.Spent(); s.Input+s.Output > 0 {
			return paint.Thousands(s.Input + s.Output)
		}
		return "·"
	}},
	{head: "ran", width: 8, from: 44, right: true, token: themes.Muted, text: func(l line) string { return paint.Long(l.x.Ran(l.now)) }},
	{head: "last line", width: 50, from: 190, token: themes.Text, text: func(l line) string { return lastLine(l.x, l.u) }},
}

func count(of func(line) int) func(line) string {
	return func(l line) string {
		if n := of(l); n != 0 {
			return strconv.Itoa(n)
		}
		return "·"
	}
}

// applied stands where the project has all that a session changed.
const applied = "none"

// toApply is how many files a session changed that the project doesn't have.
func toApply(l line) string {
	switch n := max(l.u.Unapplied, l.x.Unapplied); {
	case n >= 100:
		return strconv.Itoa(n)
	case n > 0:
		return paint.Files(n)
	case l.x.Changed > 0 || l.x.Applies > 0:
		return applied
	}
	return "·"
}

func size(of func(line) int64) func(line) string {
	return func(l line) string {
		if n := of(l); n > 0 {
			return paint.Bytes(n)
		}
		return "·"
	}
}

// doing is what a live session does; what waits for a review has a column of its own.
func doing(l line) string {
	l.x.Unreviewed = 0
	_, _, words := State(l.x)
	return words
}

// project is the folder's own name.
func project(l line) string {
	if l.x.Workspace == "" {
		return "·"
	}
	return path.Base(l.x.Workspace)
}

// branch is what the project had checked out when the session began.
func branch(l line) string { return cmp.Or(strings.TrimPrefix(l.x.Branch, "refs/heads/"), "·") }

// lastLine is what a live session did last: its screen's last words, or else its last action.
func lastLine(x api.Session, u api.Usage) string {
	return paint.Clean(cmp.Or(u.Last, x.LastAction, x.Command))
}

// fitted are columns as wide as what they show of sessions needs.
func fitted(dst uv.Screen, all []column, of []api.Found) []column {
	all = slices.Clone(all)
	for i, c := range all {
		if c.fits {
			need := paint.Width(dst, c.head)
			for _, f := range of {
				need = max(need, paint.Width(dst, c.text(line{x: f.Session})))
			}
			all[i].width = min(c.width, need)
		}
	}
	return all
}

// columns are those that a list so wide has, the name's first.
func columns(all []column, width int) []column {
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

func (c column) draw(row uv.Rectangle, f paint.Frame, text string, k themes.Token) {
	x, end := row.Min.X+c.x, row.Min.X+c.x+c.width
	over := f.Width(text) - c.width
	if n, err := strconv.Atoi(text); err == nil && over > 0 { // cut, it would be another number
		text = strconv.Itoa(n/1000) + "k"
		over = len(text) - c.width
	}
	if c.right {
		x = max(x, x-over)
	}
	f.Clip(x, row.Min.Y, end, text, k)
}

func heads(row uv.Rectangle, f paint.Frame, cols []column) {
	for _, c := range cols {
		c.draw(row, f, c.head, themes.Faint)
	}
}

// row draws a session's row.
func (l line) row(row uv.Rectangle, f paint.Frame, cols []column) {
	glyph, token, _ := State(l.x)
	f.Text(row.Min.X+1, row.Min.Y, row.Max.X, glyph, token)
	for i, c := range cols {
		switch i {
		case 0:
			c.draw(row, f, label(l.x), themes.Strong)
			continue
		case 1:
			c.token = token
		}
		text := c.text(l)
		if text == "·" || text == applied {
			c.token = themes.Faint
		}
		c.draw(row, f, text, c.token)
	}
}

// outcome is how a session ended, short.
func outcome(x api.Session) string {
	_, _, words := State(x)
	return strings.TrimPrefix(words, "ended: ")
}

func took(l line) string {
	if d := l.x.Ran(l.now); d > 0 {
		return paint.Took(d)
	}
	return "·"
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

// secondRow is below a live session's row where there is room: where it works, and the
// last line of its output.
func (s *Screen) secondRow(r uv.Rectangle, f paint.Frame, l line, cols []column) {
	at := r.Min.X + 3
	end := r.Max.X - 1
	for _, w := range []struct {
		text  string
		token themes.Token
	}{{project(l), themes.Muted}, {branch(l), themes.Muted}} {
		if w.text != "·" && len(cols) < len(liveColumns)-1 { // else they have columns
			at = f.Clip(at, r.Min.Y, min(end, at+24), w.text, w.token) + 2
		}
	}
	if others := s.neighbours(l.x); others != "" {
		at = f.Clip(at, r.Min.Y, end, "shares its folder with "+others, themes.Info) + 2
	}
	if at < end {
		f.Clip(at, r.Min.Y, end, lastLine(l.x, l.u), themes.Text)
	}
}

// neighbours names the other live sessions on a session's folder: what one of them
// has applied, the others' files don't have.
func (s *Screen) neighbours(x api.Session) string {
	var out []string
	for _, f := range s.live {
		if o := f.Session; o.Folder == x.Folder && o.ID != x.ID && o.Folder != "" {
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
