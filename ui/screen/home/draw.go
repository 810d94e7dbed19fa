package home

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/layout"
	"stepbox/ui/paint"
	"stepbox/ui/pane/terminal"
)

// beside is from what width on the preview lies beside the list.
const beside = 120

// Draw draws the screen, and returns the cursor of a line that is typed.
func (s *Screen) Draw(area uv.Rectangle, f paint.Frame) *tea.Cursor {
	s.bar(uv.Rect(area.Min.X, area.Min.Y, area.Dx(), 1), f)
	body := uv.Rect(area.Min.X, area.Min.Y+1, area.Dx(), area.Dy()-2)
	s.inbox.whole, s.boxes = false, s.boxes[:0]
	defer func() { s.drag.Draw(f.Screen, f.P) }()
	s.inbox.blind = layout.KindOf(area.Dx(), area.Dy()) == layout.TooSmall
	if body.Dy() < 4 {
		return nil
	}
	var cursor *tea.Cursor
	if s.search.open || s.search.narrowed() || s.search.sort != 0 {
		cursor = s.line(uv.Rect(body.Min.X, body.Min.Y, body.Dx(), 1), f)
		body.Min.Y++
	}
	if h := s.inbox.height(body); h > 0 {
		s.boxes = append(s.boxes, s.inbox.draw(uv.Rect(body.Min.X, body.Min.Y, body.Dx(), h), f))
		body.Min.Y += h
	}
	list, side := body, uv.Rectangle{}
	switch wide := area.Dx() >= beside && paint.SignsOf(f.Screen) != paint.Words; {
	case wide && !s.preview:
		w := max(44, body.Dx()*3/8)
		list.Max.X -= w
		side = uv.Rect(list.Max.X, body.Min.Y, w, body.Dy())
	case !wide && s.preview:
		list, side = uv.Rectangle{}, body
	}
	if !list.Empty() {
		s.lists(list, f, side.Empty())
	}
	if !side.Empty() {
		s.beside(side, f)
	}
	s.foot(uv.Rect(area.Min.X, area.Max.Y-1, area.Dx(), 1), f)
	if d := s.dialogs.Top(); d != nil {
		under := uv.Rect(area.Min.X, area.Min.Y+1, area.Dx(), max(1, area.Dy()-2))
		if s.inbox.about != "" && body.Dy() >= 10 {
			under = body // what else is held stays in view
		}
		f.Wait = max(0, s.inbox.desk.Guard.Wait(s.cfg.Now()))
		f.Behind(under, themes.Faint)
		f.Focused = true
		if rows := d.Dock(f.Screen, under.Dx()); rows > 0 && s.inbox.about != "" {
			under.Max.Y = min(under.Max.Y, under.Min.Y+rows) // no more than it needs
		}
		cursor = d.Draw(under, f)
	}
	return cursor
}

func (s *Screen) bar(top uv.Rectangle, f paint.Frame) {
	f.Fill(top, themes.Bar)
	x := f.Text(top.Min.X, top.Min.Y, top.Max.X, " stepbox ", themes.Brand)
	f.Text(x+1, top.Min.Y, top.Max.X, "sessions", themes.Bar)
	right := paint.Line{}
	if n := s.Held(); n > 0 {
		right = append(right, paint.Span{Text: fmt.Sprintf("◆ %d held", n), Style: f.P.On(themes.Held, themes.Bar)}, f.Span("  ", themes.Bar))
	}
	if s.cfg.Version != "" && top.Dx() > 50 {
		right = append(right, f.Span(s.cfg.Version, themes.BarMuted))
	}
	f.Right(x+10, top.Min.Y, top.Max.X-1, right)
}

