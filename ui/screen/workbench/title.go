package workbench

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/layout"
	"stepbox/ui/paint"
	"stepbox/ui/pane/network"
	"stepbox/ui/state"
)

// piece is a part of the title line; those with the least weight go first when
// there isn't room for all.
type piece struct {
	text   string
	token  themes.Token
	weight int
}

func (c *core) title(r uv.Rectangle, f paint.Frame, crumbs []piece) {
	p := f.P
	f.Fill(r, themes.Bar)
	ses := c.st.Session
	left := []piece{{" stepbox ", themes.Brand, 40}, {" " + name(ses), themes.Bar, 100}}
	if ses.Agent != "" && ses.Agent != ses.Name {
		left = append(left, piece{" · " + ses.Agent, themes.BarMuted, 60})
	}
	for _, x := range crumbs {
		left = append(left, piece{" › " + f.ShortenLeft(x.text, max(14, r.Dx()/5)), x.token, x.weight})
	}
	middle := c.badges()
	cells := 4 // of each graph, a second each
	if r.Dx() >= layout.WideCols {
		cells = 8
	}
	right := c.figures(f, cells)
	if paint.SignsOf(f.Screen) == paint.Words {
		spoken(r, f, append(append(crumbs, piece{name(ses), themes.Bar, 0}), middle...))
		return
	}

	fit := func() int { return 3 + width(f.Screen, left) + width(f.Screen, middle) + width(f.Screen, right) }
	for fit() > r.Dx() {
		if !dropLightest(&left, &middle, &right) {
			break
		}
	}
	if over := fit() - r.Dx(); over > 0 {
		for i := range left {
			if left[i].weight == 100 {
				left[i].text = f.Shorten(left[i].text, max(4, f.Width(left[i].text)-over))
			}
		}
	}
	write := func(x int, of []piece) int {
		for _, ps := range of {
			x = f.Text(x, r.Min.Y, r.Max.X, ps.text, ps.token)
		}
		return x
	}
	x := write(r.Min.X, left) + 1
	mw := width(f.Screen, middle)
	start := r.Max.X - width(f.Screen, right) - 1
	at := max(x, min(x+(start-x-mw)/2, start-mw-1))
	write(at, middle)
	for _, ps := range right {
		start = paint.Text(f.Screen, start, r.Min.Y, r.Max.X, ps.text, p.On(ps.token, themes.Bar))
	}
}

// spoken is the title where it is read aloud: what has the focus comes first.
func spoken(r uv.Rectangle, f paint.Frame, all []piece) {
	var words []string
	for _, x := range all {
		if w := strings.TrimSpace(x.text); w != "" {
			words = append(words, w)
		}
	}
	f.Clip(r.Min.X, r.Min.Y, r.Max.X, strings.Join(words, ", "), themes.Bar)
}

// crumbs are the way from the session to where the keys go. The last ones go first.
func (s *Screen) crumbs() (out []piece) {
	if d := s.asking.dialogs.Top(); d != nil && s.cfg.Signs() == paint.Words {
		return []piece{{string(d.Scope()), themes.BarMuted, 47}}
	}
	weight := 47
	switch {
	case s.view.zoom:
		weight += 12 // what is read stands nowhere else
	case s.view.focus == intent.Terminal:
		weight = 31 // it is where one is mostly
	}
	add := func(words string) {
		if words != "" {
			out = append(out, piece{words, themes.BarMuted, weight - len(out)})
		}
	}
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return "#" + strconv.Itoa(n)
	}
	if s.past() {
		add(number(s.course.current()))
	}
	add(s.view.focus.String())
	switch s.view.focus {
	case intent.Changes:
		path, hunk, of := s.changes.pane.Where()
		if add(path); of > 0 {
			add(fmt.Sprintf("hunk %d/%d", hunk, of))
		}
	case intent.Network:
		if f, ok := s.reach.pane.Selected(); ok && f.Question == nil {
			add(network.Destination(f.Last))
		}
	case intent.Actions:
		if n := s.asking.list.Selected(); !s.past() || n != s.course.current() {
			add(number(n))
		}
	}
	return out
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
		add(strings.TrimSpace(c.spin+" STARTING"), themes.StatePaused, 90)
	case ses.State == api.SessionInterrupted:
		add("INTERRUPTED", themes.StateEnded, 100)
	case ended:
		words := "ENDED"
		if ses.Exit != nil {
			words += ": " + cmp.Or(paint.Clean(ses.Exit.Words()), "ended")
		}
		add(words, themes.StateEnded, 100)
	}
	if ses.Git != "" {
		add(ses.Git, themes.StatePaused, 65)
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
func (c *core) figures(f paint.Frame, cells int) []piece {
	ses := c.st.Session
	var out []piece
	add := func(words string, k themes.Token, weight int) {
		out = append(out, piece{words + "  ", k, weight})
	}
	if n := len(ses.Warnings); n > 0 {
		add(fmt.Sprintf("⚠ %s", paint.Count(n, "warning", "warnings")), themes.Warn, 80)
	}
	if c.st.Usage != nil && !f.P.Still {
		out = append(out, c.usage(f, cells)...)
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

// usage is what the session uses now, each with a graph of the last seconds.
func (c *core) usage(f paint.Frame, cells int) (out []piece) {
	u, limits, h := *c.st.Usage, c.st.Session.Limits, &c.used
	cpu, memory, network := h.Scales(limits)
	add := func(words string, k themes.Token, weight, graphWeight int, scale float64, figure func(state.Sample) float64) {
		graph := paint.Graph(h.Shares(scale, figure), cells, 1, f.P.Plain())[0]
		out = append(out, piece{graph + " ", k, graphWeight}, piece{words + "  ", k, weight})
	}
	add(fmt.Sprintf("%d%% cpu", int(u.CPU*100+0.5)), themes.BarMuted, 50, 38, cpu, state.CPU)
	words, k := paint.Bytes(u.Memory), themes.BarMuted
	if limits.Memory > 0 {
		words += "/" + paint.Bytes(limits.Memory)
		if u.Memory*10 > limits.Memory*9 {
			k = themes.Warn
		}
	}
	add(words, k, 55, 32, memory, state.Memory)
	if h.Peak(state.Network) > 0 { // of a network at rest there is nothing to say
		in, outOf := h.Rate()
		add(fmt.Sprintf("↓%s ↑%s", paint.Bytes(in), paint.Bytes(outOf)), themes.BarMuted, 39, 34, network, state.Network)
	}
	return append(out, piece{paint.Count(u.Pids, "pid", "pids") + "  ", themes.BarMuted, 30})
}
