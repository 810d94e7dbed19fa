package dialog

import (
	"fmt"
	"strings"
	"testing"

	"charm.land/bubbles/v2/help"
	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/table"
	"charm.land/bubbles/v2/viewport"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/e2e/must"
	"stepbox/themes"
	"stepbox/ui/paint"
)

// What docs/adr/5 says that bubbles' help, viewport and table cost in place of cells:
//
//	go test ./ui/dialog -run - -bench Library -benchtime 1s -benchmem
func BenchmarkLibrary(b *testing.B) {
	th, err := themes.Load("dark", "")
	must.OK(b, err)
	p := paint.NewPalette(th, 0)
	const width, height, lines = 116, 30, 2000
	dst := uv.NewScreenBuffer(width, height)
	area := uv.Rect(0, 0, width, height)
	styled := func(s string) { uv.NewStyledString(s).Draw(dst, area) }

	var bindings []key.Binding
	var hints []paint.Hint
	for _, w := range []string{"approve once", "approve, keep", "deny…", "step into", "step over", "raw argv", "later"} {
		bindings = append(bindings, key.NewBinding(key.WithKeys(w[:1]), key.WithHelp(w[:1], w)))
		hints = append(hints, paint.Hint{Key: w[:1], Words: w})
	}
	b.Run("hints/help", func(b *testing.B) {
		m := help.New()
		m.SetWidth(width)
		for b.Loop() {
			styled(m.ShortHelpView(bindings))
		}
	})
	b.Run("hints/cells", func(b *testing.B) {
		for b.Loop() {
			p.Hints(dst, 0, 0, width, themes.Surface, hints)
		}
	})

	in := &paper{dst: dst, width: width}
	for i := range lines {
		in.pair(fmt.Sprint(i), strings.Repeat("words ", 12), themes.Surface)
	}
	rows := in.rows
	b.Run("rows/viewport", func(b *testing.B) {
		// Rows change with time and size, so that their text is made for each frame.
		m := viewport.New(viewport.WithWidth(width), viewport.WithHeight(height))
		for b.Loop() {
			text := make([]string, len(rows))
			for i, r := range rows {
				for _, s := range r.spans {
					st := p.S(s.k)
					text[i] += st.Styled(s.s)
				}
			}
			m.SetContentLines(text)
			styled(m.View())
		}
	})
	b.Run("rows/cells", func(b *testing.B) {
		for b.Loop() {
			for y, r := range rows[:height] {
				drawRow(paint.Frame{Screen: dst, P: p}, 0, y, width, r)
			}
		}
	})

	columns := []table.Column{{Title: "name", Width: 30}, {Title: "state", Width: 22}, {Title: "last", Width: 60}}
	var sessions []table.Row
	for i := range 500 {
		sessions = append(sessions, table.Row{fmt.Sprint("session ", i), "running", "go test ./..."})
	}
	b.Run("list/table", func(b *testing.B) {
		m := table.New(table.WithColumns(columns), table.WithHeight(height), table.WithWidth(width))
		for b.Loop() {
			m.SetRows(sessions)
			styled(m.View())
		}
	})
	b.Run("list/cells", func(b *testing.B) {
		for b.Loop() {
			for y, r := range sessions[:height] {
				x := 0
				for i, c := range r {
					paint.Clip(dst, x, y, x+columns[i].Width, c, p.S(themes.Text))
					x += columns[i].Width + 1
				}
			}
		}
	})
}
