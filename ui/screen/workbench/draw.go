package workbench

import (
	"fmt"
	"strconv"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/layout"
	"stepbox/ui/paint"
	"stepbox/ui/pane/actions"
)

// Draw draws the screen and returns the cursor.
func (s *Screen) Draw(dst uv.Screen, area uv.Rectangle, p *paint.Palette) *tea.Cursor {
	if s.panes.Kind == layout.TooSmall {
		s.tooSmall(dst, area, p)
		return nil
	}
	now := s.cfg.Now()
	f := paint.Frame{P: p, Now: now}
	s.title(dst, s.panes.Title, f)
	s.tabs(dst, s.panes.Tabs, f)
	s.actions.Notice, s.actions.Auto = nil, s.auto
	if s.notice.text != "" {
		s.actions.Notice = paint.Line{{
			Text:  paint.Shorten(dst, s.notice.text, s.panes.Actions.Dx()-8),
			Style: p.S(s.notice.token),
		}}
	}
	var cursor *tea.Cursor
	for _, pane := range []struct {
		id   intent.Pane
		draw func(uv.Screen, uv.Rectangle, paint.Frame) *tea.Cursor
	}{
		{intent.Terminal, s.terminal.Draw},
		{intent.Changes, s.changes.Draw},
		{intent.Network, s.network.Draw},
		{intent.Actions, s.actions.Draw},
	} {
		r := s.panes.Of(pane.id)
		if r.Empty() {
			continue
		}
		pf := f
		pf.Number = strconv.Itoa(int(pane.id))
		pf.Focused = pane.id == s.focus
		if c := pane.draw(dst, r, pf); c != nil {
			cursor = c
		}
	}
	s.heldLine(dst, s.panes.Held, f)
	if len(s.dialogs) == 0 {
		return cursor
	}
	body := uv.Rect(0, s.panes.Title.Max.Y, area.Dx(), s.panes.Held.Min.Y-s.panes.Title.Max.Y)
	paint.Dim(dst, body, p.S(themes.Faint))
	return s.dialog().Draw(dst, body, f)
}

func (s *Screen) tooSmall(dst uv.Screen, area uv.Rectangle, p *paint.Palette) {
	words := []string{
		fmt.Sprintf("stepbox needs %d×%d cells", layout.MinCols, layout.MinRows),
		fmt.Sprintf("this terminal has %d×%d", area.Dx(), area.Dy()),
	}
	if n := len(s.st.Questions); n > 0 {
		words = append(words, fmt.Sprintf("◆ %d held", n))
	}
	y := area.Min.Y + max(0, (area.Dy()-len(words))/2)
	for i, w := range words {
		k := themes.Strong
		if i > 0 {
			k = themes.Muted
		}
		if i == 2 {
			k = themes.Held
		}
		x := area.Min.X + max(0, (area.Dx()-paint.Width(dst, w))/2)
		paint.Clip(dst, x, y+i, area.Max.X, w, p.S(k))
	}
}

// piece is a part of the title line; those with the least weight go first when
// there isn't room for all.
type piece struct {
	text   string
	token  themes.Token
	weight int
}

func (s *Screen) title(dst uv.Screen, r uv.Rectangle, f paint.Frame) {
	p := f.P
	paint.Fill(dst, r, p.S(themes.Bar))
	ses := s.st.Session
	left := []piece{{" stepbox ", themes.Brand, 40}, {" " + name(ses), themes.Bar, 100}}
	if ses.Agent != "" && ses.Agent != ses.Name {
		left = append(left, piece{" · " + ses.Agent, themes.BarMuted, 60})
	}
	middle := s.badges()
	right := s.figures(f)

	fit := func() int {
		w := 2
		for _, ps := range [][]piece{left, middle, right} {
			for _, x := range ps {
				w += paint.Width(dst, x.text)
			}
		}
		return w
	}
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
	rw := 0
	for _, ps := range right {
		rw += paint.Width(dst, ps.text)
	}
	mw := 0
	for _, ps := range middle {
		mw += paint.Width(dst, ps.text)
	}
	start := r.Max.X - rw - 1
	at := max(x, min(x+(start-x-mw)/2, start-mw))
	for _, ps := range middle {
		at = paint.Text(dst, at, r.Min.Y, r.Max.X, ps.text, p.S(ps.token))
	}
	for _, ps := range right {
		start = paint.Text(dst, start, r.Min.Y, r.Max.X, ps.text, p.On(ps.token, themes.Bar))
	}
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
	if s.Name != "" {
		return s.Name
	}
	if s.ID != "" {
		return s.ID
	}
	return "session"
}

