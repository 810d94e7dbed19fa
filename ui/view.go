package ui

import (
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/ui/display"
	"stepbox/ui/paint"
)

// titleCells is how much of a title any window shows.
const titleCells = 120

// Draw draws the frame into cells, which are blank.
func (m *Model) Draw(dst uv.ScreenBuffer) display.Frame {
	out := m.frame(dst)
	if m.palette.Still && out.Cursor != nil {
		out.Cursor.Blink = false
	}
	if !m.opt.Config.Notify.Title {
		out.Title = ""
	}
	out.Title = m.title(out.Title)
	return out
}

// title is a window's title in characters that get through to it.
func (m *Model) title(s string) string {
	dst := paint.Screen{ScreenBuffer: uv.ScreenBuffer{Method: m.method}, Signs: m.palette.Signs}
	screen := m.opt.Getenv("STY") != ""
	if screen {
		dst.Signs = max(dst.Signs, paint.ASCII)
	}
	s = paint.Shorten(dst, s, titleCells)
	return told(s, m.opt.Getenv)
}

// told is what a terminal is told beside frames. GNU screen hands on the last eight bits of
// each character, or takes each byte for one, and some of those end it in the middle of the
// screen.
func told(s string, getenv func(string) string) string {
	if getenv("STY") == "" {
		return s
	}
	return paint.InASCII(s)
}

func (m *Model) frame(cells uv.ScreenBuffer) (out display.Frame) {
	cells.Method = m.method
	dst, area := paint.Screen{ScreenBuffer: cells, Signs: m.palette.Signs, Point: new(uv.Position)}, cells.Bounds()
	f := paint.Frame{Screen: dst, P: m.palette, Now: m.opt.Now(), Spin: m.spin.String(), Focused: m.pick == nil}
	out = display.Frame{Title: "stepbox", Signal: m.signal}
	m.signal = ""
	defer func() { // over whatever is shown
		if m.pick != nil {
			f.Focused = true
			out.Cursor = m.pick.Draw(area, f)
		}
	}()
	defer func() { // readers follow the cursor
		if at := *dst.Point; out.Cursor == nil && dst.Signs == paint.Words && at != (uv.Position{}) {
			out.Cursor = tea.NewCursor(at.X, at.Y)
		}
	}()
	if m.bench != nil {
		out.Cursor = m.bench.Draw(area, f)
		out.Title = m.bench.WindowTitle()
		return out
	}
	if m.beginning {
		m.drawBeginning(area, f)
		return out
	}
	if m.palette.Still {
		f.Now = f.Now.Truncate(time.Minute)
	}
	out.Cursor = m.home.Draw(area, f)
	if n := m.home.Held(); n > 0 {
		out.Title = fmt.Sprintf("◆ %d held — stepbox", n)
	}
	return out
}
