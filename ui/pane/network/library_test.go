package network

import (
	"fmt"
	"testing"

	"charm.land/bubbles/v2/table"
	"charm.land/bubbles/v2/viewport"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/ui/state"
)

func attempts(n int) *state.State {
	s := &state.State{Session: session}
	for id := range n {
		s.Apply(api.Event{Attempt: &api.Attempt{ID: int64(id + 1), Protocol: "tcp", Name: fmt.Sprintf("host%d.example", id), Port: 443, Program: "/usr/bin/curl", Verdict: api.Allow}})
	}
	return s
}

// Other events leave the rows as they are, however many attempts there are.
func TestOtherEventsFoldNothing(t *testing.T) {
	const n = 5000
	s := attempts(n)
	p, dst := &Pane{State: s}, uv.NewScreenBuffer(80, 10)
	f := frame(t, dst)
	p.Draw(dst.Bounds(), f)
	if got := testing.AllocsPerRun(5, func() {
		s.Apply(api.Event{Usage: &api.Usage{}})
		p.Draw(dst.Bounds(), f)
	}); got > n/5 {
		t.Errorf("a frame after another event allocates %v times", got)
	}
}

// BenchmarkLibrary draws twelve rows of 5,000 attempts as they are and as bubbles'
// table, and has bubbles' viewport take a diff of 20,000 lines.
func BenchmarkLibrary(b *testing.B) {
	const n = 5000
	s := attempts(n)
	b.Run("cells", func(b *testing.B) {
		p := &Pane{State: s}
		dst := uv.NewScreenBuffer(120, 12)
		f := frame(b, dst)
		b.ReportAllocs()
		for b.Loop() {
			p.Draw(dst.Bounds(), f)
		}
	})
	rows := make([]table.Row, n)
	for i, a := range s.Attempts {
		rows[i] = table.Row{"✓", "00:02", Destination(a), "curl", "17k↑", "98k↓"}
	}
	cols := []table.Column{{Width: 2}, {Width: 6}, {Width: 50}, {Width: 12}, {Width: 8}, {Width: 8}}
	b.Run("table", func(b *testing.B) {
		t := table.New(table.WithColumns(cols), table.WithRows(rows), table.WithHeight(12), table.WithWidth(120))
		dst := uv.NewScreenBuffer(120, 12)
		b.ReportAllocs()
		for b.Loop() {
			t.MoveDown(1)
			uv.NewStyledString(t.View()).Draw(dst, dst.Bounds())
		}
	})
	lines := make([]string, 20000)
	for i := range lines {
		lines[i] = fmt.Sprintf("\x1b[32m+ line %d of a diff with a word or two\x1b[0m", i)
	}
	b.Run("viewport", func(b *testing.B) {
		v := viewport.New(viewport.WithWidth(120), viewport.WithHeight(12))
		b.ReportAllocs()
		for b.Loop() {
			v.SetContentLines(lines)
		}
	})
}