// line draws what the list is narrowed by, and its order.
func (s *Screen) line(r uv.Rectangle, f paint.Frame) *tea.Cursor {
	words := orders[s.search.sort].words
	if s.search.here {
		words = "this folder · " + words
	}
	switch {
	case s.past.left > 0:
		words = paint.Count(s.past.left, "session", "sessions") + " still to be read · " + words
	case s.Reading():
		words = "searching… · " + words
	}
	end := f.Right(r.Min.X+20, r.Min.Y, r.Max.X-1, paint.Line{f.Span(words, themes.Muted)}) - 1
	f.Text(r.Min.X+1, r.Min.Y, end, "/", themes.Key)
	cursor := s.search.line.Draw(f, r.Min.X+3, r.Min.Y, end, hint)
	if !s.search.open {
		return nil
	}
	return cursor
}

// lists draws the live sessions and the past ones; where one state was asked for,
// those that are in it. What is left below them shows the selected one's last lines, unless
// they are shown elsewhere.
func (s *Screen) lists(area uv.Rectangle, f paint.Frame, alone bool) {
	title := "Past"
	if state := s.past.state; state != "" {
		title = strings.ToUpper(state[:1]) + state[1:]
	} else {
		live := area
		most := max(1, area.Dy()*3/5-2)
		n := max(1, len(s.live))
		if n > 1 || len(s.live) == 1 {
			n++ // the heads
		}
		if two := n + len(s.live); two <= most {
			n = two
		}
		live.Max.Y = area.Min.Y + 2 + min(n, most)
		s.liveBox(live, f)
		area.Min.Y = live.Max.Y
	}
	if area.Dy() < 3 {
		return
	}
	if need := s.past.total*s.high() + 3 + len(s.past.notes); alone && s.past.read && area.Dy()-need >= 6 && s.lastLines(uv.Rect(area.Min.X, area.Min.Y+need, area.Dx(), area.Dy()-need), f) {
		area.Max.Y = area.Min.Y + need
	}
	s.pastBox(area, f, title)
}

// high is how many lines a past session has.
func (s *Screen) high() int {
	if s.past.two {
		return 2
	}
	return 1
}

// lastLines shows the end of the selected session's screen, if it is known.
func (s *Screen) lastLines(area uv.Rectangle, f paint.Frame) bool {
	x, ok := s.current()
	if !ok || s.shown.id != x.Session.ID || s.shown.screen == nil {
		return false
	}
	f.Focused = false
	inner := paint.Box{Title: "Screen of " + paint.Clean(name(x.Session))}.Draw(area, f)
	s.boxes = append(s.boxes, inner)
	terminal.Show(f.Screen, inner, s.shown.screen)
	return true
}

// box draws a list's border, and words in place of rows where there are none.
func (s *Screen) box(area uv.Rectangle, f paint.Frame, title string, n int, here bool, none string) uv.Rectangle {
	f.Focused = f.Focused && here && n > 0
	box := paint.Box{Title: title}
	if n > 0 {
		box.Facts = paint.Line{f.Span(paint.Count(n, "session", "sessions"), themes.Muted)}
	}
	inner := box.Draw(area, f)
	s.boxes = append(s.boxes, inner)
	if n > 0 || inner.Empty() {
		return inner
	}
	if !s.past.read {
		none = "reading the record…"
	}
	f.Clip(inner.Min.X+1, inner.Min.Y, inner.Max.X, none, themes.Muted)
	return uv.Rectangle{}
}

