package workbench

import (
	"cmp"
	"fmt"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/paint"
)

// piece is a part of the title line; those with the least weight go first when
// there isn't room for all.
type piece struct {
	text   string
	token  themes.Token
	weight int
}

func (c *core) title(dst uv.Screen, r uv.Rectangle, f paint.Frame) {
	p := f.P
	paint.Fill(dst, r, p.S(themes.Bar))
	ses := c.st.Session
	left := []piece{{" stepbox ", themes.Brand, 40}, {" " + name(ses), themes.Bar, 100}}
	if ses.Agent != "" && ses.Agent != ses.Name {
		left = append(left, piece{" · " + ses.Agent, themes.BarMuted, 60})
	}
	middle := c.badges()
	right := c.figures(f)

	fit := func() int { return 2 + width(dst, left) + width(dst, middle) + width(dst, right) }
	for fit() > r.Dx() {
		if !dropLightest(&left, &middle, &right) {
			break
		}
	}
	if over := fit() - r.Dx(); over > 0 {
		for i := range left {
			if left[i].weight == 100 {
				left[i].text = paint.Shorten(dst, left[i].text, max(4, paint.Width(dst, left[i].text)-over))
			}
		}
	}
	x := r.Min.X
	for _, ps := range left {
		x = paint.Text(dst, x, r.Min.Y, r.Max.X, ps.text, p.S(ps.token))
	}
	x += 1
	mw := width(dst, middle)
	start := r.Max.X - width(dst, right) - 1
	at := max(x, min(x+(start-x-mw)/2, start-mw))
	for _, ps := range middle {
		at = paint.Text(dst, at, r.Min.Y, r.Max.X, ps.text, p.S(ps.token))
	}
	for _, ps := range right {
		start = paint.Text(dst, start, r.Min.Y, r.Max.X, ps.text, p.On(ps.token, themes.Bar))
	}
}

func width(dst uv.Screen, ps []piece) int {
	w := 0
	for _, x := range ps {
		w += paint.Width(dst, x.text)
	}
	return w
}

func dropLightest(lists ...*[]piece) bool {
	var from *[]piece
	at, least := -1, 100
	for _, l := range lists {
		for i, x := range *l {
			if x.weight < least {
				from, at, least = l, i, x.weight
			}
		}
	}
	if from == nil {
		return false
	}
	*from = append((*from)[:at:at], (*from)[at+1:]...)
	return true
}

func name(s api.Session) string {
	return cmp.Or(s.Name, s.ID, "session")
}

// badges are the mode and whatever isn't as usual about the session.
func (c *core) badges() []piece {
	ses := c.st.Session
	var out []piece
	add := func(words string, k themes.Token, weight int) {
		if len(out) > 0 {
			out = append(out, piece{" ", themes.Bar, weight})
		}
		out = append(out, piece{" " + words + " ", k, weight})
	}
	ended := c.Over()
	if c.past() {
		add("REPLAY", themes.StatePaused, 100)
		if !c.Over() {
			add("end, L or esc: live", themes.BarMuted, 35)
		}
		if n := len(c.now.Questions); n > 0 {
			add(fmt.Sprintf("◆ %d held now", n), themes.Held, 100)
		}
		ended = ses.State != "" && !ses.Live()
	}
	switch ses.Mode {
	case api.ModeStep:
		add("STEP", themes.ModeStep, 100)
	case api.ModeWatch:
		add("WATCH", themes.ModeWatch, 100)
	case api.ModePolicy:
		add("POLICY", themes.ModePolicy, 100)
	}
	switch {
	case ses.State == api.SessionPaused:
		add("PAUSED", themes.StatePaused, 100)
	case ses.State == api.SessionStarting:
		add(strings.TrimSpace(c.Spin+" STARTING"), themes.StatePaused, 90)
	case ses.State == api.SessionInterrupted:
		add("INTERRUPTED", themes.StateEnded, 100)
	case ended:
		words := "ENDED"
		if ses.Exit != nil {
			words += ": " + cmp.Or(paint.Clean(ses.Exit.Words()), "ended")
		}
		add(words, themes.StateEnded, 100)
	}
	if c.cfg.Watching {
		add("WATCHING ONLY", themes.StatePaused, 95)
	}
	if c.lostEv != "" {
		add("DISCONNECTED, joining again", themes.StateEnded, 100)
	}
	return out
}

// figures are what the session uses and how long it has been going on.
func (c *core) figures(f paint.Frame) []piece {
	ses := c.st.Session
	var out []piece
	add := func(words string, k themes.Token, weight int) {
		out = append(out, piece{words + "  ", k, weight})
	}
	if n := len(ses.Warnings); n > 0 {
		add(fmt.Sprintf("⚠ %s", paint.Count(n, "warning", "warnings")), themes.Warn, 80)
	}
	if u := c.st.Usage; u != nil {
		share := u.CPU
		if ses.Limits.CPUs > 0 {
			share /= ses.Limits.CPUs
		}
		add(fmt.Sprintf("%s %d%% cpu", gauge(share), int(u.CPU*100+0.5)), themes.BarMuted, 50)
		mem := paint.Bytes(u.Memory)
		if ses.Limits.Memory > 0 {
			mem += "/" + paint.Bytes(ses.Limits.Memory)
		}
		k := themes.BarMuted
		if ses.Limits.Memory > 0 && u.Memory*10 > ses.Limits.Memory*9 {
			k = themes.Warn
		}
		add(mem, k, 55)
		add(paint.Count(u.Pids, "pid", "pids"), themes.BarMuted, 30)
	}
	if spent := ses.Spent(); spent.Input+spent.Output > 0 {
		add(fmt.Sprintf("%s↑ %s↓ tok", paint.Thousands(spent.Input), paint.Thousands(spent.Output)), themes.BarMuted, 60)
	}
	if ses.Limits.Source != "" {
		add(ses.Limits.Source, themes.BarMuted, 20)
	}
	if !ses.StartedAt.IsZero() {
		add(paint.Long(ses.Ran(f.Now)), themes.Bar, 70)
	}
	if n := len(out); n > 0 {
		out[n-1].text = out[n-1].text[:len(out[n-1].text)-2]
	}
	return out
}

// gauge draws a share of one as three bars.
func gauge(share float64) string {
	full := max(0, min(3, int(share*3+0.5)))
	return strings.Repeat("▮", full) + strings.Repeat("▯", 3-full)
}
