package dialog

import (
	"fmt"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

// usage is what a session used in the last minute, as graphs with their figures, with a
// row between them.
func (b *paper) usage(s api.Session, h *state.History, plain bool) {
	n := len(h.Samples)
	if n == 0 {
		return
	}
	now := h.Samples[n-1]
	b.gap()
	cpu, memory, network := h.Scales(s.Limits)
	const high, column, words = 2, 12, 34
	cells := max(8, min(state.Seconds, b.width-column-words))
	add := func(name string, scale float64, figure func(state.Sample) float64, now, most string) {
		for i, graph := range paint.Graph(h.Shares(scale, figure), cells, high, plain) {
			b.line(text{b.pad(name, column), themes.SurfaceMuted}, text{graph + "  ", themes.Info},
				text{b.short([]string{now, most}[i], b.width-column-cells-2), []themes.Token{themes.Surface, themes.SurfaceMuted}[i]})
			name = ""
		}
		b.gap()
	}
	percent := func(x float64) string { return fmt.Sprintf("%d%%", int(x*100+0.5)) }
	of := func(limit string, is bool) string {
		if is {
			return " of " + limit
		}
		return ""
	}
	size := func(x float64) string { return paint.Bytes(int64(x)) }
	span := "in " + paint.Count(n, "second", "seconds")
	add("processor", cpu, state.CPU, percent(now.CPU)+of(percent(s.Limits.CPUs), s.Limits.CPUs > 0), "at most "+percent(h.Peak(state.CPU))+" "+span)
	add("memory", memory, state.Memory, size(float64(now.Memory))+of(paint.Bytes(s.Limits.Memory), s.Limits.Memory > 0), "at most "+size(h.Peak(state.Memory)))
	in, outOf := h.Rate()
	add("network", network, state.Network, fmt.Sprintf("↓%s/s ↑%s/s", paint.Bytes(in), paint.Bytes(outOf)), "at most "+size(h.Peak(state.Network))+"/s")
}
