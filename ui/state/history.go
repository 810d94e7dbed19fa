package state

import (
	"slices"
	"time"

	"stepbox/session/api"
)

// Seconds is how far back a History goes.
const Seconds = 60

// Sample is what a session used in a second.
type Sample struct {
	CPU     float64 // of one processor
	Memory  int64   // bytes
	In, Out int64   // bytes from the network, and to it
}

// History is what a session used in the last seconds, the newest last.
type History struct {
	Samples []Sample
	in, out int64     // by the last one, in all
	at      time.Time // when that was; zero before the first
}

// each is how long a sample stands, less what a clock that ticks by the second is early.
const each = 900 * time.Millisecond

// Add takes how the session stands, once a second however often it is called.
func (h *History) Add(s *State, now time.Time) {
	switch {
	case s.Usage == nil:
		*h = History{}
		return
	case now.Sub(h.at) < each:
		return
	}
	x := Sample{CPU: s.Usage.CPU, Memory: s.Usage.Memory}
	if !h.at.IsZero() { // what went before the first one didn't go in its second
		x.In, x.Out = max(0, s.Received-h.in), max(0, s.Sent-h.out)
	}
	h.in, h.out, h.at = s.Received, s.Sent, now
	h.Samples = append(h.Samples, x)
	h.Samples = slices.Delete(h.Samples, 0, max(0, len(h.Samples)-Seconds))
}

// Rate is how many bytes a second came and went, over the last few: they are told of
// about once a second, so that one alone may have none or twice as many.
func (h *History) Rate() (in, out int64) {
	last := h.Samples[max(0, len(h.Samples)-3):]
	for _, x := range last {
		in, out = in+x.In, out+x.Out
	}
	n := int64(max(1, len(last)))
	return in / n, out / n
}

// Shares are a figure of each sample as parts of the most that can be, or of the most
// that was, whichever is more.
func (h *History) Shares(most float64, figure func(Sample) float64) []float64 {
	out := make([]float64, len(h.Samples))
	for i, x := range h.Samples {
		out[i] = figure(x)
		most = max(most, out[i])
	}
	for i := range out {
		if most > 0 {
			out[i] /= most
		}
	}
	return out
}

// Peak is the most of a figure.
func (h *History) Peak(figure func(Sample) float64) (most float64) {
	for _, x := range h.Samples {
		most = max(most, figure(x))
	}
	return most
}

// The figures.
func CPU(x Sample) float64     { return x.CPU }
func Memory(x Sample) float64  { return float64(x.Memory) }
func Network(x Sample) float64 { return float64(x.In + x.Out) }

// Scales of the graphs: what fills them, where no more was.
func (h *History) Scales(l api.Limits) (cpu, memory, network float64) {
	if cpu = l.CPUs; cpu == 0 {
		cpu = 1
	}
	return cpu, float64(l.Memory), 10 << 10 // a few packets aren't a mountain
}
