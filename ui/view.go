package ui

import (
	"fmt"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/ui/display"
	"stepbox/ui/paint"
)

// announce rings when a question came up since the last time.
func (m *Model) announce() {
	n := m.bench.Newest()
	if n <= m.newest {
		return
	}
	m.newest = n
	now := m.opt.Now()
	if now.Sub(m.rang) < bellEvery {
		return
	}
	m.rang = now
	m.signal += "\a"
}

// Draw draws the frame into cells, which are blank.
func (m *Model) Draw(dst uv.ScreenBuffer) display.Frame {
	dst.Method = m.method
	area := dst.Bounds()
	out := display.Frame{Title: "stepbox", Signal: m.signal}
	m.signal = ""
	if m.bench != nil {
		m.bench.Spin = m.spin.String()
		out.Cursor = m.bench.Draw(dst, area, m.palette)
		out.Title = m.bench.WindowTitle()
		return out
	}
	f := paint.Frame{P: m.palette, Now: m.opt.Now(), Spin: m.spin.String()}
	out.Cursor = m.home.Draw(dst, area, f)
	if n := m.home.Held(); n > 0 {
		out.Title = fmt.Sprintf("◆ %d held — stepbox", n)
	}
	return out
}
