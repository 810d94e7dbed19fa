// Package home is the screen that lists sessions: live ones above, past ones
// below, newest first.
//
// A Screen belongs to the goroutine that updates the interface and does no IO.
package home

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
	"stepbox/ui/pane/rows"
)

// Screen lists sessions.
type Screen struct {
	Version   string
	CanStart  bool   // a session can be started from here
	CanResume bool   // and one that has ended gone on with
	Problem   string // why the list is old, or could not be read
	Starting  bool   // one is being started
	Notice    string // what became of the last thing

	live, past []api.Session
	loaded     bool
	selected   string // the selected session's ID
	list       rows.List
}

// Set takes the sessions, newest first. The selection stays on its session.
func (s *Screen) Set(all []api.Session) {
	s.live, s.past, s.Problem, s.loaded = nil, nil, "", true
	for _, x := range all {
		if x.Live() {
			s.live = append(s.live, x)
		} else {
			s.past = append(s.past, x)
		}
	}
	if i := slices.IndexFunc(s.all(), func(x api.Session) bool { return x.ID == s.selected }); i >= 0 {
		s.list.Select(i)
		return
	}
	s.choose(min(s.list.At(), s.total()-1))
	if s.selected == "" {
		s.choose(0)
	}
}

func (s *Screen) all() []api.Session {
	return slices.Concat(s.live, s.past)
}

func (s *Screen) total() int { return len(s.live) + len(s.past) }

// Selected is the selected session.
func (s *Screen) Selected() (api.Session, bool) {
	all := s.all()
	if i := slices.IndexFunc(all, func(x api.Session) bool { return x.ID == s.selected }); i >= 0 {
		return all[i], true
	}
	return api.Session{}, false
}

// Held is how many questions wait in all live sessions.
func (s *Screen) Held() int {
	n := 0
	for _, x := range s.live {
		n += x.Held
	}
	return n
}

func (s *Screen) choose(i int) {
	i = max(0, min(i, s.total()-1))
	s.list.Select(i)
	s.selected = ""
	if all := s.all(); i < len(all) {
		s.selected = all[i].ID
	}
}

// Handle moves the selection. What leaves the screen is the caller's.
func (s *Screen) Handle(i intent.Intent) {
	switch i := i.(type) {
	case intent.Move:
		s.choose(s.list.At() + i.By)
	case intent.Page:
		s.choose(s.list.At() + i.By*10)
	case intent.Top:
		s.choose(0)
	case intent.Bottom:
		s.choose(s.total() - 1)
	case intent.HeldStep:
		for k := 1; k <= s.total(); k++ {
			if n := (s.list.At() + k) % s.total(); n < len(s.live) && s.live[n].Held > 0 {
				s.choose(n)
				return
			}
		}
	}
}

// Draw draws the screen.
func (s *Screen) Draw(dst uv.Screen, area uv.Rectangle, f paint.Frame) {
	p := f.P
	top := uv.Rect(area.Min.X, area.Min.Y, area.Dx(), 1)
	paint.Fill(dst, top, p.S(themes.Bar))
	x := paint.Text(dst, top.Min.X, top.Min.Y, top.Max.X, " stepbox ", p.S(themes.Brand))
	paint.Text(dst, x+1, top.Min.Y, top.Max.X, "sessions", p.S(themes.Bar))
	right := paint.Line{}
	if n := s.Held(); n > 0 {
		right = append(right, paint.Span{Text: fmt.Sprintf("◆ %d held", n), Style: p.On(themes.Held, themes.Bar)}, paint.Span{Text: "  ", Style: p.S(themes.Bar)})
	}
	if s.Version != "" && area.Dx() > 50 {
		right = append(right, paint.Span{Text: s.Version, Style: p.S(themes.BarMuted)})
	}
	paint.Right(dst, x+10, top.Min.Y, top.Max.X-1, right)

	body := uv.Rect(area.Min.X, area.Min.Y+1, area.Dx(), area.Dy()-2)
	if body.Dy() < 4 {
		return
	}
	s.list.Fit(max(1, s.total()), max(1, body.Dy()-4))
	liveRows := max(1, min(len(s.live), max(1, body.Dy()*3/5-2)))
	at := body.Min.Y
	s.box(dst, uv.Rect(body.Min.X, at, body.Dx(), liveRows+2), f, "Live", s.live, 0)
	at += liveRows + 2
	if rest := body.Max.Y - at; rest >= 3 {
		s.box(dst, uv.Rect(body.Min.X, at, body.Dx(), rest), f, "Past", s.past, len(s.live))
	}
	s.foot(dst, uv.Rect(area.Min.X, area.Max.Y-1, area.Dx(), 1), f)
}