func (s *Screen) liveBox(area uv.Rectangle, f paint.Frame) {
	none := "no agent runs now: "
	switch {
	case s.search.narrowed():
		none = "none like that"
	case s.cfg.CanStart:
		none += keys.First(intent.New{}, keys.Home) + " starts one in this folder"
		if s.cfg.CanDemo && s.fresh() {
			none += ", " + keys.First(intent.Demo{}, keys.Home) + " shows a demo"
		}
	default:
		none += "stepbox run starts one"
	}
	here := s.at < len(s.live)
	inner := s.box(area, f, "Live", len(s.live), here && !s.inbox.here, none)
	if inner.Empty() {
		return
	}
	cols := columns(fitted(f.Screen, liveColumns[:], s.live), inner.Dx())
	if inner.Dy() > 1 {
		heads(uv.Rect(inner.Min.X, inner.Min.Y, inner.Dx(), 1), f, cols)
		inner.Min.Y++
	}
	high := 1
	if inner.Dy() >= 2*len(s.live) {
		high = 2
	}
	view, top := inner.Dy()/high, 0
	if here && s.at >= view {
		top = s.at - view + 1
	}
	for i := range min(view, len(s.live)-top) {
		row := uv.Rect(inner.Min.X, inner.Min.Y+i*high, inner.Dx(), high)
		found := s.live[top+i]
		x, u := s.now(found.Session)
		l := line{x, u, f.Now}
		l.row(row, f, cols)
		switch {
		case high > 1 && s.past.two:
			s.hitRow(row, f, found, top+i == s.at)
		case high > 1:
			s.secondRow(uv.Rect(row.Min.X, row.Min.Y+1, row.Dx(), 1), f, l, cols)
		}
		if top+i == s.at {
			f.Ground(row, themes.Selected)
			paint.Point(f.Screen, row.Min)
		}
	}
	f.Scrollbar(area.Max.X-1, inner, top, len(s.live), themes.Border)
}

func (s *Screen) pastBox(area uv.Rectangle, f paint.Frame, title string) {
	none := "no past sessions yet: what agents did stays here, to be read and undone"
	if s.search.narrowed() {
		none = "none like that: esc lists all"
	}
	if s.past.left > 0 {
		none = "none so far"
	}
	at := s.at - len(s.live)
	inner := s.box(area, f, title, s.past.total, at >= 0 && !s.inbox.here, none)
	if inner.Empty() {
		return
	}
	if len(s.past.notes) > 0 {
		note := uv.Rect(inner.Min.X, inner.Max.Y-1, inner.Dx(), 1)
		f.Clip(note.Min.X+1, note.Min.Y, note.Max.X, "! "+strings.Join(s.past.notes, "; "), themes.Warn)
		inner.Max.Y--
	}
	cols := columns(fitted(f.Screen, pastColumns[:], s.past.found), inner.Dx())
	heads(uv.Rect(inner.Min.X, inner.Min.Y, inner.Dx(), 1), f, cols)
	inner.Min.Y++
	high := s.high()
	s.view = max(1, inner.Dy()/high)
	if at >= 0 {
		s.top = max(at-s.view+1, min(s.top, at))
	}
	s.top = max(0, min(s.top, s.past.total-s.view))
	for i := range min(s.view, s.past.total-s.top) {
		row := uv.Rect(inner.Min.X, inner.Min.Y+i*high, inner.Dx(), min(high, inner.Dy()-i*high))
		found, ok := s.past.row(s.top + i)
		if !ok {
			f.Text(row.Min.X+1, row.Min.Y, row.Max.X, "…", themes.Faint)
			continue
		}
		line{x: found.Session, now: f.Now}.row(row, f, cols)
		if row.Dy() > 1 {
			s.hitRow(row, f, found, s.top+i == at)
		}
		if s.top+i == at {
			f.Ground(row, themes.Selected)
			paint.Point(f.Screen, row.Min)
		}
	}
	f.Scrollbar(area.Max.X-1, inner, s.top, s.past.total, themes.Border)
}

// hitRow draws where a text was found in a session: the selected place of the
// selected one, the first of others.
func (s *Screen) hitRow(row uv.Rectangle, f paint.Frame, found api.Found, selected bool) {
	if len(found.Hits) == 0 {
		return
	}
	h, n := found.Hits[0], paint.Count(len(found.Hits), "place", "places")
	if found.More {
		n = fmt.Sprintf("%d or more places", len(found.Hits))
	}
	if selected {
		h, _ = s.hit(found)
		n = fmt.Sprintf("%d of %d", min(s.place, len(s.hits(found))-1)+1, len(s.hits(found)))
	}
	y := row.Min.Y + 1
	end := f.Right(row.Min.X+20, y, row.Max.X-1, paint.Line{f.Span(n, themes.Muted)}) - 2
	at := string(h.Kind)
	if h.Action > 0 {
		at += fmt.Sprintf(" #%d", h.Action)
	}
	if h.Kind != api.HitLabel {
		at += " " + paint.Long(h.Offset)
	}
	x := f.Clip(row.Min.X+3, y, end, at+"  ", themes.Muted)
	f.Clip(x, y, end, h.Text, themes.Text)
}