// badges are the mode and whatever isn't as usual about the session.
func (s *Screen) badges() []piece {
	ses := s.st.Session
	var out []piece
	add := func(words string, k themes.Token, weight int) {
		if len(out) > 0 {
			out = append(out, piece{" ", themes.Bar, weight})
		}
		out = append(out, piece{" " + words + " ", k, weight})
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
		add("STARTING", themes.StatePaused, 90)
	case ses.State == api.SessionInterrupted:
		add("INTERRUPTED", themes.StateEnded, 100)
	case s.Over():
		words := "ENDED"
		if ses.Exit != nil {
			words += ": " + actions.ExitWords(ses.Exit)
		}
		add(words, themes.StateEnded, 100)
	}
	if s.lostEv != "" {
		add("DISCONNECTED, joining again", themes.StateEnded, 100)
	}
	return out
}

// figures are what the session uses and how long it has been going on.
func (s *Screen) figures(f paint.Frame) []piece {
	ses := s.st.Session
	var out []piece
	add := func(words string, k themes.Token, weight int) {
		out = append(out, piece{words + "  ", k, weight})
	}
	if n := len(ses.Warnings); n > 0 {
		add(fmt.Sprintf("⚠ %s", paint.Count(n, "warning", "warnings")), themes.Warn, 80)
	}
	if u := s.st.Usage; u != nil {
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
	if ses.Limits.Source != "" {
		add(ses.Limits.Source, themes.BarMuted, 20)
	}
	if !ses.StartedAt.IsZero() {
		end := f.Now
		if !ses.EndedAt.IsZero() {
			end = ses.EndedAt
		}
		add(paint.Long(end.Sub(ses.StartedAt)), themes.Bar, 70)
	}
	if n := len(out); n > 0 {
		out[n-1].text = out[n-1].text[:len(out[n-1].text)-2]
	}
	return out
}

// gauge draws a share of one as three bars.
func gauge(share float64) string {
	full := min(3, int(share*3+0.5))
	g := ""
	for i := range 3 {
		if i < full {
			g += "▮"
		} else {
			g += "▯"
		}
	}
	return g
}

// tabs are the panes' names where only one is shown at a time.
func (s *Screen) tabs(dst uv.Screen, r uv.Rectangle, f paint.Frame) {
	s.tabAt = s.tabAt[:0]
	if r.Empty() {
		return
	}
	x := r.Min.X + 1
	for _, pane := range []intent.Pane{intent.Terminal, intent.Changes, intent.Network, intent.Actions} {
		k := themes.Title
		if pane == s.focus {
			k = themes.TitleFocus
		}
		words := fmt.Sprintf("%d %s", pane, pane)
		if pane == s.focus {
			words = "▸" + words
		} else {
			words = " " + words
		}
		n := paint.Text(dst, x, r.Min.Y, r.Max.X, words, f.P.S(k))
		s.tabAt = append(s.tabAt, uv.Rect(x, r.Min.Y, n-x, 1))
		x = n + 2
	}
}

func (s *Screen) clickTab(e tea.Mouse) {
	for i, r := range s.tabAt {
		if uv.Pos(e.X, e.Y).In(r) {
			s.setFocus(intent.Pane(i + 1))
		}
	}
}

// WindowTitle is what the person's terminal is told to show.
func (s *Screen) WindowTitle() string {
	words := paint.Clean(name(s.st.Session)) + " · stepbox"
	switch n := len(s.st.Questions); {
	case n > 0 && s.caught:
		words = fmt.Sprintf("◆ %d held — %s", n, words)
	case s.Over():
		words = "ended — " + words
	}
	return words
}

// Farewell is what is said after the screen is left.
func (s *Screen) Farewell() string {
	ses := s.st.Session
	if s.live() {
		return fmt.Sprintf("Detached from %s; it goes on. stepbox attach %s comes back to it.", paint.Clean(name(ses)), paint.Clean(ses.ID))
	}
	words := fmt.Sprintf("Session %s ended", paint.Clean(name(ses)))
	if ses.Exit != nil {
		words += ": " + actions.ExitWords(ses.Exit)
	}
	return words + "."
}
