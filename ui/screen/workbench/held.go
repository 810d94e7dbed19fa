package workbench

import (
	"fmt"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
)

// hint is a key on the held line.
type hint struct {
	key, words string
	asleep     bool // it works, but not yet
}

// heldLine is the last line: what is held, and the keys that work now.
func (s *Screen) heldLine(dst uv.Screen, r uv.Rectangle, f paint.Frame) {
	p := f.P
	x, y, end := r.Min.X+1, r.Min.Y, r.Max.X-1
	right := s.rightHints()
	rw := 0
	for i, h := range right {
		if i > 0 {
			rw += 2
		}
		rw += h.width(dst)
	}
	stop := end
	if rw > 0 && rw+40 < r.Dx() {
		stop = end - rw
		drawHints(dst, stop, y, end, right, p)
		stop -= 2
	}
	if n := len(s.st.Questions); n > 0 && s.caught {
		words := fmt.Sprintf("◆ %d held", n)
		if q, ok := s.question(); ok && n == 1 {
			words = fmt.Sprintf("◆ #%d held %s", q.Action, paint.Clock(f.Now.Sub(q.HeldAt)))
		} else if ok {
			words = fmt.Sprintf("◆ %d of %d held", s.place(q.ID), n)
		}
		x = paint.Text(dst, x, y, stop, words, p.S(themes.Held)) + 3
	}
	if len(s.dialogs) > 0 && s.notice.text != "" {
		// A dialog covers the place where notices usually are.
		paint.Clip(dst, x, y, stop, s.notice.text, p.S(s.notice.token))
		return
	}
	drawHints(dst, x, y, stop, s.hints(dst), p)
}

func (h hint) width(dst uv.Screen) int {
	return paint.Width(dst, h.key) + 1 + paint.Width(dst, h.words)
}

// drawHints draws the hints that fit whole.
func drawHints(dst uv.Screen, x, y, end int, hs []hint, p *paint.Palette) {
	for _, h := range hs {
		if x+h.width(dst) > end {
			return
		}
		key, words := themes.Key, themes.Hint
		if h.asleep {
			key, words = themes.KeyOff, themes.KeyOff
		}
		x = paint.Text(dst, x, y, end, h.key+" ", p.S(key))
		x = paint.Text(dst, x, y, end, h.words, p.S(words)) + 2
	}
}

func (s *Screen) rightHints() []hint {
	switch {
	case len(s.dialogs) > 0 || s.leader:
		return nil
	case s.focus == intent.Terminal && s.live():
		return []hint{{key: keys.Pretty(s.cfg.Keys.Leader) + " ?", words: "help"}}
	}
	return []hint{{key: "?", words: "help"}, {key: ":", words: "cmd"}}
}

// hints are the keys that work now, those for what is held first.
func (s *Screen) hints(dst uv.Screen) []hint {
	leader := keys.Pretty(s.cfg.Keys.Leader)
	if s.leader {
		out := []hint{{key: leader, words: "then"}}
		for _, b := range s.cfg.Keys.In(keys.Leader) {
			if b.Short != "" && s.Why(b.Intent) == "" {
				out = append(out, hint{key: b.Key(), words: b.Short})
			}
		}
		return append(out, hint{key: "1-4 tab", words: "pane"}, hint{key: "esc", words: "nothing"})
	}
	if d := s.dialog(); d != nil {
		if _, ok := d.(*dialog.Decision); ok {
			return []hint{{key: "esc", words: "leaves it held"}}
		}
		return []hint{{key: "esc", words: "back"}}
	}
	if s.focus == intent.Terminal && s.live() {
		if len(s.st.Questions) > 0 {
			return []hint{{key: leader + " a", words: "open it"}, {key: leader + " 4", words: "actions"}, {key: leader + " d", words: "detach"}}
		}
		return []hint{{key: leader + " 1-4", words: "panes"}, {key: leader + " z", words: "zoom"}, {key: leader + " d", words: "detach"}}
	}
	var out []hint
	if s.focus != intent.Actions && len(s.st.Questions) > 0 {
		out = append(out, hint{key: "tab", words: "go to it"})
	}
	q, held := s.question()
	asleep := !s.ready()
	for _, scope := range s.scopes() {
		for _, b := range s.cfg.Keys.In(scope) {
			if b.Short == "" || s.Why(b.Intent) != "" {
				continue
			}
			h := hint{key: keys.Pretty(b.Keys[0]), words: b.Short}
			switch b.Intent.(type) {
			case intent.Help, intent.Palette:
				continue // at the right end
			case intent.HeldStep:
				if len(s.st.Questions) == 0 || s.focus != intent.Actions || held && len(s.st.Questions) < 2 {
					continue
				}
			case intent.Approve, intent.StepInto, intent.StepOver:
				if !s.whole(dst, q) {
					continue // the row can't show all of it; enter does
				}
				h.asleep = asleep
			case intent.Deny:
				h.asleep = asleep
			case intent.Keep, intent.Rollback:
				if s.focus == intent.Actions {
					h.asleep = asleep
				}
			case intent.Open:
				if s.focus == intent.Actions && held {
					h.words = "inspect"
				} else if s.focus == intent.Actions {
					h.words = "details"
				}
			case intent.Pause:
				if s.st.Session.State == api.SessionPaused {
					h.words = "go on"
				}
			}
			out = append(out, h)
		}
	}
	if s.focus == intent.Terminal {
		out = append(out, hint{key: "1-4", words: "panes"}, hint{key: "q", words: "home"})
	}
	return append(out, hint{key: "esc", words: "back"})
}
