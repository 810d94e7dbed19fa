package ui

import (
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"stepbox/themes"
	"stepbox/ui/paint"
)

// announce rings when a question came up since the last time.
func (m *Model) announce() tea.Cmd {
	n := m.bench.Newest()
	if n <= m.newest {
		return nil
	}
	m.newest = n
	now := m.opt.Now()
	if now.Sub(m.rang) < bellEvery {
		return nil
	}
	m.rang = now
	out := ""
	if !m.opt.Quiet {
		out = "\a"
	}
	if m.opt.Notify {
		out += ansi.Notify("stepbox: " + m.bench.WindowTitle())
	}
	if out == "" {
		return nil
	}
	return tea.Raw(out)
}

// View draws the frame.
func (m *Model) View() tea.View {
	began := time.Now()
	v := tea.View{AltScreen: true, ReportFocus: true, MouseMode: tea.MouseModeCellMotion, WindowTitle: "stepbox"}
	if m.cols < 1 || m.rows < 1 {
		return v
	}
	if m.buf.RenderBuffer == nil || m.buf.Width() != m.cols || m.buf.Height() != m.rows {
		m.buf = uv.NewScreenBuffer(m.cols, m.rows)
	} else {
		m.buf.Buffer.Clear()
	}
	m.buf.Method = m.method
	area := uv.Rect(0, 0, m.cols, m.rows)
	if m.bench != nil {
		v.Cursor = m.bench.Draw(m.buf, area, m.palette)
		v.WindowTitle = m.bench.WindowTitle()
	} else {
		f := paint.Frame{P: m.palette, Now: m.opt.Now()}
		m.home.Draw(m.buf, area, f)
		if n := m.home.Held(); n > 0 {
			v.WindowTitle = fmt.Sprintf("◆ %d held — stepbox", n)
		}
		if m.help != nil {
			body := uv.Rect(0, 1, m.cols, max(1, m.rows-2))
			paint.Dim(m.buf, body, m.palette.S(themes.Faint))
			m.help.Draw(m.buf, body, f)
		}
	}
	v.SetContent(m.buf.Render())
	m.slow = time.Since(began) > slowFrame
	return v
}