func (s *Screen) foot(dst uv.Screen, r uv.Rectangle, f paint.Frame) {
	p := f.P
	x := r.Min.X + 1
	words, token := s.Notice, themes.Info
	if s.Starting {
		words = strings.TrimSpace(f.Spin + " starting a session…")
	}
	if s.Problem != "" {
		words, token = "! "+s.Problem, themes.Warn
	}
	if words != "" {
		x = paint.Clip(dst, x, r.Min.Y, r.Max.X-1, words, p.S(token)) + 3
	}
	var hints []paint.Hint
	for _, b := range keys.In(keys.Home) {
		if b.Short == "" {
			continue
		}
		h := paint.Hint{Key: b.First(), Words: b.Short}
		switch b.Intent.(type) {
		case intent.New:
			if !s.CanStart {
				continue
			}
		case intent.Resume:
			if cur, ok := s.Selected(); !ok || cur.Live() || !s.CanResume {
				continue
			}
		case intent.Open:
			cur, ok := s.Selected()
			if !ok {
				continue
			}
			if cur.Live() {
				h.Words = "attach"
			}
		case intent.HeldStep:
			if s.Held() == 0 {
				continue
			}
		}
		hints = append(hints, h)
	}
	p.Hints(dst, x, r.Min.Y, r.Max.X-1, themes.Text, hints)
}

func (s *Screen) box(dst uv.Screen, area uv.Rectangle, f paint.Frame, title string, list []api.Session, first int) {
	cur := s.list.At()
	here := cur >= first && cur < first+len(list)
	box := paint.Box{Title: title, Focused: here && s.total() > 0}
	if len(list) > 0 {
		box.Facts = paint.Line{{Text: paint.Count(len(list), "session", "sessions"), Style: f.P.S(themes.Muted)}}
	}
	inner := box.Draw(dst, area, f.P)
	if inner.Empty() {
		return
	}
	if len(list) == 0 {
		words := "no past sessions yet: what agents did stays here, to be read and undone"
		if title == "Live" {
			words = "no agent runs now"
			if s.CanStart {
				words += ": n starts one in this folder"
			} else {
				words += ": stepbox run starts one"
			}
		}
		if !s.loaded {
			words = "reading the record…"
		}
		paint.Clip(dst, inner.Min.X+1, inner.Min.Y, inner.Max.X, words, f.P.S(themes.Muted))
		return
	}
	top := 0
	if here && cur-first >= inner.Dy() {
		top = cur - first - inner.Dy() + 1
	}
	w := namesWidth(dst, list, inner.Dx())
	for i := range inner.Dy() {
		if top+i >= len(list) {
			break
		}
		row := uv.Rect(inner.Min.X, inner.Min.Y+i, inner.Dx(), 1)
		s.row(dst, row, f, list[top+i], w)
		if top+i == cur-first {
			paint.Ground(dst, row, f.P.S(themes.Selected))
		}
	}
	paint.Scrollbar(dst, area.Max.X-1, inner, top, len(list), f.P.S(themes.Border))
}

// namesWidth is the width of the column of names.
func namesWidth(dst uv.Screen, list []api.Session, width int) int {
	w := 10
	for _, x := range list {
		w = max(w, paint.Width(dst, label(x)))
	}
	return min(w, max(12, width/3))
}

func label(s api.Session) string {
	name := cmp.Or(s.Name, s.ID)
	if s.Agent != "" && s.Agent != name {
		name += " · " + s.Agent
	}
	return name
}

func (s *Screen) row(dst uv.Screen, r uv.Rectangle, f paint.Frame, x api.Session, names int) {
	p := f.P
	y, end := r.Min.Y, r.Max.X-1
	glyph, token, words := State(x)
	at := paint.Text(dst, r.Min.X+1, y, end, glyph+" ", p.S(token))
	paint.Clip(dst, at, y, min(end, at+names), label(x), p.S(themes.Strong))
	at += names + 2

	when := paint.Ago(f.Now.Sub(x.StartedAt))
	if x.Live() {
		when = paint.Long(f.Now.Sub(x.StartedAt))
	} else if !x.EndedAt.IsZero() {
		when = paint.Ago(f.Now.Sub(x.EndedAt))
	}
	right := paint.Right(dst, at, y, end, paint.Line{{Text: when, Style: p.S(themes.Muted)}}) - 2

	if n := x.Unapplied; n > 0 && !x.Live() {
		words = fmt.Sprintf("%s · %d to apply", strings.TrimPrefix(words, "ended: "), n)
	}
	const stateWidth = 22
	room := min(stateWidth, max(8, right-at))
	paint.Clip(dst, at, y, min(right, at+room), words, p.S(token))
	at += room + 1
	if at >= right-8 {
		return
	}
	if r.Dx() >= 90 && x.Live() {
		paint.Clip(dst, at, y, right, strings.ToUpper(string(x.Mode)), p.S(themes.Muted))
		at += 8
	}
	if !x.Live() && r.Dx() >= 90 {
		facts := paint.Count(x.Actions, "action", "actions")
		paint.Clip(dst, at, y, right, facts, p.S(themes.Muted))
		at += 14
	}
	if others := s.beside(x); others != "" && at < right {
		at = paint.Clip(dst, at, y, right, "shares its folder with "+others, p.S(themes.Info)) + 2
	}
	if at < right {
		paint.Clip(dst, at, y, right, cmp.Or(x.LastAction, x.Command), p.S(themes.Text))
	}
}

// beside names the other live sessions on a session's folder: what one of them
// has applied, the others' files don't have.
func (s *Screen) beside(x api.Session) string {
	var out []string
	for _, o := range s.live {
		if o.Folder == x.Folder && o.ID != x.ID && o.Folder != "" {
			out = append(out, cmp.Or(o.Name, o.ID))
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