func (s *Screen) foot(r uv.Rectangle, f paint.Frame) {
	x := r.Min.X + 1
	words, token := s.Notice, themes.Info
	if s.Starting {
		words = strings.TrimSpace(f.Spin + " starting a session…")
	}
	if s.problem != "" {
		words, token = "! "+s.problem, themes.Warn
	}
	scope := s.scope()
	if s.inbox.here && !s.search.open {
		scope = []keys.Scope{keys.Inbox}
	}
	if s.dialogs.Top() != nil { // it has its own keys
		f.Clip(x, r.Min.Y, r.Max.X-1, words, token)
		return
	}
	var hints, last []paint.Hint // how more is found, and the way out: these aren't cut off
	for i, in := range slices.Backward(scope) {
		for _, b := range keys.In(in) {
			to := &hints
			switch b.Intent.(type) {
			case intent.Help, intent.Quit:
				to = &last
			}
			taken := i > 0 && slices.ContainsFunc(keys.In(scope[0]), func(x keys.Binding) bool { return x.First() == b.First() })
			if h, ok := s.hintOf(b); ok && !taken {
				*to = append(*to, h)
			}
		}
	}
	end := r.Max.X - 1 - f.HintsWidth(last)
	for at := 0; at >= 0 && x+f.Width(words) > end-2; { // next steps go before the way out does
		if at = strings.LastIndex(words, " · "); at >= 0 {
			words = words[:at]
		}
	}
	if x+f.Width(words) > end-2 && len(last) > 1 {
		last = last[:1] // help is always there
		end = r.Max.X - 1 - f.HintsWidth(last)
	}
	if words != "" {
		x = f.Clip(x, r.Min.Y, end-2, words, token) + 3
	}
	f.Hints(end, r.Min.Y, r.Max.X-1, themes.Text, last)
	f.Hints(x, r.Min.Y, end-2, themes.Text, hints)
}

// hintOf is what the last line says of a key, if it does something now.
func (s *Screen) hintOf(b keys.Binding) (paint.Hint, bool) {
	h := paint.Hint{Key: b.First(), Words: b.Short}
	if s.inbox.here {
		e, ok := s.inbox.asked()
		if _, back := b.Intent.(intent.Back); back {
			return h, true
		}
		return h, ok && b.Short != "" && (!intent.Decides(b.Intent) || s.inbox.whyNot(b.Intent, e) == "")
	}
	cur, ok := s.current()
	live := cur.Session.Live()
	switch b.Intent.(type) {
	case intent.New:
		ok = s.cfg.CanStart
	case intent.Demo:
		ok = s.cfg.CanDemo && s.fresh()
	case intent.Resume:
		ok = ok && !live && s.cfg.CanResume
	case intent.Fork:
		ok = ok && s.cfg.CanFork
	case intent.Match:
		ok = len(s.hits(cur)) > 0
	case intent.Place:
		ok = len(s.hits(cur)) > 1
	case intent.Trash:
		ok = ok && !live && cur.Session.Trashed.IsZero()
	case intent.Restore:
		ok = ok && !cur.Session.Trashed.IsZero()
	case intent.Open:
		if hit, found := s.hit(cur); live && !(found && hit.Moment() != "") {
			h.Words = "attach"
		}
	case intent.Preview:
	case intent.FirstHeld:
		ok = len(s.inbox.entries) > 0
	default:
		ok = true
	}
	return h, ok && b.Short != ""
}
